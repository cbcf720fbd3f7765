"""Readers of further formats: functions from a path to a `Recording`, by the suffix of the file.

A script adds a line to `READERS`; an installed package registers an entry point of the group
``infocap.readers``, whose name is the suffix. A line of a script goes before the formats of
infocap, an entry point after them.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from ..._files import as_data_error, readable_path
from ...errors import DataError, ParameterError
from ...recording import Recording
from ._options import ReadOptions

ENTRY_POINT_GROUP = "infocap.readers"

Reader = Callable[[Path], Recording]

READERS: dict[str, Reader] = {}


def find_reader(suffix: str, infocap_suffixes: tuple[str, ...]) -> Reader | None:
    """Find the reader that a script added, or a package for a suffix that infocap does not read."""
    if suffix in READERS:
        return READERS[suffix]
    if suffix in infocap_suffixes:
        return None
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        if entry_point.name.lower() == suffix:
            try:
                return entry_point.load()
            except (ImportError, AttributeError) as problem:
                raise ParameterError(
                    f"the reader of {suffix!r} files, {entry_point.value}, cannot be loaded "
                    f"({problem}); install its package again."
                ) from problem
    return None


def registered_suffixes() -> tuple[str, ...]:
    """Return the suffixes that scripts and installed packages have added."""
    installed = [entry_point.name.lower() for entry_point in entry_points(group=ENTRY_POINT_GROUP)]
    return (*READERS, *installed)


def read_with(reader: Reader, path: Path, options: ReadOptions) -> Recording:
    """Read a file by a reader that was added, which returns a finished recording."""
    kind = path.suffix.lower()
    with as_data_error(readable_path(path, folder=path.is_dir()), f"a {kind} file"):
        recording = reader(path)
    if not isinstance(recording, Recording):
        raise DataError(
            f"the reader of {kind!r} files gave {type(recording).__name__} for {path}; "
            "it must give an infocap.Recording."
        )
    refuse_names(path, recording, options)
    return recording


def refuse_names(path: Path, recording: Recording, options: ReadOptions) -> None:
    """Refuse u=, x= and axes= for a file that says itself what is what."""
    for name in ("u", "x", "axes"):
        value = getattr(options, name)
        if value is not None:
            n_inputs = recording.inputs.shape[1]
            n_readouts = recording.readouts.shape[1]
            raise DataError(
                f"{name}={value!r} cannot be chosen in {path}, which holds {n_inputs} inputs and "
                f"{n_readouts} readouts and says itself which is which; leave out `{name}`."
            )
