"""A plan: what will be measured, where, in which order; as plain data with a fingerprint."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import replaced
from .._check import number, one_of, whole_number
from ..basis import Family, ProductBasis, describe, product_basis, restore
from ..designs import DESIGNS, draw
from ..errors import DataError, ParameterError
from ..typing import Floats
from ._schedule import ORDERS, Schedule, make_schedule
from ._toml import toml_line

MOST_BYTES = 10_000_000  # of a plan's file
BENCH = "bench"  # the table of the metadata that describes the simulated bench
UNMEASURED = ("title", "metadata")  # may be put in other words without becoming another plan
COMMENTS = {
    "family": "legendre (uniform inputs), hermite (normal), chebyshev, fourier, ...",
    "max_degree": "of the functions whose capacities are wanted",
    "n_samples": "a power of two for a Sobol design",
    "domain": "interval of every input, in the unit below",
    "order": "of acquisition: random, doubling (random within each power of two) or design",
    "noise_repeats": "measurements at noise_input before all others: the noise, for factor analysis",
    "repeat_every": "4: one input in four, chosen at random, is measured twice; 0: none. Tells what noise allows",
    "reference_every": "a measurement at reference_input after so many others shows drift; 0: none",
}


@dataclass(frozen=True)
class Plan:
    """What to measure: inputs of a distribution, a design, an order, and repeats that tell the noise.

    Parameters
    ----------
    family, n_inputs, max_degree, domain, index_set, max_interactions
        The basis, as for `product_basis`; also the distribution of the inputs.
    n_samples, seed, design, blocks
        The design, as for `draw`.
    order
        ``"random"``: a readout that lags by one sample is then obvious, and drift becomes noise; ``"doubling"``:
        random within each power of two, so that a run stopped there is a whole Sobol design; ``"design"``.
    noise_repeats, noise_input
        So many measurements at one constant input, before all others. By default the upper quartile of every input:
        in the middle many a device is dark.
    repeat_every
        One input in n, chosen at random, is measured twice, the second time at a random moment.
    reference_every, reference_input
        After so many measurements one at a constant input, which shows drift.
    input_unit, readout_unit, channel
        What the numbers are, and the names of the readouts.
    title, metadata
        For people: device, operator, settings; any plain data.

    Examples
    --------
    >>> plan = Plan(n_inputs=2, max_degree=8, n_samples=1024, seed=1)
    >>> plan.inputs.shape, len(plan.basis)
    ((1024, 2), 45)
    """

    family: Any = "legendre"
    n_inputs: int = 1
    max_degree: int = 8
    n_samples: int = 1024
    seed: int = 1
    domain: Sequence[float] | None = None
    index_set: str = "total"
    max_interactions: int | None = None
    design: str = "sobol"
    blocks: int = 1
    order: str = "random"
    noise_repeats: int = 0
    noise_input: Sequence[float] | None = None
    repeat_every: int = 0
    reference_every: int = 0
    reference_input: Sequence[float] | None = None
    input_unit: str = ""
    readout_unit: str = ""
    channel: Sequence[str] = ()
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of("design", self.design, DESIGNS)
        one_of("order", self.order, ORDERS)
        plain: dict[str, Any] = {"family": _plain_family(self.family)}
        for name, least in LEAST.items():
            plain[name] = whole_number(name, getattr(self, name), least)
        for name in ("domain", "noise_input", "reference_input"):
            given = getattr(self, name)
            plain[name] = None if given is None else _numbers(name, given)
        if plain["domain"] is not None and len(plain["domain"]) != 2:
            raise ParameterError(
                f"`domain={self.domain!r}` is not an interval; give two numbers, low < high."
            )
        for name in ("input_unit", "readout_unit", "title"):
            plain[name] = str(getattr(self, name))
        if isinstance(self.channel, str) or not isinstance(self.channel, Sequence):
            raise ParameterError(f"channel={self.channel!r} must be a list of names, one for each readout.")
        plain["channel"] = tuple(str(one) for one in self.channel)
        plain["metadata"] = _plain_metadata(self.metadata)
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        families = self.basis.families  # made here, it refuses what has no meaning
        for name in ("noise_input", "reference_input"):
            if plain[name] is None:
                continue
            if len(plain[name]) != self.n_inputs:
                raise ParameterError(
                    f"{name} has {len(plain[name])} values; give one for each of {self.n_inputs} inputs."
                )
            for value, family in zip(plain[name], families, strict=True):
                low, high = family.bounds
                if not low <= value <= high:
                    raise ParameterError(
                        f"{name} has {value:g}, outside the domain [{low:g}, {high:g}]; the device would be sent it."
                    )

    @cached_property
    def basis(self) -> ProductBasis:
        """The functions whose capacities are wanted."""
        given = self.family if isinstance(self.family, tuple) else (self.family,) * self.n_inputs
        families = [one if isinstance(one, str) else restore(**one) for one in given]
        return product_basis(
            families,
            self.n_inputs,
            self.max_degree,
            domain=None if self.domain is None else (self.domain[0], self.domain[-1]),
            index_set=self.index_set,
            max_interactions=self.max_interactions,
        )

    @cached_property
    def inputs(self) -> Floats:
        """The design, (samples, inputs)."""
        u = draw(self.basis, self.n_samples, method=self.design, seed=self.seed, blocks=self.blocks)
        u.flags.writeable = False
        return u

    @cached_property
    def schedule(self) -> Schedule:
        """Every measurement in the order of acquisition."""
        return make_schedule(
            self.inputs,
            order=self.order,
            seed=self.seed,
            repeat_every=self.repeat_every,
            noise=self._constant_input(self.noise_input),
            noise_repeats=self.noise_repeats,
            reference=self._constant_input(self.reference_input),
            reference_every=self.reference_every,
        )

    @cached_property
    def fingerprint(self) -> str:
        """The same for plans that measure the same, whatever their title and metadata say."""
        measured = {key: value for key, value in self.to_dict().items() if key not in UNMEASURED}
        if BENCH in self.metadata:  # words, but for the simulated bench
            measured[BENCH] = self.metadata[BENCH]
        return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return json.loads(json.dumps({one.name: getattr(self, one.name) for one in fields(self)}))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """The plan that `to_dict` described; a name that is unknown is an error."""
        known = [one.name for one in fields(cls)]
        for name in data:
            one_of("entry of the plan", name, known)
        try:
            return cls(**data)
        except TypeError as problem:
            raise ParameterError(f"an entry of the plan is of the wrong kind: {problem}.") from None

    def save(self, path: str | Path) -> Path:
        """Write as TOML, with a word on each entry."""
        path = Path(path)
        one_of("path suffix", path.suffix, (".toml",))
        lines = ["# What infocap is to measure; `infocap acquire` runs it.", ""]
        lines += [
            toml_line(name, value, COMMENTS.get(name, ""))
            for name, value in self.to_dict().items()
            if value is not None and name != "metadata"
        ]
        lines += ["", "[metadata]", *(toml_line(name, value) for name, value in self.metadata.items())]
        with replaced(path) as beside:
            beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a TOML file."""
        path = Path(path)
        try:
            if path.stat().st_size > MOST_BYTES:
                raise DataError(f"{path} has {path.stat().st_size:,} bytes; that is no plan.")
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise DataError(f"{path} cannot be read ({problem.strerror}).") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise DataError(f"{path} is not a plan in TOML: {problem}.") from None
        try:
            return cls.from_dict(data)
        except ParameterError as problem:
            raise ParameterError(f"{path}: {problem}") from None

    def write_inputs(self, path: str | Path) -> Path:
        """Write the schedule as a table for other software: ``index,u1,u2,...``, in the order of acquisition.

        An index that appears a second time is a repeat of that input; -1 is the noise input, -2 the reference.
        Measure row by row, write one row of readouts for each, and come back with ``infocap import``.
        """
        path = Path(path)
        one_of("path suffix", path.suffix, (".csv",))
        story = json.dumps({"plan": self.to_dict(), "fingerprint": self.fingerprint})
        names = ",".join(["index", *(f"u{k + 1}" for k in range(self.n_inputs))])
        with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"# infocap plan {story}\n{names}\n")
            for code, u in zip(self.schedule.codes.tolist(), self.schedule.inputs.tolist(), strict=True):
                file.write(",".join([str(code), *map(repr, u)]) + "\n")
        return path

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def _constant_input(self, given: Sequence[float] | None) -> Floats:
        """The input given, or the upper quartile of each."""
        if given is not None:
            return np.array(given, dtype=float)
        return np.array([float(family.quantile(np.array([0.75]))[0]) for family in self.basis.families])


