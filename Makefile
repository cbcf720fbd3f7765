# Two commands do everything: `make demo` runs the main job, `make test` runs the tests.
# Each target makes its own .venv; the second time it is there already.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One process per core, so one thread each: a second one of the matrix library would only wait, and spin meanwhile.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --dist worksteal

.PHONY: demo test test-quick test-slow lint format bench docs clean

demo: $(VENV)/.core
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(PYTEST)

test-quick: $(VENV)/.dev
	$(PYTEST) -m "not slow and not pages"

test-slow: $(VENV)/.dev $(VENV)/.qcodes
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/core.py

docs: $(VENV)/.docs
	rm -rf build/docs docs/reference/generated
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going --jobs auto --quiet -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs
	$(BIN)/codespell
	@echo "Written: build/docs/index.html"

clean:
	rm -rf $(VENV) build docs/reference/generated demo-output .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(VENV)/.qcodes: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[qcodes]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@
