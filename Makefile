# `make demo` runs the main job, `make check` the core's tests, `make test` all tests.
# Each target makes its own environment in .venv on the first call and uses it again on later ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Tests run in one process per core. Each process has one thread, because a second thread of the matrix library would
# wait for a core that another process uses.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -q --numprocesses auto --dist worksteal

.PHONY: demo check test test-slow lint format paper bench docs dist clean

# Draws a design, measures a simulated device, estimates its capacities, and writes plots and a report.
demo: $(VENV)/.core
	$(BIN)/python examples/demo.py

# The core's tests but the thorough ones: under one minute on two cores.
check: $(VENV)/.dev
	$(PYTEST) -m "not slow and not pages and not thorough" tests/core

# All tests but the slow ones, and the examples in docstrings.
test: $(VENV)/.dev
	$(PYTEST)

# The slow tests, one after another, because some of them measure time or memory.
test-slow: $(VENV)/.dev $(VENV)/.qcodes
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/fill_paper.py --check

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Writes the numbers of paper/paper.md anew, from the verdicts in paper/figures and from benchmarks/RESULTS.md; and
# paper/README.md, the page of these verdicts.
paper: $(VENV)/.core
	$(BIN)/python tools/fill_paper.py
	$(BIN)/python -m paper.page

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/core.py

docs: $(VENV)/.docs
	rm -rf build/docs docs/reference/generated
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going --jobs auto --quiet -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs
	$(BIN)/codespell
	@echo "Written: build/docs/index.html"

# Builds sdist and wheel into dist/, installs each in a clean environment, and runs a smoke test there.
dist: $(VENV)/.build
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tools/check_dist.py dist

clean:
	rm -rf $(VENV) build dist docs/reference/generated demo-output example-output reproduced
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable ".[dev]"
	@touch $@

$(VENV)/.qcodes: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable ".[qcodes]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable ".[bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable ".[docs]"
	@touch $@

$(VENV)/.build: | $(BIN)/python
	$(PIP_INSTALL) build
	@touch $@