LEAST = {
    "n_inputs": 1,
    "max_degree": 0,
    "n_samples": 1,
    "seed": 0,
    "blocks": 1,
    "noise_repeats": 0,
    "repeat_every": 0,
    "reference_every": 0,
}


def _numbers(name: str, given: Any) -> tuple[float, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ParameterError(f"`{name}={given!r}` must be a list of numbers.")
    return tuple(number(name, one) for one in given)


def _plain_family(family: Any) -> Any:
    """Names stay names, families become plain data, and so do several of them."""
    if isinstance(family, Family):
        return describe(family)
    if isinstance(family, list | tuple):
        return tuple(_plain_family(one) for one in family)
    if isinstance(family, dict):
        for key in family:
            one_of("entry of family", key, ("name", "parameters", "domain"))
        if not isinstance(family.get("name"), str):
            raise ParameterError(f'family={family!r} has no name, such as name = "jacobi".')
    elif not isinstance(family, str):
        raise ParameterError(f"`family={family!r}` must be a name or a Family, or one for each input.")
    return family


def _plain_metadata(metadata: Any) -> dict[str, Any]:
    try:
        plain = json.loads(json.dumps(metadata))
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"metadata must be plain data, numbers, text and lists: {problem}.") from None
    if not isinstance(plain, dict):
        raise ParameterError(f"metadata={metadata!r} must be a table of names and values.")
    return plain
