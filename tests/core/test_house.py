"""The structure of the package: rooms with doors, no circles, and a new part is one function and one line.

How much code there is, is nobody's business here.
"""

import ast
import pickle
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap

HOME = Path(infocap.__file__).parent
# Folders inside the laboratory are rooms of their own.
ROOMS_OF_THE_LABORATORY = ("adapters", "cli", "experiment", "files", "report")


def module_name(file):
    """The dotted name of a file below infocap: ``basis._product``; of a folder's __init__.py that of the folder."""
    parts = file.relative_to(HOME).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(file): file for file in sorted(HOME.rglob("*.py"))}


def room_of(module):
    """The room that a module lies in: ``basis`` for ``basis._product``, ``lab.files`` for ``lab.files._read``."""
    first, *others = module.split(".")
    if first == "lab" and others and others[0] in ROOMS_OF_THE_LABORATORY:
        return f"lab.{others[0]}"
    return first


def imports_of(module, nodes):
    """Pairs of a module and a name that the nodes of a module's syntax tree import from infocap."""
    package = module.split(".") if module else []
    if MODULES[module].name != "__init__.py":
        package = package[:-1]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            source = package[: len(package) - node.level + 1]
            if node.module:
                source = [*source, *node.module.split(".")]
            for alias in node.names:
                yield ".".join(source), alias.name


