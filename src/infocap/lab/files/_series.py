"""Arrays of single samples in numbered groups of a file, put together as one array.

Some programs write a group for each shot: shot_00001/u, shot_00001/x, shot_00002/u, and so on. They
become ``u`` and ``x``, with a row for each shot, in the order of the numbers.
"""

import re
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._files import ArrayFile, StoredArray

# Fewer numbered groups are rather runs, which the user puts together.
MIN_GROUPS = 8
NUMBERED_GROUP = re.compile(r"(?P<before>.*?)(?P<number>\d+)(?P<behind>[^\d/]*)/(?P<leaf>[^/]+)")


def with_shots_stacked(file: ArrayFile) -> ArrayFile:
    """Return a file with one array in place of those of numbered groups, or the file as it is.

    Arrays of one length in a group are the time steps of a run, and stay as they are.
    """
    members: dict[tuple[str, str], dict[int, dict[str, str]]] = defaultdict(dict)
    for name in file.arrays:
        match = NUMBERED_GROUP.fullmatch(name)
        if match:
            groups = members[match["before"], match["behind"]]
            groups.setdefault(int(match["number"]), {})[match["leaf"]] = name
    arrays = dict(file.arrays)
    for groups in members.values():
        numbers = sorted(groups)
        leaves = set(groups[numbers[0]])
        is_regular = all(set(groups[number]) == leaves for number in numbers)
        if len(numbers) < MIN_GROUPS or not is_regular:
            continue
        for leaf in leaves:
            names = [groups[number][leaf] for number in numbers]
            stacked = _stacked(file, names)
            is_free = leaf not in arrays
            if stacked is not None and is_free and _is_sample(file, groups[numbers[0]]):
                for name in names:
                    del arrays[name]
                arrays[leaf] = stacked
    return replace(file, arrays=arrays)


def _is_sample(file: ArrayFile, group: dict[str, str]) -> bool:
    """Return whether the arrays of a group are those of one sample, and not of time steps."""
    shapes = [file.arrays[name].shape for name in group.values() if file.arrays[name].is_numeric]
    lengths = {shape[0] for shape in shapes if shape}
    has_single_numbers = len(lengths) < len(shapes) and () in shapes
    return has_single_numbers or len(lengths) > 1


def _stacked(file: ArrayFile, names: list[str]) -> StoredArray | None:
    """Return arrays of one shape as one, with a first axis of samples; None for others."""
    first = file.arrays[names[0]]
    if any(file.arrays[name].shape != first.shape for name in names) or not first.is_numeric:
        return None
    shape = (len(names), *first.shape)
    return StoredArray(shape, first.dtype, partial(_load, file, names), attributes=first.attributes)


def _load(file: ArrayFile, names: list[str]) -> Any:
    return np.stack([np.asarray(file.numbers(name)) for name in names])
