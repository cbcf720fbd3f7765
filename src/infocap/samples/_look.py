"""The first look at all rows: extremes, saturation, means of stretches, a few rows, and values that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_like, on_host, take_rows, to_numpy
from ..basis._family import DiscreteFamily, Family
from ..basis._product import ProductBasis
from ..errors import DataError
from ..typing import Floats, Integers
from ._engine import Engine
from ._samples import EPOCHS, Samples, row_shares
from ._table import Table

# Rows whose median is the typical value of a channel; odd, so that the median of a constant is exactly that constant.
TYPICAL_ROWS = 63
# Share of the domain's width by which an input may lie outside: rounding of a unit conversion, no more.
OUTSIDE = 1e-9
COMMON_DOMAINS = {
    "(-1, 1)": (-1.0, 1.0),
    "(0, 1)": (0.0, 1.0),
    "(0, 2*np.pi)": (0.0, 2 * np.pi),
    "(-np.pi, np.pi)": (-np.pi, np.pi),
}


@dataclass(frozen=True, eq=False)
class Look:
    """What a look at some rows shows: of each channel, of each input, and of stretches of the acquisition."""

    typical: Floats  # a value that each channel really takes, robust to outliers
    low: Floats
    high: Floats
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_sums: Floats  # (epochs, channels), of readouts minus `typical`
    sample: Any  # some rows of the readouts, chosen at random, where the readouts are


def first_look(samples: Samples, engine: Engine) -> Look:
    """Read everything once; values that no estimation can use are refused with the first of them named."""
    n = samples.n_samples
    typical = np.median(samples.x.read(0, min(TYPICAL_ROWS, n - (n + 1) % 2), on_host=True), axis=0)
    look: Look = engine.fold(samples, partial(look_at, typical=typical), merged)
    for name, ends in (("u", (look.input_low, look.input_high)), ("x", (look.low, look.high))):
        if not np.isfinite(ends).all():
            whole = samples.history and name == "u"  # with history in front of every share
            found = (
                samples.u.gaps(0, samples.u.shape[0])
                if whole
                else engine.fold(samples, partial(_gaps, name=name))
            )
            counts, first = zip(*found, strict=True)
            otherwise = (
                "" if samples.history else ", or pass `nan_policy='omit'` to leave such rows out"
            )
            raise DataError(
                f"{name} has {sum(counts)} NaN or infinite values, the first {first[0]}; repair the data{otherwise}."
            )
    return look


def _gaps(samples: Samples, start: int, stop: int, *, name: str) -> list[tuple[int, str]]:
    return getattr(samples, name).gaps(start, stop)


def without_gaps(samples: Samples, engine: Engine) -> Samples:
    """The samples without the rows that have a NaN or infinite value among inputs or readouts."""
    rows = np.flatnonzero(np.concatenate(engine.fold(samples, _finite_rows)))
    if not len(rows):
        raise DataError(
            "every row of u and x has a NaN or infinite value; there is nothing left to use."
        )
    return samples.only(rows)


def _finite_rows(samples: Samples, start: int, stop: int) -> list[np.ndarray]:
    both = np.hstack([table.read(start, stop, on_host=True) for table in (samples.u, samples.x)])
    return [np.asarray(np.isfinite(both).all(axis=1))]


def look_at(samples: Samples, start: int, stop: int, *, typical: Floats) -> Look:
    """Check and describe the rows start to stop, some at a time; on a device all at once.

    Some rows are kept as a sample, several times as many of all rows together as there are channels. They are chosen at
    random: every n-th row would do, but not on Sobol points.
    """
    width = samples.x.shape[1]
    wanted = int(max(4 * (width + 1), 256) * (stop - start) / samples.n_total) + 1
    generator = np.random.default_rng(samples.first_row + start)
    chosen = start + np.sort(
        generator.choice(stop - start, min(wanted, stop - start), replace=False)
    )
    looks = []
    for first, last in [(start, stop)] if samples.x.on_device else row_shares(start, stop, width):
        here = chosen[slice(*np.searchsorted(chosen, (first, last)))]
        looks.append(_look(samples, first, last, typical, here - first))
    return looks[0] if len(looks) == 1 else merged(*looks)


def _look(samples: Samples, start: int, stop: int, typical: Floats, chosen: Integers) -> Look:
    inputs, readouts = samples.inputs(start, stop, samples.history), samples.x.read(start, stop)
    xp = array_namespace(readouts)
    if samples.epochs is None:
        edges = -(-np.arange(EPOCHS + 1) * samples.n_total // EPOCHS) - samples.first_row - start
        edges, in_order = np.clip(edges, 0, stop - start), readouts
    else:
        order = np.argsort(samples.epochs[start:stop], kind="stable")
        edges = np.searchsorted(samples.epochs[start:stop][order], np.arange(EPOCHS + 1))
        in_order = take_rows(readouts, as_like(order, readouts))
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are found in the extremes
        low, high = xp.min(readouts, axis=0), xp.max(readouts, axis=0)
        ends = xp.min(inputs, axis=0), xp.max(inputs, axis=0)
        if on_host(readouts):
            pairs = pairwise(edges.tolist())
            sums = np.array(
                [np.sum(in_order[first:last] - typical, axis=0) for first, last in pairs]
            )
        else:  # by one product
            place, bounds = (
                xp.arange(stop - start, device=readouts.device),
                as_like(edges, readouts)[:, None],
            )
            member = xp.astype((place >= bounds[:-1, :]) & (place < bounds[1:, :]), xp.float64)
            sums = member @ (in_order - as_like(typical, readouts))
    sample = (
        readouts[chosen] if on_host(readouts) else take_rows(readouts, as_like(chosen, readouts))
    )
    found = [low, high, *ends, xp.reshape(sums, (-1,))]
    if not on_host(readouts):  # all this is fetched from there at once
        sizes = np.cumsum([part.shape[0] for part in found])[:-1]
        found = np.split(to_numpy(xp.concat(found)), sizes.tolist())
    low, high, input_low, input_high, sums = found
    if np.isfinite([input_low, input_high]).all():
        rows = (start, stop)
        if samples.history:
            rows = start + samples.before(start) - samples.history, stop + samples.before(start)
        refuse_outside(samples.u, rows, input_low, input_high, samples.basis)
    by_epoch = np.diff(edges), sums.reshape(EPOCHS, -1)
    return Look(typical, low, high, input_low, input_high, *by_epoch, sample)


def merged(*looks: Look) -> Look:
    """What several looks show together, in the order of the rows."""
    return Look(
        looks[0].typical,
        np.min([one.low for one in looks], axis=0),
        np.max([one.high for one in looks], axis=0),
        np.min([one.input_low for one in looks], axis=0),
        np.max([one.input_high for one in looks], axis=0),
        np.sum([one.epoch_sizes for one in looks], axis=0),
        np.sum([one.epoch_sums for one in looks], axis=0),
        array_namespace(*(one.sample for one in looks)).concat([one.sample for one in looks]),
    )


def refuse_outside(
    u: Table, rows: tuple[int, int], lowest: Any, highest: Any, basis: ProductBasis
) -> None:
    """Inputs that the declared distribution cannot produce, beyond the rounding of the type they came in.

    The lowest and highest of each input tell; the rows are read again only to name the culprit, or to compare
    with levels.
    """
    start = rows[0]
    for k, family in enumerate(basis.families):
        low, high = family.bounds
        rounding = u.rounding * max(abs(lowest[k]), abs(highest[k]))
        slack = OUTSIDE * (family.domain[1] - family.domain[0]) + rounding
        if lowest[k] < low - slack or highest[k] > high + slack:
            column = u.read(*rows, on_host=True)[:, k]
            row = int(np.argmax((column < low - slack) | (column > high + slack)))
            ends = float(column.min()), float(column.max())
            raise DataError(
                f"u is {_exact(column[row], low, high)} at {u.place(start + row, k)}, outside the domain "
                f"[{low:g}, {high:g}] of the {family.name} basis; here u runs from {ends[0]:g} to {ends[1]:g}: "
                f"{domain_advice(*ends, family, basis)}; if it is normally distributed, take the family 'hermite'."
            )
        if isinstance(family, DiscreteFamily):
            column = u.read(*rows, on_host=True)[:, k]
            levels = family.natural(family.levels)
            gap = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
            off = (
                np.abs(column - levels[family.nearest(family.standard(column))])
                > 1e-6 * gap + rounding
            )
            if off.any():
                row = int(np.argmax(off))
                raise DataError(
                    f"u is {_exact(column[row], *levels)} at {u.place(start + row, k)}, which is not one of the "
                    f"{len(levels)} levels of the {family.name} basis; round it or change the family."
                )


def _exact(value: float, *others: float) -> str:
    """A number with as many digits as it takes to tell it from the others."""
    short = f"{value:g}"
    return f"{value:.17g}" if short in {f"{other:g}" for other in others} else short


def domain_advice(low: float, high: float, family: Family, basis: ProductBasis) -> str:
    """Which domain to give: a common interval, other than that of the family, that the inputs fill, if there is one."""
    made = "delayed_basis" if basis.of_sequences else "product_basis"
    for name, (start, stop) in COMMON_DOMAINS.items():
        fits = (
            start - OUTSIDE <= low and high <= stop + OUTSIDE and high - low > 0.9 * (stop - start)
        )
        if fits and not np.allclose((start, stop), family.domain):
            return f"pass `domain={name}` to {made}"
    return f"pass its true interval as `domain` to {made}, or check gain and offset of the source"
