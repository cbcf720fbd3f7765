"""A plan: what will be measured, where and in which order, as plain data with a fingerprint."""

import hashlib
import json
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..._formatting import counted, html_for_notebook
from ..._kinds import is_sequence
from ..._validation import (
    checks_arguments,
    require_boolean,
    require_number,
    require_one_of,
    require_whole_number,
    shown,
)
from ...basis import Family, ProductBasis, delayed_basis, describe, product_basis
from ...designs import (
    DESIGNS,
    UNNAMED_SHARE,
    WEIGHTED_SHARE,
    block_count,
    design_fingerprint,
    draw,
    needs_weights,
    planned_inputs,
    require_share,
    steps_per_run,
    weights_at,
)
from ...errors import ParameterError, warn
from ...recording import to_json
from ...typing import Floats, Limits
from ...workflow import grid_of, point_in_words, points_of
from ._measurement import Kind
from ._plan_file import read_toml, refuse_incomplete, write_csv, write_toml
from ._schedule import Schedule, make_schedule

ORDERS = ("random", "doubling", "design")
# Numbers that are sent to a device. As floats they take 4 GB, and at a thousand rows per second
# with one input a week passes until all are sent.
MAX_INPUT_NUMBERS = 500_000_000
# The table of the metadata that describes the simulated bench.
BENCH = "bench"
# Entries that only describe the plan: with another title it is the same plan.
DESCRIPTIVE_ENTRIES = ("title", "metadata")
# Entries that are text.
TEXT_ENTRIES = ("input_unit", "readout_unit", "title")
# Measurements at reference inputs, where a plan does not say how many: one in this many samples, or
# more often in a short run, so that there are N_REFERENCES, but no more often than the second
# number. With fewer nothing is proved (diagnostics/_references.py), and a short run has none. Of a
# very long run, MAX_REFERENCES tell enough.
SAMPLES_PER_REFERENCE = 32
MIN_SAMPLES_PER_REFERENCE = 8
N_REFERENCES = 32
MAX_REFERENCES = 1024
# The points of a Sobol design, so many that each input is in each quarter of its range once.
N_REFERENCE_POINTS = 4
# The smallest value of each entry that is a whole number.
MIN_VALUES = {
    "n_inputs": 1,
    "max_degree": 0,
    "n_samples": 1,
    "seed": 0,
    "averages": 1,
    "extends": 0,
    "noise_repeats": 0,
    "repeat_every": 0,
    "dark_every": 0,
    "runs": 0,
    "washout": 0,
}
# A device with memory is measured in whole runs, between which nothing can be put.
NOT_FOR_SEQUENCES = (
    "noise_repeats",
    "reference_every",
    "dark_every",
    "max_interactions",
    "weighted",
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure: inputs of a distribution, a design, an order, and repeats to tell the noise.

    Parameters
    ----------
    family, n_inputs, max_degree, domain, index_set, max_interactions
        The basis, as for `product_basis`; also the distribution of the inputs. With
        `infocap.inputs(...)` as family, there are as many inputs as it names.
    n_samples, seed, design, blocks
        The design, as for `draw`; the number of blocks is kept in the plan's file.
    weighted, share
        Draw as `draw_weighted` does, with this share. By default where a function has E[y^4] above
        a tenth of the samples; `estimate` then finds the weights by itself.
    max_delay, runs, washout
        For a device with memory: the largest delay by degree, as for `delayed_basis`. The inputs
        are then `runs` sequences, of `washout` time steps and an equal share of `n_samples` each. A
        measurement is a whole run: a device with memory cannot go on in the middle of a run, so an
        acquisition goes on with the next.
    order
        ``"random"``: drift becomes noise. ``"doubling"``: block after block, then two more, then
        four more, each time in random order, so that a run that is stopped there is a whole design.
        ``"design"``: as the design has them.
    noise_repeats, noise_input
        The number of measurements at one constant input, before all others. By default the input is
        the upper quartile of every input, because many devices are dark in the middle.
    repeat_every
        One input in `repeat_every`, chosen at random, is measured twice, the second time at a
        random moment.
    reference_every, reference_inputs
        Among this many measurements comes one, at a random moment, at one of a few inputs that are
        measured again and again: a run whose readouts there stayed the same was steady. They take
        no part in the estimation. By default one in 32, more often in a run of fewer than 1024
        samples, and none below 256 samples and for sequences; 0 for none. The inputs, a list of
        points, are four of the distribution by default.
    dark_every
        After this many measurements comes one with the source off, by the method ``dark()`` of the
        instrument. The latest is subtracted from the readouts of a recording; the store keeps both
        as they were measured.
    averages, settle_s
        A measurement is the mean of `averages` readings, `settle_s` seconds after its input is set.
    extends
        The number of samples of the plan that this plan extends, as `extended` sets it; 0 for none.
    n_readouts
        How many channels a measurement has; without it the first two rows that agree decide.
    input_unit, readout_unit, channel
        What the numbers are, and the names of the readouts.
    sweep
        The values of settings of the device, ``{"power_dbm": [1.0, 4.5], "length_m": [5, 40]}``.
        All that the plan says is then measured at each of their combinations, by `acquire_sweep`.
    setting
        What the device is set to: one of these combinations, as `at` sets it. The instrument gets
        it by its method ``set(**setting)``.
    title, metadata
        For people: device, operator, settings; any plain data.

    Raises
    ------
    ParameterError
        Where an entry has no meaning, names no existing choice, or contradicts another.

    Examples
    --------
    >>> plan = Plan(n_inputs=2, max_degree=8, n_samples=1024, seed=1)
    >>> plan.inputs.shape, len(plan.basis)
    ((1024, 2), 45)
    """

    family: Any = "legendre"
    n_inputs: int = 0  # 0: as many as there are families
    max_degree: int = 8
    n_samples: int = 1024
    seed: int = 1
    domain: Limits | None = None
    index_set: str = "total"
    max_interactions: int | None = None
    design: str = "sobol"
    blocks: int | None = None
    weighted: bool | None = None
    share: float = WEIGHTED_SHARE
    max_delay: Any = None
    runs: int = 0
    washout: int = 0
    order: str = "random"
    noise_repeats: int = 0
    noise_input: Sequence[float] | None = None
    repeat_every: int = 0
    reference_every: int | None = None
    reference_inputs: Sequence[Sequence[float]] | None = None
    dark_every: int = 0
    averages: int = 1
    settle_s: float = 0.0
    extends: int = 0
    input_unit: str = ""
    readout_unit: str = ""
    channel: Sequence[str] = ()
    n_readouts: int | None = None
    sweep: dict[str, Any] | None = None
    setting: dict[str, Any] | None = None
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("design", self.design, DESIGNS)
        require_one_of("order", self.order, ORDERS)
        self._set(_plain_entries(self))
        _check_readouts(self)
        if self.max_delay is not None:
            self._set(_sequence_entries(self))
        elif self.runs or self.washout:
            raise ParameterError(
                "`runs` and `washout` are for sequences; give `max_delay`, as {1: 100, 2: 40}."
            )
        _check_size(self)
        self._set(_design_entries(self))
        self._set({"reference_every": _reference_every(self)})
        _check_constant_inputs(self)

    def _set(self, entries: Mapping[str, Any]) -> None:
        """Set entries while the plan is made; afterwards it is frozen."""
        for name, value in entries.items():
            object.__setattr__(self, name, value)

    # What the entries mean.

    @cached_property
    def basis(self) -> ProductBasis:
        """The functions whose capacities are wanted."""
        if self.max_delay is not None:
            return delayed_basis(self.family, self.n_inputs, self.max_delay, domain=self.domain)
        return product_basis(
            self.family,
            self.n_inputs,
            self.max_degree,
            domain=self.domain,
            index_set=self.index_set,
            max_interactions=self.max_interactions,
        )

    @cached_property
    def inputs(self) -> Floats:
        """The design, (samples, inputs); all time steps of all runs of a sequence."""
        u = planned_inputs(self.basis, vars(self))
        u.flags.writeable = False
        return u

    @property
    def sample_weight(self) -> Floats | None:
        """The weight of each sample, (samples,), for `estimate`.

        None where the inputs are drawn as the basis assumes.
        """
        return weights_at(self.basis, self.inputs, self.share) if self.weighted else None

    @property
    def steps(self) -> int:
        """Time steps of one measurement: 1, or those of a run with its washout."""
        if not self.runs:
            return 1
        return steps_per_run(self.n_samples, self.runs, self.washout)

    @cached_property
    def reference_points(self) -> Floats:
        """The inputs that are measured again and again, (points, inputs)."""
        if self.reference_inputs:
            return np.array(self.reference_inputs)
        return draw(self.basis, N_REFERENCE_POINTS, seed=self.seed)

    @property
    def n_blocks(self) -> int:
        """The number of blocks of the design."""
        return self.blocks or 1

    @property
    def block_size(self) -> int:
        """Samples per block; 0 for random points, which can be extended by any number."""
        return 0 if self.design == "random" else self.n_samples // self.n_blocks

    @cached_property
    def schedule(self) -> Schedule:
        """Every measurement in the order of acquisition.

        Noise comes first, then samples and repeats, with references and dark levels in between.
        """
        return make_schedule(self)

    def in_words(self) -> str:
        """Return what is measured, in one sentence for people."""
        n_references = self.schedule.count(Kind.REFERENCE)
        references = f" + {counted(n_references, 'reference row')}" if n_references else ""
        functions = (
            f"{self.n_samples} samples{references}, {len(self.basis)} {self.basis.family_name} "
            "functions"
        )
        if self.max_delay is None:
            how = f"up to degree {self.max_degree}, {self.design} design, {self.order} order"
        else:
            delays = [f"{delay} of degree {degree}" for degree, delay in self.max_delay.items()]
            runs = f"{self.runs} runs of {self.steps} steps, washout {self.washout}"
            how = f"with delays up to {', '.join(delays)}, {runs}"
        title = f"{self.title}; " if self.title else ""
        if self.setting:
            title += f"{point_in_words(self.setting)}; "
        fingerprint = self.fingerprint[:12]
        return f"{title}{functions} {how}, seed {self.seed}, fingerprint {fingerprint}"

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

    # Sweeps.

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every setting of a sweep, in the order of acquisition: the last entry varies fastest."""
        return points_of(self.sweep) if self.sweep else []

    def at(self, **setting: Any) -> Self:
        """Return the plan for one setting of a sweep.

        Parameters
        ----------
        **setting
            The value of every entry of `sweep`.

        Examples
        --------
        >>> plan = Plan(n_inputs=2, n_samples=64, sweep={"power_dbm": [1.0, 4.5]})
        >>> plan.at(power_dbm=4.5).setting
        {'power_dbm': 4.5}
        """
        points = self.settings
        if setting not in points:
            grid = self.sweep or {}
            known = "; ".join(f"{name} in {list(values)}" for name, values in grid.items())
            raise ParameterError(
                f"the plan has no setting {point_in_words(setting) or 'without values'}; "
                f"it has {known or 'no sweep'}."
            )
        return replace(self, sweep=None, setting=points[points.index(setting)])

    # Longer plans.

    @checks_arguments
    def extended(self, n_samples: int) -> Self:
        """Return the same plan with more samples.

        What was planned comes first, in the order that it had. What follows does not depend on the
        sizes in between.

        Parameters
        ----------
        n_samples
            The number of samples in all. It is rounded up, so that blocks and runs keep their size.

        Examples
        --------
        >>> plan = Plan(n_inputs=2, n_samples=64, blocks=4, seed=1)
        >>> longer = plan.extended(100)
        >>> longer.n_samples, longer.blocks
        (112, 7)
        >>> bool((longer.inputs[:64] == plan.inputs).all())
        True
        """
        n_samples = require_whole_number("n_samples", n_samples, 1)
        blocks = self.n_blocks
        runs = self.runs
        if runs:
            samples_per_run = self.steps - self.washout
            runs = -(-n_samples // samples_per_run)  # rounded up
            n_samples = runs * samples_per_run
        elif self.block_size:
            blocks = -(-n_samples // self.block_size)  # rounded up
            n_samples = blocks * self.block_size
        n_first = self.extends or self.n_samples
        extends = n_first if n_first < n_samples else 0
        return replace(self, n_samples=n_samples, blocks=blocks, runs=runs, extends=extends)

    @checks_arguments
    def is_extension_of(self, other: "Plan") -> bool:
        """Return whether this plan is the other plan with more samples.

        Parameters
        ----------
        other
            The shorter plan.
        """
        if other.n_samples >= self.n_samples:
            return False
        return self.extended(other.n_samples).fingerprint == other.fingerprint

    # The plan as data, and in files.

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of what is measured: the same whatever title and metadata say.

        Entries that have their default value are left out, so that an entry that is new in a later
        version does not change the fingerprints of plans that do not use it. So is the share of
        weighted inputs where it is the one of plans that name none, and of inputs without weights.
        """
        measured = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name not in (*DESCRIPTIVE_ENTRIES, "share") and value != entry.default:
                measured[entry.name] = value
        if self.weighted and self.share != UNNAMED_SHARE:
            measured["share"] = self.share
        if BENCH in self.metadata:  # what the simulated bench does is measured, too
            measured[BENCH] = self.metadata[BENCH]
        return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()

    @property
    def design_fingerprint(self) -> str:
        """A short checksum of the inputs, which every file made by this plan carries."""
        return design_fingerprint(self.to_dict())

    @property
    def provenance(self) -> dict[str, Any]:
        """The plan and its fingerprints, as every file made by this plan carries them."""
        return {
            "plan": self.to_dict(),
            "fingerprint": self.fingerprint,
            "design": self.design_fingerprint,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the entries as plain data, for JSON."""
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.loads(json.dumps(entries))

    @classmethod
    @checks_arguments
    def from_dict(cls, entries: Mapping[str, Any]) -> Self:
        """Return the plan that `to_dict` described; an unknown entry is an error.

        Parameters
        ----------
        entries
            The entries by name; those that are left out have their default values. Only weighted
            inputs without a share are those of plans that were made before there was a choice.
        """
        try:
            for name in entries:
                require_one_of("entry of the plan", name, cls.__dataclass_fields__)
            if entries.get("weighted"):
                entries = {"share": UNNAMED_SHARE, **entries}
            return cls(**entries)
        except (TypeError, AttributeError) as problem:
            raise ParameterError(f"an entry of the plan is of the wrong type: {problem}.") from None

    @checks_arguments
    def save(self, path: str | Path) -> Path:
        """Write the plan as TOML, with a comment on each entry, and return the path.

        Parameters
        ----------
        path
            A file that ends in ``.toml``.

        Examples
        --------
        >>> import tempfile
        >>> plan = Plan(n_inputs=2, n_samples=64, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Plan.load(plan.save(f"{folder}/plan.toml")) == plan
        True
        """
        path = Path(path)
        write_toml(path, self)
        return path

    @classmethod
    @checks_arguments
    def load(cls, path: str | Path) -> Self:
        """Read a TOML file.

        A warning says if the file was changed since infocap wrote it.

        Parameters
        ----------
        path
            A file that `save` wrote, or one that people wrote with the same entries.

        Raises
        ------
        DataError
            If the file cannot be read, is not TOML, or lacks entries.
        ParameterError
            If an entry has no meaning.
        """
        path = Path(path)
        entries = read_toml(path)
        fingerprint = str(entries.get("fingerprint", ""))
        try:
            plan = cls.from_dict({key: entries[key] for key in entries if key != "fingerprint"})
        except ParameterError as problem:
            raise ParameterError(f"{path}: {problem}") from None
        refuse_incomplete(path, entries)
        if fingerprint not in ("", plan.fingerprint):
            warn(
                f"{path} was changed since infocap wrote it: its fingerprint was "
                f"{fingerprint[:12]} and is {plan.fingerprint[:12]} now; if that is meant, delete "
                "the line `fingerprint`."
            )
        return plan

    @checks_arguments
    def write_inputs(self, path: str | Path) -> Path:
        """Write the schedule as a table for other programs, and return the path.

        The table has the columns ``design_index,u1,u2,...`` and a row for each measurement, in the
        order of acquisition. The column of an input with a name is called, for example,
        ``u1: Voltage A [V]``. An index that appears a second time is a repeat of that input. In
        place of an index, -1 marks the noise input, -2 a reference input, and -3 a measurement with
        the source off, which has no inputs.

        Parameters
        ----------
        path
            A file that ends in ``.csv``.
        """
        path = Path(path)
        write_csv(path, self)
        return path


def _plain_entries(plan: Plan) -> dict[str, Any]:
    """Return the entries that are plain numbers, text and lists, each checked by itself."""
    if isinstance(plan.channel, str) or not isinstance(plan.channel, Sequence):
        raise ParameterError(
            f"`channel={plan.channel!r}` must be a list of names, one for each readout."
        )
    if not isinstance(plan.metadata, dict):
        raise ParameterError(f"`metadata={plan.metadata!r}` must be a table of names and values.")
    if np.ndim(plan.n_inputs):
        raise ParameterError(f"`n_inputs={shown(plan.n_inputs)}` must be a whole number.")
    entries: dict[str, Any] = {
        "family": _plain_family(plan.family),
        "metadata": json.loads(to_json("metadata", plan.metadata)),
        "channel": tuple(map(str, plan.channel)),
        "settle_s": require_number("settle_s", plan.settle_s, 0.0),
    }
    for name, min_value in MIN_VALUES.items():
        value = getattr(plan, name)
        if name == "n_inputs" and value == 0:
            value = len(plan.family) if isinstance(plan.family, list | tuple) else 1
        entries[name] = require_whole_number(name, value, min_value)
    for name in ("domain", "noise_input"):
        entries[name] = _numbers(name, getattr(plan, name))
    entries["reference_inputs"] = _points(plan.reference_inputs)
    entries["sweep"] = _plain_sweep(plan.sweep)
    entries["setting"] = _plain_setting(plan)
    if plan.reference_every is not None:
        entries["reference_every"] = require_whole_number(
            "reference_every", plan.reference_every, 0
        )
    for name in TEXT_ENTRIES:
        entries[name] = str(getattr(plan, name))
    if plan.n_readouts is not None:
        entries["n_readouts"] = require_whole_number("n_readouts", plan.n_readouts, 1)
    return entries


def _plain_family(family: Any) -> Any:
    """Return families as plain data; the basis refuses what is no family and no name of one."""
    if isinstance(family, list | tuple):
        return tuple(_plain_family(item) for item in family)
    if isinstance(family, dict):
        for key in family:
            require_one_of("entry of family", key, ("name", "parameters", "domain", "variable"))
        if not isinstance(family.get("name"), str):
            raise ParameterError(f'family={family!r} has no name, such as name = "jacobi".')
    if isinstance(family, Family):
        return describe(family)
    return family


def _numbers(name: str, values: Any) -> tuple[float, ...] | None:
    """Return a list of finite numbers, or None."""
    if values is None:
        return None
    if not is_sequence(values):
        raise ParameterError(f"`{name}={values!r}` must be a list of numbers.")
    return tuple(require_number(name, value) for value in values)


def _points(points: Any) -> tuple[tuple[float, ...], ...] | None:
    """Return a list of reference inputs as plain numbers, or None."""
    if points is None:
        return None
    if isinstance(points, str) or not isinstance(points, Sequence | np.ndarray):
        raise ParameterError(
            f"`reference_inputs={shown(points)}` must be a list of inputs, such as [[0.2, 0.7], "
            "[0.5, 0.1]]."
        )
    checked = [_numbers("reference_inputs", point) for point in points]
    return tuple(point for point in checked if point is not None) or None


def _plain_sweep(sweep: Any) -> dict[str, tuple[Any, ...]] | None:
    """Return the values of settings as plain numbers and texts, or None."""
    if sweep is None or sweep == {}:
        return None
    try:
        grid = grid_of(sweep)
    except ParameterError as problem:
        raise ParameterError(f"sweep of the plan: {problem}") from None
    for name, values in grid.items():
        _check_setting_name(name)
        for value in values:
            _check_setting_value(name, value)
    return grid


def _plain_setting(plan: Plan) -> dict[str, Any] | None:
    """Return what the device is set to, or None."""
    if not plan.setting:
        return None
    if plan.sweep:
        raise ParameterError(
            "the plan has a `sweep` and a `setting`, which is one point of a sweep; give one."
        )
    if not isinstance(plan.setting, Mapping):
        raise ParameterError(f"`setting={plan.setting!r}` must be a table of names and values.")
    for name, value in plan.setting.items():
        _check_setting_name(name)
        _check_setting_value(name, value)
    return dict(plan.setting)


def _check_setting_name(name: Any) -> None:
    """Refuse a name that cannot be a parameter of the driver's method `set`."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ParameterError(
            f"the setting {name!r} cannot be a parameter of set(); name it like power_dbm."
        )


def _check_setting_value(name: str, value: Any) -> None:
    if isinstance(value, bool | str):
        return
    if not isinstance(value, int | float) or not isfinite(value):
        raise ParameterError(
            f"the setting {name} has the value {value!r}; give finite numbers or texts."
        )


def _check_readouts(plan: Plan) -> None:
    """Refuse names of channels that are not as many as the readouts."""
    if plan.n_readouts is not None and len(plan.channel) not in (0, plan.n_readouts):
        raise ParameterError(
            f"`n_readouts={plan.n_readouts}` but `channel` has {len(plan.channel)} names."
        )


def _sequence_entries(plan: Plan) -> dict[str, Any]:
    """Return the entries that follow from the delays of a device with memory.

    Entries that have no meaning for a sequence are refused.
    """
    delays = plan.max_delay
    if not isinstance(delays, dict) or not all(str(degree).isdecimal() for degree in delays):
        raise ParameterError(
            f"`max_delay={shown(delays)}` must be a table of degrees and delays: {{1: 100, 2: 4}}."
        )
    for name in NOT_FOR_SEQUENCES:
        value = getattr(plan, name)
        if value:
            raise ParameterError(f"`{name}={value!r}` has no meaning for a sequence; leave it out.")
    max_delay = {}
    for degree, delay in delays.items():
        max_delay[int(degree)] = require_whole_number("max_delay", delay, 0)
    return {
        "max_delay": max_delay,
        "max_degree": max(max_delay, default=1),
        "design": "random",
        "weighted": False,
        "runs": max(plan.runs, 1),
        "washout": max([plan.washout, *max_delay.values()]),
    }


def _check_size(plan: Plan) -> None:
    """Refuse a plan of more numbers than an acquisition can send, or that extends a longer plan."""
    if plan.extends >= plan.n_samples:
        raise ParameterError(
            f"`extends={plan.extends}` must be below `n_samples={plan.n_samples}`."
        )
    if plan.n_samples * plan.n_inputs > MAX_INPUT_NUMBERS:
        raise ParameterError(
            f"`n_samples={plan.n_samples}` of {plan.n_inputs} inputs are over "
            f"{MAX_INPUT_NUMBERS:,} numbers, which no acquisition sends; take fewer."
        )


def _design_entries(plan: Plan) -> dict[str, Any]:
    """Return the number of blocks and how inputs are weighted, which follow from the basis.

    The basis refuses families, degrees and domains that have no meaning.
    """
    weighted = plan.weighted
    if weighted is None:
        weighted = needs_weights(plan.basis, plan.n_samples)
    return {
        "blocks": block_count(plan.basis, plan.n_samples, plan.design, plan.blocks),
        "weighted": require_boolean("weighted", weighted),
        "share": require_share(plan.share),
    }


def _reference_every(plan: Plan) -> int:
    """Return among how many measurements one is at a reference input; 0 where there are none."""
    if plan.reference_every is not None:
        return plan.reference_every
    if plan.runs or plan.n_samples < N_REFERENCES * MIN_SAMPLES_PER_REFERENCE:
        return 0
    every = min(SAMPLES_PER_REFERENCE, plan.n_samples // N_REFERENCES)
    return max(every, -(-plan.n_samples // MAX_REFERENCES))  # rounded up


def _check_constant_inputs(plan: Plan) -> None:
    """Refuse a noise or reference input outside the domain, which could harm the device."""
    points = [("noise_input", plan.noise_input)]
    points += [("reference_inputs", point) for point in plan.reference_inputs or ()]
    for name, values in points:
        if not values:
            continue
        if len(values) != plan.n_inputs:
            raise ParameterError(
                f"{name} has {len(values)} values; give one for each of {plan.n_inputs} inputs."
            )
        for value, family in zip(values, plan.basis.families, strict=True):
            low, high = family.bounds
            if not low <= value <= high:
                raise ParameterError(
                    f"{name} has {value:g}, outside the domain [{low:g}, {high:g}]."
                )
