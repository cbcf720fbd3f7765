"""Names that other installed packages add to infocap, through entry points.

A package that offers a family of functions called "semicircle" says so in its own
``pyproject.toml``::

    [project.entry-points."infocap.families"]
    semicircle = "their_package.families:semicircle"

From then on ``infocap.product_basis("semicircle", ...)`` works wherever that package is installed.
"""

from collections.abc import Mapping
from typing import Any

from ._validation import require_one_of
from .errors import ParameterError


def find_by_name(parameter: str, name: Any, table: Mapping[str, Any], group: str) -> Any:
    """Return the entry of a table, or what an installed package offers under this name.

    Packages are asked only about a name that is not in the table, so that `import infocap` stays
    fast.

    Parameters
    ----------
    parameter
        The parameter that the user gave the name to; messages say it.
    name
        The name to look up.
    table
        The names that infocap itself has.
    group
        The group of entry points to look in, such as ``"infocap.families"``.

    Raises
    ------
    ParameterError
        When nobody offers the name, or the package that does cannot be imported.
    """
    if isinstance(name, str) and name in table:
        return table[name]
    from importlib.metadata import entry_points

    offered = entry_points(group=group)
    require_one_of(parameter, name, [*table, *sorted(offered.names)])
    entry_point = offered[name]
    try:
        return entry_point.load()
    except Exception as error:  # code of another package, which may fail in any way
        raise ParameterError(
            f"`{parameter}={name!r}` stands for {entry_point.value!r} of another package, which "
            f"cannot be imported: {error}; repair or remove that package."
        ) from error
