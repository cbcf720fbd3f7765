"""Samples: the rows of one data set, everything that belongs to a row, and how the readouts are prepared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import array_namespace, as_like, on_device, on_host, to_numpy
from .._validation import one_of
from ..basis._product import ProductBasis
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from ._runs import cut_runs
from ._table import Table

if TYPE_CHECKING:
    from ._look import Look

# Stretches of the acquisition whose means are compared to find drift: enough to see a slow curve, few enough that
# each holds a hundred samples of an ordinary run.
EPOCHS = 32
# Bytes of prepared readouts that one share of the work holds at least. Smaller ones cost more in Python than they
# spare by spreading over cores (benchmarks/core.py).
SHARE_BYTES = 4_000_000
# Relative range below which a channel is rounding around a constant.
DEAD = 32 * np.finfo(float).eps
# Weights are ratios of densities with mean 1; a mean this many standard errors away is a mistake, not chance.
WEIGHT_ERRORS = 6.0


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and readouts of one data set, what belongs to each row, and how the readouts are prepared.

    `channels` are the columns of `x` in use. They are shifted by a typical value, so that a large offset costs no
    digits; with `constant` a column of ones goes first and absorbs what the shift leaves. `scale` is 1 unless squares
    of the readouts would leave the range of floating-point numbers. Samples drawn from another density than that of
    the basis have weights, the ratio of the two; readouts and targets are then multiplied by `root_weights`, so that
    every mean of a product is a weighted mean. `first_row` and `n_total` say where a part stands in the whole.
    """

    u: Table
    x: Table
    basis: ProductBasis
    channels: Integers
    shift: Floats
    scale: Floats
    n_total: int
    constant: bool = False
    first_row: int = 0
    time: Any = None  # when each row was measured, a rank or a time; None: in the order of the rows
    epochs: Integers | None = None  # which stretch of the acquisition each row is in
    root_weights: Floats | None = None
    repeats: Table | None = (
        None  # the readouts measured a second time, with NaN where they were not
    )
    n_dropped: int = 0  # rows that were left out
    history: int = 0  # rows of `u` in front of the first sample of every run
    runs: Integers | None = (
        None  # the first sample of each run of a sequence, where there are several
    )

    @classmethod
    def of(
        cls,
        u: ArrayLike,
        x: ArrayLike,
        basis: ProductBasis,
        *,
        complex_as: str | None = None,
        design_index: ArrayLike | None = None,
        time: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        repeats: ArrayLike | None = None,
        washout: int | None = None,
    ) -> Samples:
        """Inputs and readouts of equally many rows, checked; the readouts not yet prepared."""
        if not isinstance(basis, ProductBasis):
            raise ParameterError(
                f"`basis={basis!r}` must come from product_basis(...) or delayed_basis(...)."
            )
        one_of("complex_as", complex_as, (None, "abs2", "split"))
        if basis.of_sequences:
            for name, given in (
                ("design_index", design_index),
                ("time", time),
                ("sample_weight", sample_weight),
            ):
                if given is not None:
                    raise ParameterError(
                        f"`{name}` has no meaning for a sequence, whose rows are times; leave it out."
                    )
            found = cut_runs(u, x, basis, washout, complex_as, repeats)
            n, k = found["x"].shape
            found |= {"channels": np.arange(k), "shift": np.zeros(k), "scale": np.ones(k)}
            return cls(basis=basis.named(found["u"].columns[: basis.n_inputs]), n_total=n, **found)
        if washout is not None:
            raise ParameterError(
                f"`washout={washout!r}` is for sequences; give a basis from delayed_basis(...)."
            )
        inputs, readouts = Table(u, "u"), Table(x, "x", complex_as)
        if inputs.on_device and not (type(u) is type(x) and u.device == x.device):
            inputs = inputs.on_host()  # from there they go where the readouts are
        (n, k), u_shape = readouts.shape, inputs.shape
        if u_shape[0] != n:
            flip = "x.T" if k == u_shape[0] else "u.T" if u_shape[1] == n else None
            hint = f"the lengths agree with {flip}" if flip else "give one row for each sample"
            said = f"u has shape {u_shape} and x has shape {(n, k)}: unequal numbers of samples"
            raise DataError(f"{said}; {hint}.")
        if u_shape[1] != len(basis.families):
            said = f"u has {u_shape[1]} columns, but the basis has {basis.n_inputs} inputs"
            raise DataError(f"{said}; give as many columns.")
        if type(u) is not np.ndarray:  # names of pandas and xarray go into labels
            basis = basis.named(inputs.columns)
        if design_index is not None:
            _refuse_disorder(_one_per_row("design_index", design_index, n))
        times = None if time is None else _one_per_row("time", time, n)
        return cls(
            inputs,
            readouts,
            basis,
            channels=np.arange(k),
            shift=np.zeros(k),
            scale=np.ones(k),
            n_total=n,
            time=times,
            epochs=None if times is None else _epochs(times),
            root_weights=None
            if sample_weight is None
            else np.sqrt(density_ratios(sample_weight, n)),
            repeats=None if repeats is None else _repeats(repeats, (n, k), complex_as),
        )

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return self.x.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of prepared readouts with the constant, K: the maximum capacity."""
        return len(self.channels) + self.constant

    @property
    def in_memory(self) -> bool:
        """Whether no row has to be read from a file or computed elsewhere."""
        return self.u.in_memory and self.x.in_memory

    def only(self, rows: Integers) -> Samples:
        """These rows alone, given by increasing numbers, as a data set of its own."""
        time, root = (None if one is None else one[rows] for one in (self.time, self.root_weights))
        return replace(
            self,
            u=self.u.only(rows),
            x=self.x.only(rows),
            n_total=len(rows),
            time=time,
            epochs=None if time is None else _epochs(time),
            root_weights=root,
            repeats=None if self.repeats is None else self.repeats.only(rows),
            n_dropped=self.n_samples - len(rows),
        )

    def part(self, start: int, stop: int) -> Samples:
        """The rows start to stop as samples of their own, numbered from 0; nothing is read."""
        before = self.before(start) if self.history else 0
        return replace(
            self,
            u=self.u.part(start + before - self.history, stop + before),
            x=self.x.part(start, stop),
            first_row=self.first_row + start,
            time=None,
            epochs=None if self.epochs is None else self.epochs[start:stop],
            root_weights=None if self.root_weights is None else self.root_weights[start:stop],
            repeats=None,
            runs=None,
        )

    def before(self, start: int) -> int:
        """How many rows of `u` stand before that of a sample, beside those of earlier samples: the history of runs."""
        run = 1 if self.runs is None else int(np.searchsorted(self.runs, start, side="right"))
        return run * self.history

    def held(self, u: Any = None, x: Any = None) -> Samples:
        """The same samples with their rows in memory: read now, or as given."""
        return replace(self, u=self.u.held(u), x=self.x.held(x))

    def prepared(self, look: Look, constant: bool) -> Samples:
        """Choose the channels, and a shift and a scale that cost no digits, from what a first look at all rows found.

        Without the constant readout centring would change the space that the readouts span, so only the scale is set.
        """
        low, high = look.low, look.high
        live = (low != 0) | (high != 0)
        if constant:
            live = high / 2 - low / 2 > DEAD * np.maximum(np.abs(low), np.abs(high))
        if not live.any():
            raise DataError(
                "x has no channel that changes between samples; check that the device was on."
            )
        shift = look.typical[live] if constant else np.zeros(np.count_nonzero(live))
        largest = np.maximum(high[live] / 2 - shift / 2, shift / 2 - low[live] / 2)
        power = np.clip(-np.round(np.log2(largest)), -1000, 1000)
        extreme = (largest < 1e-100) | (largest > 1e100)
        scale = np.where(extreme, np.exp2(power), 1.0)  # a power of two rounds nothing
        return replace(
            self, channels=np.flatnonzero(live), shift=shift, scale=scale, constant=constant
        )

    def inputs(self, start: int, stop: int, memory: int | None = None) -> Any:
        """Inputs of the rows start to stop, where the readouts are: (samples, inputs).

        Of a sequence, rows of one run, with as many earlier inputs in front as `memory` says, or the basis needs.
        """
        before = self.before(start) if self.history else 0
        u = self.u.read(
            start + before - (self.basis.memory if memory is None else memory), stop + before
        )
        return as_like(u, self.x.read(0, 1)) if self.x.on_device else to_numpy(u)

    def readouts(
        self, start: int, stop: int, mean: Floats | float = 0.0, whitening: Floats | None = None
    ) -> Any:
        """Prepared readouts of the rows start to stop, times roots of weights: (samples, K), the constant first.

        With `whitening` those that are left after `mean` is subtracted are multiplied by that matrix: (samples, rank).
        """
        block = self.x.read(start, stop)
        if whitening is None and on_host(block):
            out = np.empty((len(block), self.n_columns))
            out[:, : self.constant] = 1.0
            self.centred(block, mean, out=out[:, self.constant :])
        else:
            xp, out = array_namespace(block), self.centred(block, mean)
            out = out if whitening is None else out @ as_like(whitening, out)
            out = xp.concat([xp.ones_like(out[:, :1]), out], axis=1) if self.constant else out
        return self.weighted(out, start)

    def centred(self, block: Any, mean: Floats | float = 0.0, out: Floats | None = None) -> Any:
        """Rows of the table of readouts: the channels in use, shifted and scaled, minus `mean` in those units."""
        if not on_host(block):
            if len(self.channels) < block.shape[1]:
                block = array_namespace(block).take(block, as_like(self.channels, block), axis=1)
            if np.any(self.scale != 1):
                block = block * as_like(self.scale, block)
            return block - as_like(self.shift * self.scale + mean, block)
        block = block[:, self.channels] if len(self.channels) < block.shape[1] else block
        if np.all(self.scale == 1):
            return np.subtract(block, self.shift + mean, out=out)
        return np.subtract(block * self.scale, self.shift * self.scale + mean, out=out)

    def weighted(self, block: Any, start: int) -> Any:
        """Rows from `start` on, times the roots of their weights."""
        if self.root_weights is None:
            return block
        return block * as_like(self.root_weights[start : start + block.shape[0], None], block)

    def targets(self, start: int, stop: int) -> Iterator[Any]:
        """Values of the basis, times roots of weights, at the rows start to stop in blocks of (terms, samples)."""
        for y in self.basis.blocks(self.inputs(start, stop)):
            yield self.weighted(y.T, start).T
            start += y.shape[1]

    def weights(self, start: int, stop: int) -> Floats | None:
        """The weights of the rows start to stop; None when all are 1."""
        return None if self.root_weights is None else self.root_weights[start:stop] ** 2


def row_shares(start: int, stop: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """The rows start to stop in equal pieces of about 4 MB of readouts, always much taller than wide."""
    most = max(SHARE_BYTES // (8 * n_columns), 32 * n_columns)
    count = -(-(stop - start) // most)
    return pairwise(start + (stop - start) * piece // count for piece in range(count + 1))


def _epochs(acquired: Any) -> Integers:
    """The stretch of the acquisition that each row belongs to."""
    n = len(acquired)
    out = np.empty(n, np.int8)
    out[np.argsort(acquired, kind="stable")] = np.arange(n) * EPOCHS // n
    return out


def _refuse_disorder(index: Integers) -> None:
    steps = np.flatnonzero(np.diff(index) <= 0)
    if len(steps):
        row = int(steps[0]) + 1
        if len(np.unique(index)) < len(index):
            raise DataError(
                f"design_index has {index[row]} more than once; keep one row per point of the design."
            )
        raise DataError(
            f"design_index is {index[row]} at row {row}, after {index[row - 1]}: the halves of a Sobol design are "
            "its first and second part in index order; sort the rows with order = np.argsort(design_index)."
        )


def _one_per_row(name: str, values: ArrayLike, n_rows: int) -> Any:
    values = to_numpy(values) if on_device(values) else np.asarray(values)
    if values.shape != (n_rows,):
        raise DataError(
            f"{name} has shape {values.shape}; give one value for each of {n_rows} rows."
        )
    if values.dtype.kind not in "iufMm" or np.any(np.isnan(values)):
        raise DataError(
            f"{name} must be numbers or times without gaps; it holds {values.dtype} values."
        )
    return values


def density_ratios(weights: ArrayLike, n_rows: int) -> Floats:
    """Return weights as ratios of densities, one per row: none is negative, and their mean is 1."""
    values = np.asarray(_one_per_row("sample_weight", weights, n_rows), dtype=float)
    if not np.isfinite(values).all() or values.min() < 0:
        bad = int(np.argmax(~(np.isfinite(values) & (values >= 0))))
        raise DataError(
            f"sample_weight is {values[bad]} at row {bad}; weights are ratios of densities, 0 or more."
        )
    mean, error = float(values.mean()), float(values.std()) / np.sqrt(n_rows)
    if abs(mean - 1) > WEIGHT_ERRORS * error + 1e-9:
        raise DataError(
            f"sample_weight has the mean {mean:.4g}; the density of the basis over that of the inputs has the mean 1: "
            "normalise both densities, or use draw_weighted."
        )
    return values


def _repeats(repeats: ArrayLike, shape: tuple[int, int], complex_as: str | None) -> Table:
    """The second measurement, as a table of numbers with NaN where there is none."""
    table = Table(repeats, "repeats", complex_as)
    if table.shape != shape:
        raise DataError(
            f"repeats has shape {table.shape} and x has shape {shape}; give a second "
            "measurement of every row, with NaN in the rows that were not repeated."
        )
    return table
