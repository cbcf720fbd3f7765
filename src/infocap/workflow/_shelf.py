"""A sweep on disk: its plan with a fingerprint, and a file for each finished setting."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replaced
from ..basis._product import ProductBasis
from ..errors import DataError, ParameterError
from ..estimators._method import Estimator
from ..result._capacity_result import CapacityResult
from ..result._files import load_result

FORMAT = "infocap sweep 1"
PLAN = "sweep.json"


def describe(
    *, make_system: Any, basis: ProductBasis, method: str | Estimator, options: Any, **plain: Any
) -> dict[str, Any]:
    """What makes two sweeps the same, as plain data."""
    return {
        "system": _name(make_system),
        "basis": basis.to_dict(),
        "indices": hashlib.sha256(np.asarray(basis.indices, dtype=np.int64).tobytes()).hexdigest()[:16],
        "n_terms": len(basis),
        "method": method if isinstance(method, str) else _name(method),
        "options": {name: repr(value) for name, value in options},
        **plain,
    }


class Shelf:
    """A folder with the plan of a sweep and a file for each finished setting."""

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        if plan["seed"] is None:
            raise ParameterError("path= keeps a sweep that can be continued, which needs a seed: seed=1.")
        self.path, self.plan, self.fingerprint = path, plan, _fingerprint(plan)
        if not (path / PLAN).exists():
            return
        try:
            earlier = json.loads((path / PLAN).read_text(encoding="utf-8"))
            there, kept = earlier["fingerprint"], earlier["plan"]
        except (ValueError, KeyError, TypeError) as problem:
            raise DataError(f"{path / PLAN} is not the plan of a sweep ({problem}); give another.") from None
        if there != self.fingerprint:
            others = [(name, kept.get(name), here) for name, here in plan.items() if kept.get(name) != here]
            changes = [f"{name} {their!r} there and {ours!r} here" for name, their, ours in others]
            raise DataError(
                f"{path} holds another sweep: its fingerprint is {there[:12]}, this one's is "
                f"{self.fingerprint[:12]} ({', '.join(changes)}); give another path, or remove the folder."
            )

    def load(self, point: dict[str, Any]) -> CapacityResult | None:
        """The result kept for a setting, if there is one."""
        file = self._file(point)
        return load_result(file) if file.exists() else None

    def save(self, point: dict[str, Any], result: CapacityResult) -> None:
        """Keep a result; it is there whole or not at all."""
        if not (self.path / PLAN).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            kept = {"format": FORMAT, "fingerprint": self.fingerprint, "plan": self.plan}
            with replaced(self.path / PLAN) as beside:
                beside.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        result.save(self._file(point))

    def _file(self, point: dict[str, Any]) -> Path:
        """A name a person can read, and a few digits that tell apart what rounds to the same."""
        said = ",".join(f"{name}={value}" for name, value in point.items())
        plain = "".join(letter if letter.isalnum() or letter in "=,.-+_" else "_" for letter in said)[:120]
        mark = _fingerprint({key: repr(value) for key, value in point.items()})[:8]
        return self.path / f"{plain}-{mark}.nc"


def _fingerprint(plan: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def _name(function: Any) -> str:
    """A function's name, with what a partial function has fixed; two lambdas of one place look alike."""
    if isinstance(function, functools.partial):
        fixed = [repr(value) for value in function.args]
        fixed += [f"{name}={value!r}" for name, value in sorted(function.keywords.items())]
        return f"{_name(function.func)}({', '.join(fixed)})"
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
