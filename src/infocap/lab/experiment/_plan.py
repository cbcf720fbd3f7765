"""A plan: what will be measured, where, in which order; as plain data with a fingerprint."""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any, Self

import numpy as np

from ..._files import replaced
from ..._validation import number, one_of, whole_number, yes_or_no
from ...basis._delayed import delayed_basis
from ...basis._family import Family, describe
from ...basis._product import ProductBasis, product_basis
from ...designs import (
    DESIGNS,
    block_count,
    design_fingerprint,
    needs_weights,
    planned_inputs,
    weights_at,
)
from ...errors import DataError, ParameterError, warn
from ...recording._recording import DARK, NOISE, REFERENCE, input_columns
from ...recording._save import PLAN, to_json
from ...typing import Floats, Integers
from ._schedule import Schedule, joined

ORDERS = ("random", "doubling", "design")
# A larger file is no plan: the largest that make sense, with a family per input, have some hundred kilobytes.
MOST_BYTES = 10_000_000
MOST_INPUTS = 500_000_000  # Numbers that are sent to a device, 4 GB: at a thousand rows per second they take a week.
HEADER = "# What infocap is to measure;"  # the first words of every plan that `save` wrote
NEEDED = (
    "n_inputs",
    "max_degree",
    "n_samples",
    "seed",
)  # without these nobody can say what a plan measures
BENCH = "bench"  # the table of the metadata that describes the simulated bench
UNMEASURED = ("title", "metadata")  # may be put in other words without becoming another plan
CONSTANT_INPUTS = ("noise_input", "reference_input")
# The least value of each entry that is a whole number.
LEAST = {"n_inputs": 1, "max_degree": 0, "n_samples": 1, "seed": 0, "averages": 1, "extends": 0}
LEAST |= dict.fromkeys(
    ("noise_repeats", "repeat_every", "reference_every", "dark_every", "runs", "washout"), 0
)
# What plans of earlier versions meant without saying so.
FORMER = {"blocks": 1, "weighted": False, "shuffled": False}
# Entries that they did not have, and that are no part of a fingerprint where they say nothing: 0, none, or false.
LATER = (
    "weighted",
    "shuffled",
    "n_readouts",
    "max_delay",
    "runs",
    "washout",
    "dark_every",
    "settle_s",
    "extends",
)