def syntax_tree(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def test_rooms_take_only_public_names_of_each_other():
    """A room's `__init__.py` is its door; modules at the root, such as `_arrays`, serve all rooms."""
    taken = []
    for module in MODULES:
        for source, name in imports_of(module, ast.walk(syntax_tree(module))):
            inside_one_room = source and room_of(source) == room_of(module)
            private_module = "._" in source
            private_name = bool(source) and name.startswith("_") and name != "__version__"
            if not inside_one_room and (private_module or private_name):
                taken.append(f"{module} takes {name} from {source}")
    assert taken == []


def test_no_modules_import_each_other_in_a_circle():
    graph = {}
    for module in MODULES:
        found = set()
        for source, name in imports_of(module, syntax_tree(module).body):
            submodule = f"{source}.{name}" if source else name
            found.add(submodule if submodule in MODULES else source)
        graph[module] = found - {module}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def default_values(tree):
    """Nodes that stand where a default does: of a parameter, of a field, of an option of the command line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            yield from (*node.defaults, *filter(None, node.kw_defaults))
        elif (
            isinstance(node, ast.AnnAssign | ast.keyword)
            and getattr(node, "arg", "default") == "default"
        ):
            yield node.value


def method_names(source):
    """Names of estimators that a module uses as texts of their own, other than as defaults, with their lines."""
    tree = ast.parse(source)
    defaults = set(map(id, default_values(tree)))
    names = set(infocap.estimators.METHODS) - {"raw"}  # also the name of a field of every result
    return [
        f"line {node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names and id(node) not in defaults
    ]


def test_names_of_estimators_are_found_except_in_defaults():
    assert method_names(
        'def f(method="chi2"):\n    """Like chi2."""\n    return method == "surrogate"'
    ) == ["line 3: 'surrogate'"]


def test_no_module_outside_estimators_knows_the_name_of_one():
    known = {
        module: method_names(file.read_text(encoding="utf-8"))
        for module, file in MODULES.items()
        if room_of(module) != "estimators"
    }
    assert {name: lines for name, lines in known.items() if lines} == {}


def semicircle():
    """Chebyshev polynomials of the second kind: an input with a semicircular density on [-1, 1]."""

    def quantile(p):
        x = np.linspace(-1, 1, 20_001)
        return np.interp(p, 0.5 + (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi, x)

    half = lambda count: (np.zeros(count), np.full(count, 0.5))  # noqa: E731
    return infocap.basis.Family(
        name="outside-semicircle",
        symbol="U",
        recurrence=half,
        canonical_quantile=quantile,
        distribution="semicircle",
    )


def unbiased(evidence, *, readouts_count=1.0):
    """The raw capacity less rank / N, which chance alone gives."""
    return np.maximum(evidence.raw - readouts_count * evidence.rank / evidence.n_samples, 0.0)


@dataclass(frozen=True)
class Polynomial:
    """A device that shows u1, u1 u2 and their noisy sum."""

    gain: float = 1.0

    def __call__(self, u, seed=None):
        noise = 0.1 * np.random.default_rng(seed).normal(size=len(u))
        product = u[:, 0] * u[:, 1]
        return self.gain * np.column_stack([u[:, 0], product, u[:, 0] + product + noise])


def staircase(result, ax=None):
    """Cumulated capacities, the largest first."""
    ax = plt.figure().add_subplot() if ax is None else ax
    ax.plot(np.cumsum(np.sort(result.capacity)[::-1]))
    return ax


@pytest.fixture
def extended(monkeypatch):
    """The one table line of a family and of an estimator; systems and plots need none."""
    monkeypatch.setitem(infocap.basis.FAMILIES, "outside-semicircle", semicircle)
    monkeypatch.setitem(infocap.estimators.METHODS, "unbiased", unbiased)


def test_a_family_from_outside_is_one_more(extended):
    basis = infocap.product_basis("outside-semicircle", n_inputs=2, max_degree=3)
    u = infocap.draw(basis, 4096, seed=1)
    assert_allclose(basis(u).T @ basis(u) / 4096, np.eye(len(basis)), atol=0.02)
    result = infocap.estimate(u, np.column_stack([2 * u[:, 0], 4 * u[:, 1] ** 2 - 1]), basis)
    known = {"1", "U1(u1)", "U2(u2)"}
    assert {
        label for label, c in zip(basis.labels, result.capacity, strict=True) if c > 0.01
    } == known


def test_a_family_from_outside_travels_and_is_saved(extended, tmp_path):
    basis = infocap.product_basis("outside-semicircle", n_inputs=2, max_degree=3)
    u = infocap.draw(basis, 256, seed=1)
    assert_allclose(pickle.loads(pickle.dumps(basis))(u), basis(u))
    infocap.estimate(u, u**2, basis).save(tmp_path / "result.nc")
    assert_allclose(infocap.load_result(tmp_path / "result.nc").basis(u), basis(u))


def gamma2(shape=2.0, named=True):
    """Laguerre polynomials of an input with a Gamma distribution; `named` says whether it tells its shape."""
    parameters = (("shape", shape),) if named else ()
    return replace(infocap.basis.laguerre(shape), name="gamma2", parameters=parameters)


def test_a_family_from_outside_with_arguments_is_saved(monkeypatch, tmp_path):
    monkeypatch.setitem(infocap.basis.FAMILIES, "gamma2", gamma2)
    basis = infocap.product_basis("gamma2(3)", n_inputs=2, max_degree=2)
    assert basis.families[0].parameters == (("shape", 3),)
    u = infocap.draw(basis, 256, seed=1)
    infocap.estimate(u, u**2, basis).save(tmp_path / "result.nc")
    loaded = infocap.load_result(tmp_path / "result.nc")
    assert loaded.basis.families == basis.families
    assert np.array_equal(loaded.basis(u), basis(u))
    assert np.array_equal(pickle.loads(pickle.dumps(basis))(u), basis(u))


def test_a_family_from_outside_that_does_not_tell_its_arguments_is_not_saved(monkeypatch):
    monkeypatch.setitem(infocap.basis.FAMILIES, "gamma2", gamma2)
    basis = infocap.product_basis("gamma2(3, 0)", n_inputs=1, max_degree=2)
    assert basis.families[0].quantile(0.5) == infocap.basis.laguerre(3).quantile(0.5)
    with pytest.raises(
        infocap.errors.ParameterError, match="arguments in the family's `parameters`"
    ):
        basis.to_dict()


@pytest.mark.parametrize("suffix", ["nc", "csv"])
def test_a_result_with_a_family_that_is_not_known_here_is_not_called_damaged(
    suffix, extended, monkeypatch, tmp_path
):
    basis = infocap.product_basis("outside-semicircle", n_inputs=1, max_degree=2)
    u = infocap.draw(basis, 64, seed=1)
    path = infocap.estimate(u, u, basis).save(tmp_path / f"result.{suffix}")
    monkeypatch.delitem(infocap.basis.FAMILIES, "outside-semicircle")
    with pytest.raises(infocap.errors.DataError) as refusal:
        infocap.load_result(path)
    assert str(refusal.value) == (
        f"{path} has functions of the family 'outside-semicircle', which is not known here; put the "
        "function that makes it into infocap.basis.FAMILIES before reading, or install the package "
        "that offers it."
    )


def test_an_estimator_from_outside_is_one_more(extended, tmp_path):
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    u = infocap.draw(basis, 1024, seed=1)
    x = Polynomial()(u, seed=2)
    raw = infocap.estimate(u, x, basis, method="raw")
    by_name = infocap.estimate(u, x, basis, method="unbiased")
    assert_allclose(by_name.capacity, np.maximum(raw.raw - 4 / 1024, 0))
    assert_allclose(
        infocap.estimate(
            u, x, basis, method=unbiased, method_options={"readouts_count": 0.0}
        ).capacity,
        raw.raw,
    )
    by_name.save(tmp_path / "result.nc")
    assert infocap.load_result(tmp_path / "result.nc").method == "unbiased"


def negative_powers(case):
    """Detectors measure powers, which cannot be negative."""
    low = case.evidence.column_statistics.low
    if (low < 0).any():
        worst = int(low.argmin())
        yield infocap.errors.Check(f"channel {worst} has negative values.", channels=[worst])


def test_a_check_from_outside_is_one_more(monkeypatch, tmp_path):
    monkeypatch.setitem(infocap.diagnostics.CHECKS, "negative powers", negative_powers)
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    with pytest.warns(infocap.errors.DataWarning, match="channel 0 has negative values"):
        result = infocap.probe(
            lambda u: np.column_stack([u[:, 0] - 1, u[:, 1] ** 2]), basis, 256, seed=1
        )
    infocap.probe(lambda u: u**2, basis, 256, seed=1)  # nothing to say
    (found,) = result.warnings
    assert found.found == {"channels": [0]}
    kept = infocap.load_result(result.save(tmp_path / "result.nc"))
    assert (kept.warnings[0], kept.warnings[0].found) == (found, found.found)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_a_system_from_outside_is_one_more():
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    result = infocap.probe(Polynomial(), basis, 1024, seed=1)
    assert_allclose(
        result.capacity[[basis.labels.index(one) for one in ("P1(u1)", "P1(u1)·P1(u2)")]],
        1,
        atol=1e-6,
    )
    found = infocap.sweep(Polynomial, {"gain": [0.5, 2.0]}, basis, 256, seed=1, progress=False)
    assert_allclose(found.totals[0], found.totals[1], rtol=1e-9)  # scale is no capacity


def test_a_plot_from_outside_is_one_more():
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    result = infocap.probe(Polynomial(), basis, 1024, seed=1)
    with plt.rc_context(infocap.plot.STYLE):
        figure, axes = plt.subplots(1, 2)
        assert infocap.plot.capacity_bars(result, ax=axes[0]) is axes[0]
        assert staircase(result, ax=axes[1]).lines[0].get_ydata()[-1] == pytest.approx(
            result.capacity.sum()
        )
    plt.close(figure)
