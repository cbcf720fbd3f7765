"""Provenance: where a result comes from, kept in its metadata."""

import platform
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from .._version import __version__
from ..designs import design_fingerprint
from ..recording import Recording
from ..result import CapacityResult


def provenance(recording: Recording | None = None) -> dict[str, Any]:
    """Return date, machine, versions of the software and, of a recording, its metadata.

    The recording's metadata hold the plan of the run, with the seed, and the names of the files
    that were read.
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
    entries = {"estimated": date, "host": platform.node()} | _versions()
    if recording is None:
        return entries
    if recording.readout_unit:
        entries["readout_unit"] = recording.readout_unit
    if recording.plan:
        entries["design"] = design_fingerprint(recording.plan)
        if "seed" in recording.plan:
            entries["seed"] = recording.plan["seed"]
    return entries | recording.metadata


def with_provenance(
    result: CapacityResult, recording: Recording | None = None, **more: Any
) -> CapacityResult:
    """Return the result with its provenance in ``metadata["provenance"]``.

    Entries that only the caller knows are passed as `more`.
    """
    entries = provenance(recording) | more
    return replace(result, metadata=result.metadata | {"provenance": entries})


@cache
def _versions() -> dict[str, str]:
    return {
        "infocap": __version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }
