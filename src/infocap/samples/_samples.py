"""Samples: inputs, readouts, weights and times of one data set, and how its readouts are prepared.

Nothing is read when samples are made, except for the first row. Rows are read when a share of them
is worked on (`Engine.fold`), so the same object stands for arrays in memory, for files of any size
and for arrays on a graphics card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import (
    array_namespace,
    is_on_host,
    multiply_by_triangle,
    to_library_of,
    to_numpy,
)
from .._validation import require_one_of, shown
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from ._components import Components
from ._runs import cut_runs
from ._sources import LabelledRows
from ._table import RowNumbering, Table
from ._values_per_row import (
    density_ratios,
    epochs_of_rows,
    one_per_row,
    refuse_disorder,
    table_of_repeats,
)

if TYPE_CHECKING:
    from ._scan import ColumnStatistics


# Range of a channel relative to its values below which it is rounding around a constant.
MAX_RELATIVE_RANGE_OF_CONSTANT = 32 * np.finfo(float).eps
# Ranges of channels whose squares are far from the limits of floating-point numbers.
MIN_RANGE_WITHOUT_SCALE = 1e-100
MAX_RANGE_WITHOUT_SCALE = 1e100
# Largest power of two by which a channel is scaled.
MAX_SCALE_EXPONENT = 1000


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs, readouts, weights and times of one data set, and how its readouts are prepared.

    A prepared readout is ``scale * (x - shift)`` of a channel in use. The shift is a typical value
    of the channel, so that a large offset costs no digits. With `constant`, a column of ones goes
    first and absorbs what the shift leaves.

    Samples that were drawn from another density than that of the basis have weights, the ratio of
    the two densities. Readouts and functions are then multiplied by the roots of the weights, so
    that every mean of a product is a weighted mean.
    """

    u: Table
    x: Table
    basis: ProductBasis
    channels: Integers  # columns of `x` in use
    shift: Floats  # of each channel in use
    scale: Floats  # of each channel in use: 1, unless its squares would overflow or underflow
    n_total: int  # samples of the whole data set, if this is a part of it
    constant: bool = False
    first_row: int = 0  # where a part begins in the whole
    time: Any = None  # when each row was measured, a rank or a time; None: in the order of the rows
    epoch_of_row: Integers | None = None  # which of 32 epochs of the acquisition each row is in
    group_of_row: Integers | None = None  # random group of each row; None: groups are stretches
    sqrt_sample_weight: Floats | None = None  # root of each row's weight; None: all are 1
    repeats: Table | None = None  # readouts measured again, NaN in rows that were not repeated
    n_omitted_rows: int = 0  # rows that were left out
    # Rows of `u` in front of the first sample of every run of a sequence: as many as the largest
    # delay of the basis (`basis.memory`), or more for functions with longer delays.
    history: int = 0
    runs: Integers | None = None  # first sample of each run, where there are several
    components: Components | None = None  # what `x` holds in place of channels
    law: str = "declared"  # of the inputs: that of the basis, or "recorded"
    # Functions that were left out because inputs take too few values for their degrees.
    n_absent_functions: int = 0

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
        """Check what users pass to `estimate`, and return it as samples.

        The readouts are not prepared yet: `choose_preparation` says how.

        Parameters
        ----------
        u, x, basis
            Inputs, readouts and functions.
        complex_as, design_index, time, sample_weight, repeats, washout
            As for `estimate`. A sequence has no design index, times or weights, and only a
            sequence has a washout.
        """
        if not isinstance(basis, ProductBasis):
            raise ParameterError(
                f"`basis={shown(basis)}` must come from product_basis(...) or delayed_basis(...)."
            )
        require_one_of("complex_as", complex_as, (None, "abs2", "split"))
        if basis.of_sequences:
            values_per_row = {
                "design_index": design_index,
                "time": time,
                "sample_weight": sample_weight,
            }
            for name, values in values_per_row.items():
                if values is not None:
                    raise ParameterError(
                        f"`{name}` has no meaning for a sequence, whose rows are times; leave it "
                        "out."
                    )
            return cls._of_sequence(
                u, x, basis, complex_as=complex_as, repeats=repeats, washout=washout
            )
        if washout is not None:
            raise ParameterError(
                f"`washout={shown(washout)}` is for sequences; give a basis from "
                "delayed_basis(...)."
            )
        return cls._of_points(
            u,
            x,
            basis,
            complex_as=complex_as,
            design_index=design_index,
            time=time,
            sample_weight=sample_weight,
            repeats=repeats,
        )

    @classmethod
    def _of_sequence(
        cls,
        u: ArrayLike,
        x: ArrayLike,
        basis: ProductBasis,
        *,
        complex_as: str | None,
        repeats: ArrayLike | None,
        washout: int | None,
    ) -> Samples:
        sequence = cut_runs(u, x, basis, washout=washout, complex_as=complex_as, repeats=repeats)
        n_samples, n_channels = sequence.x.shape
        return cls(
            u=sequence.u,
            x=sequence.x,
            basis=basis.named(sequence.u.column_names[: basis.n_inputs]),
            channels=np.arange(n_channels),
            shift=np.zeros(n_channels),
            scale=np.ones(n_channels),
            n_total=n_samples,
            repeats=sequence.repeats,
            history=sequence.history,
            runs=sequence.runs,
        )

    @classmethod
    def _of_points(
        cls,
        u: ArrayLike,
        x: ArrayLike,
        basis: ProductBasis,
        *,
        complex_as: str | None,
        design_index: ArrayLike | None,
        time: ArrayLike | None,
        sample_weight: ArrayLike | None,
        repeats: ArrayLike | None,
    ) -> Samples:
        inputs = Table(u, "u")
        readouts = Table(x, "x", complex_as)
        if inputs.on_device:
            on_same_device = type(u) is type(x) and u.device == x.device
            if not on_same_device:
                inputs = inputs.to_host()  # A few rows at a time go to where the readouts are.
        _refuse_unequal_lengths(inputs.shape, readouts.shape)
        if inputs.shape[1] != len(basis.families):
            raise DataError(
                f"u has {inputs.shape[1]} columns, but the basis has {basis.n_inputs} inputs; give "
                "as many columns."
            )
        if type(u) is not np.ndarray:
            basis = basis.named(inputs.column_names)  # Names of pandas and xarray go into labels.

        n_samples, n_channels = readouts.shape
        if design_index is not None:
            refuse_disorder(one_per_row("design_index", design_index, n_samples))
        samples = cls(
            u=inputs,
            x=readouts,
            basis=basis,
            channels=np.arange(n_channels),
            shift=np.zeros(n_channels),
            scale=np.ones(n_channels),
            n_total=n_samples,
        )
        if time is not None:
            times = one_per_row("time", time, n_samples)
            samples = replace(samples, time=times, epoch_of_row=epochs_of_rows(times))
        if sample_weight is not None:
            weights = density_ratios(sample_weight, n_samples)
            samples = replace(samples, sqrt_sample_weight=np.sqrt(weights))
        if repeats is not None:
            table = table_of_repeats(repeats, readouts.shape, complex_as)
            samples = replace(samples, repeats=table)
        return samples

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return self.x.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of prepared readouts with the constant, K: the largest possible total capacity."""
        return len(self.channels) + self.constant

    @property
    def in_memory(self) -> bool:
        """Whether no row has to be read from a file or computed elsewhere."""
        return self.u.in_memory and self.x.in_memory

    def choose_preparation(self, statistics: ColumnStatistics, constant: bool) -> Samples:
        """Choose the channels, a shift and a scale, from statistics of all rows (`scan_columns`).

        Without the constant readout, centring would change the space that the readouts span, so
        only the scale is set.
        """
        low = statistics.low
        high = statistics.high
        in_use = (low != 0) | (high != 0)
        if constant:
            # Halves are subtracted, because the difference of the largest numbers overflows.
            half_range = high / 2 - low / 2
            in_use = half_range > MAX_RELATIVE_RANGE_OF_CONSTANT * np.maximum(
                np.abs(low), np.abs(high)
            )
        if not in_use.any():
            raise DataError(
                "x has no channel that changes between samples; check that the device was on."
            )
        shift = statistics.typical[in_use] if constant else np.zeros(np.count_nonzero(in_use))
        return replace(
            self,
            channels=np.flatnonzero(in_use),
            shift=shift,
            scale=_safe_scale(low[in_use], high[in_use], shift),
            constant=constant,
        )

    def with_components(self, scores: Floats, components: Components) -> Samples:
        """Return the samples with combinations of the channels, (samples, components), as readouts.

        They lie in the processor's memory. Rows keep their numbers in what the user passed. Repeats
        are left out, because they chose the combinations and would flatter them.
        """
        n_components = scores.shape[1]
        names = [f"component {number}" for number in range(1, n_components + 1)]
        given_rows = self.x.given_rows(np.arange(self.n_samples))
        begins_part = np.diff(given_rows, prepend=-1) != 1
        begins_part[0] = True
        first_rows = np.flatnonzero(begins_part)
        table = Table(LabelledRows(scores, names), "x")
        return replace(
            self,
            u=self.u.to_host(),
            x=table.numbered(RowNumbering(first_rows, given_rows[first_rows])),
            channels=np.arange(n_components),
            shift=np.zeros(n_components),
            scale=np.ones(n_components),
            repeats=None,
            components=components,
        )

    # Selecting rows.

    def select_rows(self, rows: Integers) -> Samples:
        """Return these rows alone, given by increasing numbers, as a data set of its own."""
        times = _select(self.time, rows)
        return replace(
            self,
            u=self.u.select_rows(rows),
            x=self.x.select_rows(rows),
            n_total=len(rows),
            time=times,
            epoch_of_row=None if times is None else epochs_of_rows(times),
            sqrt_sample_weight=_select(self.sqrt_sample_weight, rows),
            repeats=None if self.repeats is None else self.repeats.select_rows(rows),
            n_omitted_rows=self.n_samples - len(rows),
        )

    def slice_rows(self, start: int, stop: int) -> Samples:
        """Return the rows `start` to `stop` as samples that are numbered from 0; nothing is read.

        The rows must belong to one run. Repeats and times are left out.
        """
        first_input, last_input = self.input_rows(start, stop, self.history)
        rows = slice(start, stop)
        return replace(
            self,
            u=self.u.slice_rows(first_input, last_input),
            x=self.x.slice_rows(start, stop),
            first_row=self.first_row + start,
            time=None,
            epoch_of_row=_select(self.epoch_of_row, rows),
            group_of_row=_select(self.group_of_row, rows),
            sqrt_sample_weight=_select(self.sqrt_sample_weight, rows),
            repeats=None,
            runs=None,
        )

    def load(self, u: Any = None, x: Any = None) -> Samples:
        """Return the same samples with their rows in memory: read now, or as passed."""
        return replace(self, u=self.u.load(u), x=self.x.load(x))

    def input_rows(self, start: int, stop: int, n_earlier: int) -> tuple[int, int]:
        """Return the range of rows of `u` that belongs to samples of one run.

        It begins `n_earlier` rows earlier. Each run of a sequence has `history` rows in front of
        its first sample, so rows of `u` are ahead of those of `x`.
        """
        n_ahead = 0
        if self.history:
            n_runs_begun = 1
            if self.runs is not None:
                n_runs_begun = int(np.searchsorted(self.runs, start, side="right"))
            n_ahead = n_runs_begun * self.history
        return start + n_ahead - n_earlier, stop + n_ahead

    # Values of rows.

    def inputs(self, start: int, stop: int, memory: int | None = None) -> Any:
        """Return inputs of the rows `start` to `stop`, where the readouts are: (samples, inputs).

        Of a sequence, the rows must belong to one run. `memory` earlier inputs are in front, by
        default as many as the basis needs.
        """
        if memory is None:
            memory = self.basis.memory
        u = self.u.read(*self.input_rows(start, stop, memory))
        return to_library_of(u, self.x.read(0, 1)) if self.x.on_device else to_numpy(u)

    def readouts(
        self,
        start: int,
        stop: int,
        mean: Floats | float = 0.0,
        whitening: Floats | None = None,
        is_triangular: bool = False,
    ) -> Any:
        """Return prepared readouts of the rows `start` to `stop`, times the roots of weights.

        The shape is (samples, n_columns), the constant first. With `whitening` the others are
        multiplied by that matrix after `mean` is subtracted, and the shape is (samples, rank); the
        matrix may be an upper triangle.
        """
        block = self.x.read(start, stop)
        if is_on_host(block):
            # The result is computed in place: this is where the time of a small job goes.
            n_columns = self.n_columns
            if whitening is not None:
                n_columns = self.constant + whitening.shape[1]
            out = np.empty((len(block), n_columns))
            out[:, : self.constant] = 1.0
            readouts = out[:, self.constant :]
            if whitening is None:
                self.prepare(block, mean, out=readouts)
            elif is_triangular:
                multiply_by_triangle(self.prepare(block, mean), whitening, out=readouts)
            else:
                np.matmul(self.prepare(block, mean), whitening, out=readouts)
            return self.apply_weights(out, start)
        readouts = self.prepare(block, mean)
        if whitening is not None:
            readouts = readouts @ to_library_of(whitening, readouts)
        if self.constant:
            xp = array_namespace(block)
            readouts = xp.concat([xp.ones_like(readouts[:, :1]), readouts], axis=1)
        return self.apply_weights(readouts, start)

    def prepare(self, block: Any, mean: Floats | float = 0.0, out: Floats | None = None) -> Any:
        """Return rows of the table of readouts as ``scale * (x - shift)``, channels in use only.

        There is no constant among them, and no weight.

        `mean`, in units of prepared readouts, is subtracted, too. The result goes into `out` where
        that is passed, which only works on the host.
        """
        has_all_channels = len(self.channels) == block.shape[1]
        has_scale = bool(np.any(self.scale != 1))
        if not is_on_host(block):
            if not has_all_channels:
                channels = to_library_of(self.channels, block)
                block = array_namespace(block).take(block, channels, axis=1)
            if has_scale:
                block = block * to_library_of(self.scale, block)
            return block - to_library_of(self.shift * self.scale + mean, block)
        if not has_all_channels:
            block = block[:, self.channels]
        if has_scale:
            block = block * self.scale
        return np.subtract(block, self.shift * self.scale + mean, out=out)

    def apply_weights(self, block: Any, start: int) -> Any:
        """Return values at the rows from `start` on, times the roots of the weights."""
        if self.sqrt_sample_weight is None:
            return block
        roots = self.sqrt_sample_weight[start : start + block.shape[0], None]
        return block * to_library_of(roots, block)

    def function_values(self, start: int, stop: int) -> Iterator[Any]:
        """Yield values of the basis, times the roots of weights, in blocks (terms, samples)."""
        for y in self.basis.value_blocks(self.inputs(start, stop)):
            yield self.apply_weights(y.T, start).T
            start += y.shape[1]

    def sample_weight(self, start: int, stop: int) -> Floats | None:
        """Return the weights of the rows `start` to `stop`; None when all are 1."""
        return None if self.sqrt_sample_weight is None else self.sqrt_sample_weight[start:stop] ** 2


def _select(values: Any, rows: Integers | slice) -> Any:
    """Return what belongs to some rows; None where there are no values."""
    return None if values is None else values[rows]


def _refuse_unequal_lengths(u_shape: tuple[int, int], x_shape: tuple[int, int]) -> None:
    if u_shape[0] == x_shape[0]:
        return
    hint = "give one row for each sample"
    if u_shape[0] and x_shape[0] >= 2 * u_shape[0]:
        hint += f", or, of a trace of virtual nodes, `rows_per_step={x_shape[0] // u_shape[0]}`"
    if u_shape[0] == x_shape[1]:
        hint = "the lengths agree with x.T"
    elif u_shape[1] == x_shape[0]:
        hint = "the lengths agree with u.T"
    raise DataError(
        f"u has shape {u_shape} and x has shape {x_shape}: unequal numbers of samples; {hint}."
    )


def _safe_scale(low: Floats, high: Floats, shift: Floats) -> Floats:
    """Return 1 for each channel, or the power of two that keeps its squares from overflowing.

    A power of two rounds nothing.
    """
    half_size = np.maximum(high / 2 - shift / 2, shift / 2 - low / 2)
    is_extreme = (half_size < MIN_RANGE_WITHOUT_SCALE) | (half_size > MAX_RANGE_WITHOUT_SCALE)
    exponent = np.clip(-np.round(np.log2(half_size)), -MAX_SCALE_EXPONENT, MAX_SCALE_EXPONENT)
    return np.where(is_extreme, np.exp2(exponent), 1.0)