@dataclass(frozen=True)
class Plan:
    """What to measure: inputs of a distribution, a design, an order, and repeats that tell the noise.

    Parameters
    ----------
    family, n_inputs, max_degree, domain, index_set, max_interactions
        The basis, as for `product_basis`; also the distribution of the inputs. With `infocap.inputs(...)` as family,
        which names each input, there are as many inputs as it names.
    n_samples, seed, design, blocks
        The design, as for `draw`; the number of blocks is kept in the plan's file.
    weighted
        Draw as `draw_weighted` does. By default where a function has E[y^4] above a tenth of the samples; `estimate`
        then finds the weights by itself.
    shuffled
        False for plans of earlier versions, which keep the points that they had.
    max_delay, runs, washout
        For a device with memory: the largest delay by degree, as for `delayed_basis`. The inputs are then `runs`
        sequences, of `washout` time steps and an equal share of `n_samples` each. A measurement is a whole run: a
        device with memory cannot go on in the middle of one, so an acquisition goes on with the next.
    order
        ``"random"``: drift becomes noise; ``"doubling"``: one block, then the next, two more, four more, each time in
        random order, so that a run stopped there is a whole design; ``"design"``.
    noise_repeats, noise_input
        So many measurements at one constant input, before all others. By default the upper quartile of every input:
        in the middle many a device is dark.
    repeat_every
        One input in n, chosen at random, is measured twice, the second time at a random moment.
    reference_every, reference_input
        After so many measurements one at a constant input, which shows drift.
    dark_every
        After so many measurements one with the source off, by the method ``dark()`` of the instrument. The latest is
        subtracted from the readouts of a recording; the store keeps both as they were measured.
    averages, settle_s
        A measurement is the mean of so many readings, so many seconds after its input was set.
    extends
        The number of samples of the plan that this one extends, as `extended` says; 0 for none.
    n_readouts
        How many channels a measurement has; without it the first two rows that agree decide.
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
    n_inputs: int = 0  # as many as there are families
    max_degree: int = 8
    n_samples: int = 1024
    seed: int = 1
    domain: tuple[float, float] | None = None
    index_set: str = "total"
    max_interactions: int | None = None
    design: str = "sobol"
    blocks: int | None = None
    weighted: bool | None = None
    shuffled: bool = True
    max_delay: Any = None
    runs: int = 0
    washout: int = 0
    order: str = "random"
    noise_repeats: int = 0
    noise_input: Sequence[float] | None = None
    repeat_every: int = 0
    reference_every: int = 0
    reference_input: Sequence[float] | None = None
    dark_every: int = 0
    averages: int = 1
    settle_s: float = 0.0
    extends: int = 0
    input_unit: str = ""
    readout_unit: str = ""
    channel: Sequence[str] = ()
    n_readouts: int | None = None
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: HTML from the report, which is loaded by name."""
        return str(import_module("infocap.lab.report").notebook(self))

    def __post_init__(self) -> None:
        if not self.n_inputs:
            object.__setattr__(
                self, "n_inputs", len(self.family) if isinstance(self.family, list | tuple) else 1
            )
        one_of("design", self.design, DESIGNS)
        one_of("order", self.order, ORDERS)
        if isinstance(self.channel, str) or not isinstance(self.channel, Sequence):
            raise ParameterError(
                f"`channel={self.channel!r}` must be a list of names, one for each readout."
            )
        if not isinstance(self.metadata, dict):
            raise ParameterError(
                f"`metadata={self.metadata!r}` must be a table of names and values."
            )
        metadata = json.loads(to_json("metadata", self.metadata))
        plain = {"family": _plain_family(self.family), "metadata": metadata}
        plain |= {
            name: whole_number(name, getattr(self, name), least) for name, least in LEAST.items()
        }
        plain |= {
            name: _numbers(name, getattr(self, name)) for name in ("domain", *CONSTANT_INPUTS)
        }
        plain |= {
            name: str(getattr(self, name)) for name in ("input_unit", "readout_unit", "title")
        }
        plain |= {
            "channel": tuple(map(str, self.channel)),
            "settle_s": number("settle_s", self.settle_s, 0.0),
        }
        if plain["extends"] >= plain["n_samples"]:
            raise ParameterError(
                f"`extends={self.extends}` must be below `n_samples={self.n_samples}`."
            )
        if self.n_readouts is not None:
            plain["n_readouts"] = whole_number("n_readouts", self.n_readouts, 1)
            if self.channel and len(self.channel) != self.n_readouts:
                raise ParameterError(
                    f"`n_readouts={self.n_readouts}` but `channel` has {len(self.channel)} names."
                )
        if self.max_delay is not None:
            plain |= _sequence(self, plain)
        elif plain["runs"] or plain["washout"]:
            raise ParameterError(
                "`runs` and `washout` are for sequences; give `max_delay`, as {1: 100, 2: 40}."
            )
        if plain["n_samples"] * plain["n_inputs"] > MOST_INPUTS:
            said = f"`n_samples={plain['n_samples']}` of {plain['n_inputs']} inputs are over {MOST_INPUTS:,} numbers"
            raise ParameterError(f"{said}, which no acquisition sends; take fewer.")
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        families, n = self.basis.families, self.n_inputs  # the basis refuses what has no meaning
        blocks, weighted = self.blocks, self.weighted
        if weighted is None:
            weighted = needs_weights(self.basis, self.n_samples)
        if yes_or_no("shuffled", self.shuffled):
            blocks = block_count(self.basis, self.n_samples, self.design, blocks)
        object.__setattr__(self, "blocks", whole_number("blocks", blocks, 1))
        object.__setattr__(self, "weighted", yes_or_no("weighted", weighted))
        for name in CONSTANT_INPUTS:
            given = getattr(self, name) or ()
            if len(given) not in (0, n):
                raise ParameterError(
                    f"{name} has {len(given)} values; give one for each of {n} inputs."
                )
            for value, family in zip(given, families, strict=False):
                low, high = family.bounds
                if not low <= value <= high:
                    raise ParameterError(
                        f"{name} has {value:g}, outside the domain [{low:g}, {high:g}]."
                    )

    @cached_property
    def basis(self) -> ProductBasis:
        """The functions whose capacities are wanted."""
        if self.max_delay is not None:
            return delayed_basis(self.family, self.n_inputs, self.max_delay, domain=self.domain)
        names = ("family", "n_inputs", "max_degree", "domain", "index_set", "max_interactions")
        return product_basis(**{name: getattr(self, name) for name in names})

    def in_words(self) -> str:
        """What is measured, in one sentence for people."""
        said = f"{self.n_samples} samples, {len(self.basis)} {self.basis.family_name} functions"
        how = f"up to degree {self.max_degree}, {self.design} design, {self.order} order"
        if self.max_delay is not None:
            reach = ", ".join(
                f"{delay} of degree {degree}" for degree, delay in self.max_delay.items()
            )
            how = f"with delays up to {reach}, {self.runs} runs of {self.steps} steps, washout {self.washout}"
        named = f"{self.title}; " if self.title else ""
        return f"{named}{said} {how}, seed {self.seed}, fingerprint {self.fingerprint[:12]}"

    @cached_property
    def inputs(self) -> Floats:
        """The design, (samples, inputs); all time steps of all runs of a sequence."""
        u = planned_inputs(self.basis, vars(self))
        u.flags.writeable = False
        return u

    @property
    def steps(self) -> int:
        """Time steps of one measurement: 1, or those of a run."""
        return self.washout + -(-self.n_samples // self.runs) if self.runs else 1

    @property
    def weights(self) -> Floats | None:
        """The weights of the inputs (samples,), for `estimate`; None where they are drawn as the basis assumes."""
        return weights_at(self.basis, self.inputs) if self.weighted else None

    def extended(self, n_samples: int) -> Self:
        """The same plan with so many samples, or a few more: blocks keep their size, the first rows stay the same.

        What was planned comes first, in the order that it had; what follows does not depend on the sizes in between.
        """
        n_samples, blocks, runs = (
            whole_number("n_samples", n_samples, 1),
            self.blocks or 1,
            self.runs,
        )
        if runs:  # more of the same length
            size = self.steps - self.washout
            runs = -(-n_samples // size)
            n_samples = runs * size
        elif size := self._block_size:
            blocks = -(-n_samples // size)  # rounded up
            n_samples = blocks * size
        first = self.extends or self.n_samples
        extends = first if first < n_samples else 0
        return replace(self, n_samples=n_samples, blocks=blocks, runs=runs, extends=extends)

    def is_extension_of(self, other: "Plan") -> bool:
        """Whether this plan is the other one with more samples."""
        return (
            other.n_samples < self.n_samples
            and self.extended(other.n_samples).fingerprint == other.fingerprint
        )

    @property
    def _block_size(self) -> int:
        """Samples per block; 0 for designs that can be extended by any number.

        Earlier versions drew one sequence, whose first points stay when more are drawn; so do random points.
        """
        blocks = self.blocks or 1
        return (
            self.n_samples // blocks
            if self.design != "random" and (self.shuffled or blocks > 1)
            else 0
        )

    @cached_property
    def schedule(self) -> Schedule:
        """Every measurement in the order of acquisition: noise, then samples and repeats, references in between."""
        former = self.extended(self.extends).schedule if self.extends else None
        n, start, done = self.runs or self.n_samples, 0, 0
        if former is not None:
            start, done = int(former.codes.max()) + 1, int((former.codes >= 0).sum())
        codes = self._further_codes(start, n) if start else self._first_codes(n)
        inputs = self.inputs.reshape(n, -1)[codes]  # those of a run in one row
        quartile = [float(family.quantile(np.array([0.75]))[0]) for family in self.basis.families]
        noise, reference = (np.array(getattr(self, name) or quartile) for name in CONSTANT_INPUTS)
        # Places between them, counted from the first of all; the one before the first new row belongs to the former.
        place, source_off = np.arange(done > 0, len(codes) + 1), np.full(self.n_inputs, np.nan)
        both = ((self.dark_every, DARK, source_off), (self.reference_every, REFERENCE, reference))
        between = [
            (one, *what)
            for every, *what in both
            if every
            for one in place[(done + place) % every == 0]
        ]
        if between:
            places, kinds, sent = zip(*between, strict=True)
            codes, inputs = np.insert(codes, places, kinds), np.insert(inputs, places, sent, axis=0)
        if former is not None:
            return joined([former, Schedule(codes, inputs)])
        first = Schedule(
            np.full(self.noise_repeats, NOISE), np.tile(noise, (self.noise_repeats, 1))
        )
        return (
            joined([first, Schedule(codes, inputs)])
            if self.noise_repeats
            else Schedule(codes, inputs)
        )

    def _first_codes(self, n: int) -> Integers:
        """Design indices, repeats among them, in the order of acquisition.

        A repeat comes at a moment of its own: noise that lasts longer than one measurement would else look too small.
        The inputs to repeat are random too.
        """
        rng = np.random.default_rng([self.seed, n])
        chosen = (
            rng.permutation(n)[: -(-n // self.repeat_every)] if self.repeat_every else np.arange(0)
        )
        codes = np.concatenate([np.arange(n), np.sort(chosen)])
        moments = rng.random(len(codes))
        if self.order == "design":
            moments = codes + 0.5 * (np.arange(len(codes)) >= n)
        if (
            self.order == "doubling"
        ):  # the first 2^k blocks come before all others; 2^k points in old plans
            number = (
                codes // (n // (self.blocks or 1))
                if self.shuffled
                else np.maximum(codes, n / 16 - 1)
            )
            moments += np.ceil(np.log2(number + 1))
        return codes[np.argsort(moments, kind="stable")]

    def _further_codes(self, start: int, n: int) -> Integers:
        """Design indices from `start` to n that extend a plan; those of a larger n begin in the same way.

        One block after the other, each in random order; after every `repeat_every` rows one of these is repeated.
        """
        codes, every, size = np.arange(start, n), self.repeat_every, self._block_size
        if size and self.order != "design":
            rng = np.random.default_rng([self.seed, start])
            codes = np.concatenate([rng.permutation(block) for block in codes.reshape(-1, size)])
        if every:
            ends = np.arange(every, len(codes) + 1, every)
            back = every * np.random.default_rng([self.seed, start, 1]).random(len(ends))
            codes = np.insert(codes, ends, codes[ends - 1 - back.astype(int)])
        return codes

    @cached_property
    def fingerprint(self) -> str:
        """The same for plans that measure the same, whatever their title and metadata say."""
        measured = {key: value for key, value in self.to_dict().items() if key not in UNMEASURED}
        for name in LATER:  # plans of earlier versions keep the fingerprint that they had
            if not measured[name]:
                del measured[name]
        if self.averages == 1:
            del measured["averages"]
        if BENCH in self.metadata:  # words, but for the simulated bench
            measured[BENCH] = self.metadata[BENCH]
        return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()

    @property
    def design_fingerprint(self) -> str:
        """The same for plans with the same inputs; every file of theirs tells it."""
        return design_fingerprint(self.to_dict())

    @property
    def story(self) -> dict[str, Any]:
        """What every file that is made by this plan tells about it."""
        return {
            "plan": self.to_dict(),
            "fingerprint": self.fingerprint,
            "design": self.design_fingerprint,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return json.loads(json.dumps({one.name: getattr(self, one.name) for one in fields(self)}))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The plan that `to_dict` described, now or in an earlier version; a name that is unknown is an error."""
        try:
            for name in data:
                one_of("entry of the plan", name, cls.__dataclass_fields__)
            return cls(**data if "shuffled" in data else FORMER | data)
        except (TypeError, AttributeError) as problem:
            raise ParameterError(f"an entry of the plan is of the wrong kind: {problem}.") from None

    def save(self, path: str | Path) -> Path:
        """Write as TOML, with a word on each entry: those in the file plan.toml beside this one."""
        path = Path(path)
        one_of("path suffix", path.suffix, (".toml",))
        entries = self.to_dict() | {"fingerprint": self.fingerprint}
        known = {
            name: _toml(value)
            for name, value in entries.items()
            if value is not None and name != "metadata"
        }
        known["design_fingerprint"] = self.design_fingerprint
        lines = Path(__file__).with_name("plan.toml").read_text(encoding="utf-8").splitlines()
        absent = tuple(f"{name} = " for name, value in entries.items() if value is None)
        lines = [Template(line).substitute(known) for line in lines if not line.startswith(absent)]
        lines += [f"{_toml(name)} = {_toml(value)}" for name, value in self.metadata.items()]
        with replaced(path) as beside:
            beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a TOML file."""
        path = Path(path)
        try:
            if path.stat().st_size > MOST_BYTES:
                raise DataError(f"{path} has {path.stat().st_size:,} bytes; that is no plan.")
            text = path.read_text(encoding="utf-8")
            data = tomllib.loads(text)
            fingerprint, plan = data.pop("fingerprint", None), cls.from_dict(data)
        except OSError as problem:
            raise DataError(f"{path} cannot be read ({problem.strerror}).") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise DataError(f"{path} is not a plan in TOML: {problem}.") from None
        except ParameterError as problem:
            raise ParameterError(f"{path}: {problem}") from None
        # `save` writes all entries, and the title last: without it the file was cut.
        lost = [
            name
            for name in (*NEEDED, "title")
            if name not in data and (name in NEEDED or text.startswith(HEADER))
        ]
        if lost:
            said = f"{path} is not complete: it has no {', '.join(lost)}"
            raise DataError(f"{said}; write it again with `infocap plan`, or copy it again.")
        if fingerprint not in (None, plan.fingerprint):
            said = f"{path} was changed since infocap wrote it: its fingerprint was {str(fingerprint)[:12]}"
            warn(
                f"{said} and is {plan.fingerprint[:12]} now; if that is meant, delete the line `fingerprint`."
            )
        return plan

    def write_inputs(self, path: str | Path) -> Path:
        """Write the schedule as a table for other software: ``design_index,u1,u2,...``, in the order of acquisition.

        The column of an input with a name is called, for example, ``u1: Voltage A [V]``.

        An index that appears a second time is a repeat of that input; -1 is the noise input, -2 the reference, -3 a
        measurement with the source off, which has no inputs.
        """
        import pandas

        path = Path(path)
        one_of("path suffix", path.suffix, (".csv",))
        names = input_columns([family.variable for family in self.basis.families])
        codes = self.schedule.codes[:, None] * self.steps + np.arange(self.steps)
        rows = pandas.DataFrame(
            self.schedule.inputs.reshape(-1, self.n_inputs), codes.ravel(), names
        )
        with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            file.write(f"{PLAN}{json.dumps(self.story)}\n")
            rows.to_csv(file, index_label="design_index", lineterminator="\n")
        return path


def _numbers(name: str, given: Any) -> tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ParameterError(f"`{name}={given!r}` must be a list of numbers.")
    return tuple(number(name, one) for one in given)


def _sequence(plan: Plan, plain: dict[str, Any]) -> dict[str, Any]:
    """The entries of a plan for a device with memory that follow from others; what makes no sense there is refused."""
    if not isinstance(plan.max_delay, dict) or not all(
        str(degree).isdecimal() for degree in plan.max_delay
    ):
        raise ParameterError(
            f"`max_delay={plan.max_delay!r}` must be a table of degrees and delays: {{1: 100, 2: 4}}."
        )
    for name in ("noise_repeats", "reference_every", "dark_every", "max_interactions", "weighted"):
        if getattr(plan, name):
            raise ParameterError(
                f"`{name}={getattr(plan, name)!r}` has no meaning for a sequence; leave it out."
            )
    delays = {
        int(degree): whole_number("max_delay", delay, 0) for degree, delay in plan.max_delay.items()
    }
    found = {
        "max_delay": delays,
        "max_degree": max(delays, default=1),
        "design": "random",
        "weighted": False,
    }
    return found | {
        "runs": max(plain["runs"], 1),
        "washout": max(plain["washout"], *delays.values()),
    }


def _plain_family(family: Any) -> Any:
    """Families as plain data; the basis refuses what is neither a family nor the name of one."""
    if isinstance(family, list | tuple):
        return tuple(_plain_family(one) for one in family)
    if isinstance(family, dict):
        for key in family:
            one_of("entry of family", key, ("name", "parameters", "domain", "variable"))
        if not isinstance(family.get("name"), str):
            raise ParameterError(f'family={family!r} has no name, such as name = "jacobi".')
    return describe(family) if isinstance(family, Family) else family


def _toml(value: Any) -> str:
    """Plain data in TOML, which Python reads but does not write: it is JSON, but for the = in tables."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", " = "))
        text = text.replace("\x7f", "\\u007f")
        tomllib.loads(f"value = {text}")
    except ValueError:
        said = f"{value!r}: None, infinity and NaN cannot be kept in a plan's file"
        raise ParameterError(f"{said}; give numbers, text, lists or tables.") from None
    return text
