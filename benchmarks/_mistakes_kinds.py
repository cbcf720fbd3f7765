"""A kind of mistake: its name, the function that makes it, and the words that describe it truly.

The kinds stand in five modules, each beside its function: `_mistakes_of_rows` (which readouts belong to which
inputs), `_mistakes_in_time` (the device or the electronics change along the run), `_mistakes_of_values` (single
numbers), `_mistakes_of_inputs` (what was sent), and `_mistakes_of_sequences` (devices with memory only). Those of
`_mistakes_second_part`, of the three modules of the third part and of the four of the fourth part are held out.

The rule for mistakes without a trace stands in `_mistakes_fourth_part_of_rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from _mistakes_devices import DEVELOPED, Array, Device, Run

Data = tuple[Array, Array]
Maker = Callable[[Run], Data]

BOTH = "both"
MEMORYLESS = "memoryless"
WITH_MEMORY = "with memory"

# Words that a check may use for the cause of what it found.
CAUSES = {
    "shift": "rows belong to inputs some rows away",
    "slip": "a shift from some row on",
    "late input": "one input is some rows off",
    "late channels": "some channels are some rows off",
    "swapped rows": "rows have changed places",
    "foreign rows": "rows from elsewhere",
    "memory": "readouts hold inputs of earlier rows",
    "later inputs": "readouts hold inputs of later rows",
    "neighbours": "readouts hold inputs of rows before and after",
    "gap": "rows that show nothing of their inputs",
    "response": "the response to the inputs changes along the run",
    "drift": "the offset changes along the run",
    "noise": "parts of the run fit worse",
    "period": "hum, alternate rows, batches of equal size",
    "nothing": "nothing of the inputs is seen",
    "no effect": "an input has none",
    "shuffled": "rows of a device with memory are not in order",
    "interleaved": "rows of two runs take turns",
    "interpolated": "rows between their neighbours",
    "copied rows": "rows equal to others",
    "stale": "rows equal to the one before",
    "filled cells": "single values equal to the row before, or halfway between neighbours",
    "stacked": "the data stand there twice",
    "repeats": "inputs that were measured several times",
    "batches": "readouts that were normalised in groups",
    "monitor": "a channel equal to an input",
    "computed": "a channel that is an exact function of the inputs",
    "uncorrelated": "principal components in place of channels",
    "codes": "codes of the instrument in place of numbers",
    "glitches": "rows with wild readouts",
    "outlying": "single wild numbers",
    "units": "numbers in different units",
    "wrapped": "numbers that flowed over",
    "clipped": "numbers cut at an end",
    "rounded readouts": "steps that take capacity",
    "missing codes": "a converter that leaves values out",
    "gain steps": "ranges that changed",
    "frozen": "a channel that stands still for a while",
    "rounded inputs": "inputs with few digits",
    "other inputs": "the source sent others than were written down: cut or coarse",
    "domain": "inputs outside of their interval, or not filling it",
    "shape of inputs": "inputs of another distribution",
    "correlated inputs": "inputs that depend on each other",
    "dependent": "channels that are sums of others",
    "clock": "a counter or a temperature among the readouts",
    "order of inputs": "inputs in an order that is not random",
    "inputs depend": "inputs of a sequence that depend on earlier ones",
    "washout": "the beginning of a sequence",
    "missing": "values or rows that are not there",
    "few samples": "too few for the readouts",
}


@dataclass(frozen=True)
class Kind:
    """A kind of mistake.

    Attributes
    ----------
    make
        The function from a clean run to the inputs and readouts that the laboratory believes in.
    causes
        The words that describe it truly.
    causes_with_memory
        More such words where the device has memory.
    devices
        Which devices it is made on: BOTH, MEMORYLESS or WITH_MEMORY.
    part
        DEVELOPED, or the part that stays unseen while checks are developed: HELD_OUT, THIRD or FOURTH.
    debatable
        Whether some would not call it a mistake, or see it as part of the device.
    traceless
        Whether the data could be those of another device that works well, on devices of both sorts.
    traceless_with_memory
        Whether they could at least where the device has memory, because what a row holds of earlier inputs is part
        of such a device.
    """

    name: str
    make: Maker
    causes: frozenset[str]
    causes_with_memory: frozenset[str]
    devices: str
    min_inputs: int
    min_channels: int
    part: str
    debatable: bool
    traceless: bool
    traceless_with_memory: bool = False

    def is_possible_on(self, device: Device, n_channels: int) -> bool:
        """Return whether the mistake can be made on this device."""
        if self.devices == MEMORYLESS and device.has_memory:
            return False
        if self.devices == WITH_MEMORY and not device.has_memory:
            return False
        enough_inputs = device.basis.n_inputs >= self.min_inputs
        return enough_inputs and n_channels >= self.min_channels

    def accepted(self, device: Device) -> frozenset[str]:
        """Return the words that describe the mistake on this device truly."""
        return self.causes | self.causes_with_memory if device.has_memory else self.causes

    def leaves_no_trace(self, device: Device) -> bool:
        """Return whether the data could be those of another device of this sort that works well."""
        return self.traceless or (device.has_memory and self.traceless_with_memory)


KINDS: dict[str, Kind] = {}


def kind(
    name: str,
    *causes: str,
    with_memory: tuple[str, ...] = (),
    devices: str = BOTH,
    min_inputs: int = 1,
    min_channels: int = 1,
    part: str = DEVELOPED,
    debatable: bool = False,
    traceless: bool = False,
    traceless_with_memory: bool = False,
) -> Callable[[Maker], Maker]:
    """Return a decorator that puts a function into the table of kinds."""
    unknown = {*causes, *with_memory} - CAUSES.keys()
    if unknown or name in KINDS:
        raise ValueError(f"{name!r} is in the table already, or has unknown causes {unknown}.")

    def register(make: Maker) -> Maker:
        KINDS[name] = Kind(
            name,
            make,
            causes=frozenset(causes),
            causes_with_memory=frozenset(with_memory),
            devices=devices,
            min_inputs=min_inputs,
            min_channels=min_channels,
            part=part,
            debatable=debatable,
            traceless=traceless,
            traceless_with_memory=traceless_with_memory,
        )
        return make

    return register


def before(rows: Array, lag: int = 1) -> Array:
    """Return in every row what was `lag` rows before; the first rows get the last ones."""
    return np.roll(rows, lag, axis=0)


def after(rows: Array, lag: int = 1) -> Array:
    """Return in every row what comes `lag` rows later; the last rows get the first ones."""
    return np.roll(rows, -lag, axis=0)


def changed(rows: Array, where: object, values: Array) -> Array:
    """Return a copy in which some rows or cells have other values."""
    copy = np.array(rows, dtype=float)
    copy[where] = values
    return copy
