"""Which family each input has.

Users give names, texts with ranges and units, or families themselves; files hold descriptions.
"""

import re
from collections.abc import Sequence
from typing import Any

from .._validation import checks_arguments, require_whole_number, shown
from ..errors import ParameterError
from ..typing import Limits
from ._family import Family
from ._registry import make, restore

# Every function keeps an index for each input: with more inputs, even degree 1 would take 20 GB.
MAX_BASIS_INPUTS = 10_000


@checks_arguments
def inputs(*described: str) -> list[Family]:
    """Return inputs with their names, units, ranges and distributions.

    They go into `product_basis`, `delayed_basis`, `Plan` and `estimate`.

    Parameters
    ----------
    described
        One text ``name [unit]:low:high:family`` per input; the unit, the range and the family may
        be left out. A family has a name as for `product_basis`, or that of its distribution, such
        as ``normal``; without one, inputs are uniform.

    Examples
    --------
    >>> ours = infocap.inputs("Voltage A [V]:0:5", "Phase [deg]:0:360:fourier")
    >>> infocap.product_basis(ours, max_degree=1).labels
    ['1', 'cos1(Phase)', 'sin1(Phase)', 'P1(Voltage A)']
    """
    texts = []
    for text in described:
        if not isinstance(text, str):
            raise ParameterError(
                f"`inputs={shown(described)}` must be texts such as 'Voltage [V]:0:5', one per "
                "input."
            )
        texts.append(text if ":" in text else f"{text}:uniform")
    return find_families(texts, None)


def find_families(family: Any, n_inputs: int | None, domain: Limits | None = None) -> list[Family]:
    """Return one family per input.

    Parameters
    ----------
    family
        A family, its name, or its description as plain data, which all inputs share; or a list with
        one for each input.
    n_inputs
        The number of inputs. A list says it by its length.
    domain
        The interval of every input; None leaves each family its own.
    """
    if n_inputs is not None:
        n_inputs = require_whole_number("n_inputs", n_inputs, 1)
        if n_inputs > MAX_BASIS_INPUTS:
            raise ParameterError(
                f"`n_inputs={n_inputs:,}` is more than {MAX_BASIS_INPUTS:,}, as no device has; "
                "give fewer."
            )
    if isinstance(family, Sequence) and not isinstance(family, str):
        if not family or n_inputs not in (None, len(family)) or len(family) > MAX_BASIS_INPUTS:
            raise ParameterError(
                f"`n_inputs={n_inputs}` but {len(family)} families are given; give one family for "
                f"each input, {MAX_BASIS_INPUTS:,} at most, or leave out `n_inputs`."
            )
        families = [_family_of(entry) for entry in family]
    else:
        families = [_family_of(family)] * (n_inputs or 1)
    _refuse_equal_names(families)
    if domain is not None:
        families = [of_input.on(domain) for of_input in families]
    return families


def _family_of(entry: Any) -> Family:
    """Return a family from whatever stands for it."""
    if isinstance(entry, Family):
        return entry
    if isinstance(entry, str):
        return _family_of_text(entry)
    if isinstance(entry, dict):
        if "name" not in entry:
            raise ParameterError(f"`family={shown(entry)}` has no name; give name='legendre'.")
        return restore(**entry)
    raise ParameterError(
        f"`family={shown(entry)}` must be a name, or a Family such as legendre() of infocap.basis."
    )


def _refuse_equal_names(families: list[Family]) -> None:
    """Refuse two inputs of the same name; inputs without a name are numbered later."""
    names = set()
    for family in families:
        if family.variable and family.variable in names:
            raise ParameterError(
                f"two inputs are called {family.variable!r}; give each a name of its own."
            )
        names.add(family.variable)


def _family_of_text(text: str) -> Family:
    """Return the family of a text.

    It is a name such as ``hermite`` or ``jacobi(1, 1)``, or describes an input such as ``Bias
    [V]:0:5:normal``.
    """
    *words, last_word = (word.strip() for word in text.split(":"))
    if len(words) == 2:  # "name:low:high", without a family
        variable_and_range = [*words, last_word]
        family_name = "uniform"
    else:  # "name:low:high:family", "name:family" or "family"
        variable_and_range = words
        family_name = last_word
    try:
        family = _family_of_name(family_name)
        interval = [float(edge) for edge in variable_and_range[1:]]
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"family {text!r} cannot be made: {error}") from None
    if len(variable_and_range) not in (0, 1, 3) or variable_and_range[:1] == [""]:
        raise ParameterError(
            f"the input {text!r} must look like 'Bias [V]:0:5' or 'Phase [deg]:0:360:fourier'."
        )
    if interval:
        low, high = interval
        family = family.on((low, high))
    if variable_and_range:
        family = family.named(variable_and_range[0])
    return family


def _family_of_name(name: str) -> Family:
    """Return the family of a name: ``legendre``, ``normal``, ``jacobi(1, 1)``."""
    call = re.fullmatch(r"(\w+)\s*\(([^()]*)\)", name)
    if call is None:
        return restore(name)
    arguments: list[float | int] = []
    for text in call[2].split(","):
        number = float(text)
        arguments.append(int(number) if number.is_integer() else number)
    return make(call[1], arguments)
