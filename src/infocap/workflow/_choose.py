"""Choose a basis where none was given.

It is that of the run's plan, or as large as the number of samples allows.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..basis import (
    Family,
    ProductBasis,
    RecordedFamily,
    delayed_basis,
    indices_of,
    product_basis,
)
from ..errors import Check, DataError, ParameterError

# Most functions of a basis that is chosen automatically: more would take minutes.
MAX_CHOSEN_FUNCTIONS = 3000
# Samples for each function: with 2 in place of 4 error bars may be several times too long
# (docs/howto/choose-n.md).
SAMPLES_PER_CHOSEN_FUNCTION = 4
# Highest degree of a basis that is chosen automatically.
MAX_CHOSEN_DEGREE = 20
# The entries of a plan that describe its basis.
BASIS_ENTRIES = (
    "family",
    "n_inputs",
    "max_degree",
    "max_delay",
    "domain",
    "index_set",
    "max_interactions",
)
# Those of them that a basis of delayed inputs does not have.
ENTRIES_WITHOUT_DELAYS = ("max_degree", "index_set", "max_interactions")


def choose_basis(
    shape: tuple[int, int], plan: Mapping[str, Any] | None = None, **settings: Any
) -> tuple[ProductBasis, dict[str, str]]:
    """Return a basis for inputs of this shape, and sentences about what was chosen.

    The sentences are about the plan, the inputs and the degree. The settings are those of
    `product_basis`. What they leave open is taken from the plan of the run. Without a plan, inputs
    are uniform on [-1, 1], and the degree is the highest that leaves four samples for each
    function.
    """
    n_samples, n_inputs = shape
    if plan is not None:
        return _planned_basis(n_inputs, plan, settings)
    reasons = {}
    has_family = "family" in settings
    usual: dict[str, Any] = {"family": "legendre", "n_inputs": n_inputs}
    settings = usual | settings
    # A basis of degree 0 refuses settings that make no sense.
    families = product_basis(**settings | {"max_degree": 0}).families
    has_range = "domain" in settings or any(family.variable for family in families)
    if not (has_family and has_range):
        kinds = [_in_words(family) for family in families]
        reasons["inputs"] = "; ".join(dict.fromkeys(kinds))
    if "max_degree" in settings:
        return product_basis(**settings), reasons

    max_functions = min(n_samples // SAMPLES_PER_CHOSEN_FUNCTION, MAX_CHOSEN_FUNCTIONS)
    index_set = settings.get("index_set", "total")
    max_interactions = settings.get("max_interactions")
    degree = 1
    # The loop ends when there are too many functions, or a family has no functions of the next
    # degree.
    with suppress(ParameterError):
        while degree < MAX_CHOSEN_DEGREE:
            indices_of(families, degree + 1, index_set, max_interactions, limit=max_functions)
            degree += 1
    basis = product_basis(**settings, max_degree=degree)
    reasons["degree"] = (
        f"degree {basis.max_degree} chosen, {len(basis)} functions for {n_samples} samples"
    )
    return basis, reasons


def _in_words(family: Family) -> str:
    """Return how inputs of a family are distributed."""
    if isinstance(family, RecordedFamily):
        return "inputs of the distribution that was recorded"
    low, high = family.domain
    return f"{family.name}, {family.distribution} inputs on [{low:g}, {high:g}]"


def _planned_basis(
    n_inputs: int, plan: Mapping[str, Any], given: dict[str, Any]
) -> tuple[ProductBasis, dict[str, str]]:
    """Return the basis of the plan, but for the settings that the user gives."""
    n_planned = int(plan["n_inputs"])
    if n_planned != n_inputs:
        raise DataError(
            f"the plan in the file is for {n_planned} inputs, but {n_inputs} were recorded."
        )
    exception = f", but for its {', '.join(given)}" if given else ""
    reasons = {"plan": f"the plan's basis is used{exception}"}
    planned = {name: plan[name] for name in BASIS_ENTRIES if plan.get(name) is not None}
    settings = planned | given
    if "max_delay" not in settings:
        return product_basis(**settings), reasons
    for name in ENTRIES_WITHOUT_DELAYS:
        if name in given:
            raise ParameterError(
                f"`{name}={given[name]!r}` cannot be used with the delays of the plan; give "
                "`max_delay` by degree."
            )
    delays = {int(degree): delay for degree, delay in settings["max_delay"].items()}
    domain = settings.get("domain")
    return delayed_basis(settings["family"], n_inputs, delays, domain=domain), reasons


def note_about_choice(reasons: dict[str, str]) -> Check:
    """Return a note for the checks of a result whose basis was chosen."""
    return Check(
        f"no basis was given: {'; '.join(reasons.values())}. To use another one, pass `basis=...`.",
        kind="note",
    )
