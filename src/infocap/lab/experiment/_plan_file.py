"""Files of plans: TOML for people to read and change, CSV with the inputs for other programs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._files import readable_path, write_whole
from ..._validation import require_one_of
from ...errors import DataError, ParameterError
from ...recording import PLAN_COMMENT, input_columns

if TYPE_CHECKING:
    from ._plan import Plan

# A larger file is no plan: the largest that make sense, with a family for each of many inputs, have
# some hundred kilobytes.
MAX_PLAN_BYTES = 10_000_000
# Without these entries it is not clear what a plan measures, so a file must have them.
REQUIRED_ENTRIES = ("n_inputs", "max_degree", "n_samples", "seed")
# The last entry before the metadata in the files that `Plan.save` writes.
LAST_ENTRY = "title"
# The line of the template in whose place the sweep comes, and what comes there without one.
SWEEP_LINE = "$sweep"
SWEEP_EXAMPLE = ("[sweep]", "power_dbm = [1.0, 4.5]", "length_m = [5, 40]")


def write_toml(path: Path, plan: Plan) -> None:
    """Write a plan as TOML, with the comment on each entry that plan.toml of this folder has."""
    require_one_of("path suffix", path.suffix, (".toml",))
    entries = plan.to_dict()
    metadata = entries.pop("metadata")
    sweep = entries.pop("sweep")
    entries["fingerprint"] = plan.fingerprint
    entries["design_fingerprint"] = plan.design_fingerprint

    values = {name: _toml(value) for name, value in entries.items() if value is not None}
    values["design_fingerprint"] = plan.design_fingerprint  # stands in a comment, without quotes
    absent = tuple(f"{name} = " for name, value in entries.items() if value is None)
    template = Path(__file__).with_name("plan.toml").read_text(encoding="utf-8")
    lines = []
    for line in template.splitlines():
        if line == SWEEP_LINE:
            lines += _sweep_lines(sweep)
        elif not line.startswith(absent):
            lines.append(Template(line).substitute(values))
    for name, value in metadata.items():
        lines.append(f"{_toml(name)} = {_toml(value)}")
    with write_whole(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sweep_lines(sweep: Mapping[str, Any] | None) -> list[str]:
    """Return the table of a sweep; where there is none, an example of one as a comment."""
    if not sweep:
        return [f"# {line}".rstrip() for line in SWEEP_EXAMPLE]
    return ["[sweep]", *(f"{name} = {_toml(values)}" for name, values in sweep.items())]


def read_toml(path: Path) -> dict[str, Any]:
    """Return the entries of a plan's file, among them the fingerprint if there is one."""
    if path.exists() and not path.is_file():
        readable_path(path)  # a folder, a pipe or a device is refused
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_PLAN_BYTES:
            raise DataError(f"{path} has {n_bytes:,} bytes, and no plan is so large; give a plan.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"{path} cannot be read ({problem.strerror}).") from None
    except RecursionError:
        raise DataError(f"{path} is not a plan: its entries are nested too deeply.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path} is not a plan in TOML: {problem}.") from None


def refuse_incomplete(path: Path, entries: Mapping[str, Any]) -> None:
    """Refuse a plan's file that lacks entries, for example because it was cut."""
    required = list(REQUIRED_ENTRIES)
    if "fingerprint" in entries:  # then infocap wrote the file, with all entries
        required.append(LAST_ENTRY)
    missing = [name for name in required if name not in entries]
    if missing:
        raise DataError(
            f"{path} is not complete: it has no {', '.join(missing)}; "
            "write it again with `infocap plan`, or copy it again."
        )


def write_csv(path: Path, plan: Plan) -> None:
    """Write the schedule of a plan as a table: ``design_index,u1,u2,...``."""
    import pandas

    require_one_of("path suffix", path.suffix, (".csv",))
    schedule = plan.schedule
    # A run of a sequence is one measurement; its time steps are rows of their own.
    first_rows = schedule.codes[:, None] * plan.steps
    design_index = (first_rows + np.arange(plan.steps)).ravel()
    inputs = schedule.inputs.reshape(-1, plan.n_inputs)
    names = input_columns([family.variable for family in plan.basis.families])
    table = pandas.DataFrame(inputs, index=design_index, columns=names)
    with write_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{PLAN_COMMENT}{json.dumps(plan.provenance)}\n")
        table.to_csv(file, index_label="design_index", lineterminator="\n")


def _toml(value: Any) -> str:
    """Return plain data as TOML, which Python reads but does not write.

    TOML on one line is JSON with ``=`` in place of ``:`` in tables, and with one more character
    that must be escaped.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", " = "))
        text = text.replace("\x7f", "\\u007f")
        tomllib.loads(f"value = {text}")
    except ValueError:
        raise ParameterError(
            f"{value!r}: None, infinity and NaN cannot be kept in a plan's file; "
            "give numbers, text, lists or tables."
        ) from None
    return text
