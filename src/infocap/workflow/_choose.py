"""Choose a basis where none was given: from the plan of the run, or as large as the samples can bear."""

from contextlib import suppress
from typing import Any

from ..basis._delayed import delayed_basis
from ..basis._index_sets import indices_of
from ..basis._product import ProductBasis, product_basis
from ..errors import Check, DataError, ParameterError

# Where nothing tells the degree, the highest is taken that needs no more functions than this, or than half the samples:
# more could hardly be told apart, and would take minutes.
MOST_FUNCTIONS = 3000
SAMPLES_PER_FUNCTION = 2
HIGHEST_DEGREE = 20
# Entries of a plan about its basis.
ENTRIES = (
    "family",
    "n_inputs",
    "max_degree",
    "max_delay",
    "domain",
    "index_set",
    "max_interactions",
)


def choose_basis(
    shape: tuple[int, int], plan: dict[str, Any] | None = None, **given: Any
) -> tuple[ProductBasis, dict[str, str]]:
    """Return a basis for inputs of this shape, and in words what was not given: the `plan`, `inputs` or `degree` taken.

    What is `given` goes to `product_basis`. The rest is taken from the plan of the run; without one, inputs are uniform
    on [-1, 1], and the degree is the highest that leaves two samples for each function.
    """
    n_samples, n_inputs = shape
    if plan is not None:
        n = int(plan["n_inputs"])
        if n != n_inputs:
            raise DataError(
                f"the plan in the file is for {n} inputs, but {n_inputs} were recorded."
            )
        but = f", but for its {', '.join(given)}" if given else ""
        known = {name: plan[name] for name in ENTRIES if plan.get(name) is not None} | given
        said = {"plan": f"the basis is that of its plan{but}"}
        if "max_delay" in known:
            delays = {int(degree): delay for degree, delay in known["max_delay"].items()}
            return delayed_basis(known["family"], n, delays, domain=known.get("domain")), said
        return product_basis(**known), said
    said = {}
    settings: dict[str, Any] = {"family": "legendre", "n_inputs": n_inputs} | given
    families = product_basis(**settings | {"max_degree": 0}).families  # refuses wrong settings
    if "family" not in given or not ("domain" in given or any(one.variable for one in families)):
        kinds = [
            f"{one.name}, {one.distribution} inputs on [{one.domain[0]:g}, {one.domain[1]:g}]"
            for one in families
        ]
        said["inputs"] = "; ".join(dict.fromkeys(kinds))
    if "max_degree" in given:
        return product_basis(**settings), said
    limit, degree = min(n_samples // SAMPLES_PER_FUNCTION, MOST_FUNCTIONS), 1
    cuts = settings.get("index_set", "total"), settings.get("max_interactions")
    with suppress(
        ParameterError
    ):  # too many functions, or a family that knows its functions up to some degree only
        while degree < HIGHEST_DEGREE:
            indices_of(families, degree + 1, *cuts, limit=limit)
            degree += 1
    basis = product_basis(**settings, max_degree=degree)
    said["degree"] = (
        f"degree {basis.max_degree} chosen, {len(basis)} functions for {n_samples} samples"
    )
    return basis, said


def note_about_choice(said: dict[str, str]) -> Check:
    """A note among the checks of a result, for which no basis was given."""
    return Check(
        f"no basis was given: {'; '.join(said.values())}; `product_basis(...)` says otherwise.",
        kind="note",
    )
