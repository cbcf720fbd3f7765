"""The folder of a sweep: one result per point, and a file that says which sweep it is."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_whole
from ..basis import ProductBasis
from ..errors import DataError
from ..estimators import Estimator
from ..result import CapacityResult, load_result
from ..typing import System
from ._grid import point_in_words

# The file in a sweep's folder that says what is swept, and how.
SWEEP_FILE = "sweep.json"
SWEEP_FORMAT = "infocap sweep 1"
# Letters of a point in the name of its file; what differs beyond them is told apart by a hash.
MAX_NAME_LENGTH = 120


class SweepFolder:
    """The folder that keeps the results of one sweep, and says in a file which sweep that is.

    Parameters
    ----------
    folder
        The folder, which is made with the first result.
    description
        What is swept and how, as plain data that tells one sweep from another.
    settings
        The values of each parameter.
    """

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, Any],
        settings: Mapping[str, tuple[Any, ...]],
    ) -> None:
        self.folder = folder
        self.description = json.loads(json.dumps(description))  # as a file gives it back
        self.settings = settings
        self._is_begun = False
        if (folder / SWEEP_FILE).exists():
            self._refuse_another_sweep()

    def kept_results(self, points: list[dict[str, Any]]) -> dict[int, CapacityResult]:
        """Return the results of those points that the folder already has, by their number."""
        results = {}
        for number, point in enumerate(points):
            file = self.folder / file_of_point(point, ".nc")
            if file.exists():
                results[number] = load_result(file)
        return results

    def keep(self, point: dict[str, Any], result: CapacityResult) -> None:
        """Save one result; the folder is made with the first one."""
        self.begin()
        result.save(self.folder / file_of_point(point, ".nc"))

    def begin(self) -> None:
        """Make the folder, and write down which sweep it holds."""
        if self._is_begun:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        entries = {
            "format": SWEEP_FORMAT,
            "settings": _plain_settings(self.settings),
            "plan": self.description,
        }
        with write_whole(self.folder / SWEEP_FILE) as temporary:
            temporary.write_text(json.dumps(entries, indent=1), encoding="utf-8")
        self._is_begun = True

    def _refuse_another_sweep(self) -> None:
        there = read_sweep_file(self.folder)["plan"]
        here = self.description
        differences = [
            f"{name} {there.get(name)!r} there and {here[name]!r} here"
            for name in here
            if there.get(name) != here[name]
        ]
        if differences:
            raise DataError(
                f"{self.folder} holds another sweep ({', '.join(differences)}); give another path, "
                "or remove the folder."
            )


def file_of_point(point: Mapping[str, Any], suffix: str) -> str:
    """Return the name of the file of one point.

    It can be read, and a hash tells apart what looks the same.

    >>> file_of_point({"gain": 1.5, "mode": "a/b"}, ".nc")
    'gain=1.5,mode=a_b-350cb854.nc'
    """
    readable = re.sub(r"[^\w=,.+-]", "_", point_in_words(point, ","))
    name = readable[:MAX_NAME_LENGTH]
    exact = json.dumps({key: repr(value) for key, value in point.items()}, sort_keys=True)
    digest = hashlib.sha256(exact.encode()).hexdigest()[:8]
    return f"{name}-{digest}{suffix}"


def is_sweep(folder: Path) -> bool:
    """Return whether a folder holds the results of a sweep."""
    return (folder / SWEEP_FILE).is_file()


def read_sweep_file(folder: Path) -> dict[str, Any]:
    """Return what the file of a sweep's folder says: settings, and which sweep it is."""
    sweep_file = folder / SWEEP_FILE
    if not is_sweep(folder):
        raise DataError(
            f"{folder} holds no results of a sweep; `infocap sweep FOLDER -o RESULTS` writes them, "
            "or infocap.sweep(..., path=...)."
        )
    try:
        entries = json.loads(sweep_file.read_text(encoding="utf-8"))
        file_format = entries["format"]
        entries["plan"] = dict(entries["plan"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(
            f"{sweep_file} does not describe a sweep ({problem}); give another path."
        ) from None
    if file_format != SWEEP_FORMAT:
        raise DataError(
            f"{sweep_file} is not an {SWEEP_FORMAT!r} file but {file_format!r}; give another path."
        )
    return entries


def _plain_settings(settings: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Any]] | None:
    """Return settings as JSON keeps them; None where values are no plain data."""
    plain = {name: list(values) for name, values in settings.items()}
    try:
        if json.loads(json.dumps(plain)) == plain:
            return plain
    except (TypeError, ValueError):
        pass
    return None


def describe_sweep(
    make_system: Callable[..., System],
    basis: ProductBasis,
    method: str | Estimator,
    method_options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what is swept and how, as plain data that tells one sweep from another."""
    indices = np.asarray(basis.indices, dtype=np.int64)
    return {
        "system": _name(make_system),
        "basis": basis.to_dict(),
        "indices": hashlib.sha256(indices.tobytes()).hexdigest()[:16],
        "n_terms": len(basis),
        "method": method if isinstance(method, str) else _name(method),
        "method_options": {name: repr(value) for name, value in (method_options or {}).items()},
    }


def _name(function: Any) -> str:
    """Return a function's name, with the arguments that a partial function has fixed.

    Two lambda functions of one place have the same name.
    """
    if isinstance(function, functools.partial):
        fixed = [repr(value) for value in function.args]
        fixed += [f"{name}={value!r}" for name, value in sorted(function.keywords.items())]
        return f"{_name(function.func)}({', '.join(fixed)})"
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
