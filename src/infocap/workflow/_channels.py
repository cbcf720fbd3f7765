"""rank_channels: which readouts matter, and how few of them keep most of the capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._formatting import counted, join_names, percent, with_error
from .._validation import checks_arguments, require_probability
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import SMALLEST_DIVISOR, jackknife_error_of_groups
from ..recording import Recording
from ..result import CapacityResult
from ..samples import Table
from ..typing import ArrayLike, Booleans, Floats, Integers
from ._choose import choose_basis
from ._estimate import estimate
from ._from_recording import arguments_of, planned_weights

if TYPE_CHECKING:
    import pandas as pd

# Groups of rows that are left out in turn for the errors: of a sequence, stretches.
N_GROUPS = 16
# The part of a channel that others do not explain is rounding alone if it is below this share of
# the channel: 32 eps, as where the rank of the readouts is decided.
MIN_NEW_PART = 32 * float(np.finfo(float).eps)
# A channel with a larger share in a mix that vanishes is a mix of the others.
MIN_SHARE_OF_MIX = 1e-6
# The part of the capacity that a smallest subset keeps, unless the user names another.
DEFAULT_SHARE = 0.95
# What 1 - h is at least, for rows that alone decide a channel.
MIN_LEFT = 0.1
# Channels that are listed in the terminal.
MAX_CHANNELS_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class ChannelRanking:
    """Which channels matter: what each one alone adds, and the best order to add them.

    Shares are of the total without the constant. The constant readout belongs to every subset.

    Attributes
    ----------
    names
        The name of each channel.
    loss, loss_standard_error
        The capacity lost when this channel alone is left out and all others stay, (channels,).
        Channels that know the same lose nothing each.
    order
        The numbers of the channels in the order in which they were added: each time the one that
        adds most to those before it.
    share, share_standard_error
        The share of the capacity that the first 1, 2, ... channels of this order keep, (channels,).
    result
        The capacities with all channels.
    """

    names: tuple[str, ...]
    loss: Floats
    loss_standard_error: Floats
    order: Integers
    share: Floats
    share_standard_error: Floats
    result: CapacityResult

    def smallest(self, share: float = DEFAULT_SHARE) -> tuple[str, ...]:
        """Return the names of the fewest channels, in the best order, that keep a share.

        Another choice of as few channels could keep a little more: all choices cannot be tried.

        Parameters
        ----------
        share
            The share of the capacity that they keep at least.
        """
        wanted = require_probability("share", share)
        enough = np.flatnonzero(self.share >= wanted * self.share.max())
        n_channels = int(enough[0]) + 1
        return tuple(self.names[k] for k in self.order[:n_channels].tolist())

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per channel, in the best order."""
        import pandas as pd

        return pd.DataFrame(
            {
                "channel": [self.names[k] for k in self.order.tolist()],
                "number": self.order,
                "share": self.share,
                "share_standard_error": self.share_standard_error,
                "loss": self.loss[self.order],
                "loss_standard_error": self.loss_standard_error[self.order],
            },
            index=pd.RangeIndex(1, len(self.order) + 1, name="channels"),
        )

    def __repr__(self) -> str:
        return "\n".join(self.table_lines())

    def table_lines(self) -> list[str]:
        """Return the best order of the channels, one line for each of the first."""
        kept = self.smallest()
        share = percent(DEFAULT_SHARE)
        lines = [
            f"Channels: {len(kept)} of {len(self.names)} keep {share} of the capacity; "
            "± is one standard error",
            f"  with all of them: {self.result.claim(self.result.total_in_words)}",
            f"  {share}: {join_names(kept, MAX_CHANNELS_SHOWN)}",
            "",
            "  channels  added           share kept          lost without this one alone",
        ]
        for number, row in self.to_dataframe().head(MAX_CHANNELS_SHOWN).iterrows():
            kept_so_far = f"{100 * row.share:5.1f} ± {100 * row.share_standard_error:.1f} %"
            lost = with_error(row.loss, row.loss_standard_error, digits=3)
            lines.append(f"  {number:>8}  {row.channel:<14}  {kept_so_far:<18}  {lost}")
        n_hidden = len(self.names) - MAX_CHANNELS_SHOWN
        if n_hidden > 0:
            lines.append(f"  and {counted(n_hidden, 'channel')} more, in `to_dataframe()`")
        return lines


@checks_arguments
def rank_channels(
    u: ArrayLike | Recording,
    x: ArrayLike | None = None,
    basis: ProductBasis | None = None,
    *,
    washout: int | None = None,
    sample_weight: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> ChannelRanking:
    """Find out which readouts matter, and how few of them keep most of the capacity.

    Capacities of subsets are sums over all functions of the basis, with the bias of finite samples
    removed. The order is found on the same samples, so the share of a small subset is a little too
    large where samples are few.

    Parameters
    ----------
    u, x, basis
        Inputs, readouts and functions, or one recording, as for `estimate`.
    washout, sample_weight
        Those of `estimate`.
    names
        The names of the channels; by default those of the recording, or x1, x2, ...

    Returns
    -------
    ChannelRanking
        What is lost without each channel, the best order, and the share that its beginning keeps.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> u = infocap.draw(basis, 512, seed=1)
    >>> x = np.hstack([u, u + 1e-3 * np.sin(9 * u), u**2])  # the second knows what the first does
    >>> ranking = infocap.rank_channels(u, x, basis)
    >>> len(ranking.smallest(0.9))
    2
    """
    arguments: dict[str, Any] = {"washout": washout, "sample_weight": sample_weight}
    if isinstance(u, Recording):
        recording = u
        if basis is None:
            shape = np.shape(recording.inputs)
            basis, _ = choose_basis((shape[0], shape[1]), recording.plan or None)
        of_recording = arguments_of(recording, basis.of_sequences)
        if washout is None and basis.of_sequences:
            arguments["washout"] = of_recording.get("washout")
        if sample_weight is None:
            arguments["sample_weight"] = planned_weights(recording)
        names = names or recording.channel or None
        result = estimate(recording, basis=basis, washout=arguments["washout"])
        u = of_recording["u"]
        x = of_recording["x"]
    else:
        if x is None:
            raise ParameterError(
                "`x=None`: give inputs and readouts, rank_channels(u, x, basis), or one Recording."
            )
        result = estimate(u, x, basis, **arguments)
    if result.nothing_to_show:
        raise DataError(result.nothing_to_show)
    if result.law == "recorded" or result.components is not None:
        raise ParameterError("channels are ranked under the declared law, without components.")
    rows = _rows(u, x, result, arguments)
    channel_names = _channel_names(names, rows.readouts.shape[1] - 1)
    return _rank(rows, result, channel_names)


def _channel_names(names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{number}" for number in range(1, n_channels + 1))
    if isinstance(names, str) or len(names) != n_channels:
        raise ParameterError(f"`names={names!r}` must be {n_channels} names, one per channel.")
    return tuple(map(str, names))


# From rows to factors.


@dataclass(frozen=True, eq=False)
class _Rows:
    """Readouts with the constant, functions of the inputs, and weights of the rows."""

    readouts: Floats  # (rows, channels + 1), the constant first
    functions: Floats  # (rows, terms)
    weights: Floats  # (rows,)


def _rows(u: Any, x: Any, result: CapacityResult, arguments: dict[str, Any]) -> _Rows:
    """Return the rows of all runs that have all of their past; the constant function is no part."""
    basis = result.basis
    has_degree = basis.degrees > 0
    if not np.any(result.capacity[has_degree] > 0):
        raise DataError(
            "no function of the inputs is found with all channels, so none of them can be ranked; "
            "take more samples, or other functions."
        )
    start = basis.memory
    if basis.of_sequences and arguments["washout"] is not None:
        start = max(start, int(arguments["washout"]))
    readouts = []
    functions = []
    weights = []
    inputs_of_runs = u if isinstance(u, list) else [u]
    readouts_of_runs = x if isinstance(x, list) else [x]
    for inputs, readouts_of_run in zip(inputs_of_runs, readouts_of_runs, strict=True):
        inputs_table = Table(inputs, "u").read_finite()
        readouts_table = Table(readouts_of_run, "x").read_finite()[start:]
        constant = np.ones((len(readouts_table), 1))
        readouts.append(np.hstack([constant, readouts_table]))
        functions.append(basis(inputs_table[start - basis.memory :])[:, has_degree])
        of_run = np.ones(len(inputs_table))
        if arguments["sample_weight"] is not None:
            of_run = np.asarray(arguments["sample_weight"], dtype=float)
        weights.append(of_run[start:])
    return _Rows(np.concatenate(readouts), np.concatenate(functions), np.concatenate(weights))


@dataclass(frozen=True, eq=False)
class _Factor:
    """The triangle R of a QR factorisation of readouts, and the functions in its directions.

    With Q, whose columns are orthonormal, the readouts are QR, the constant first. Products of
    readouts, RᵀR, would lose half of the digits.
    """

    directions: Floats  # Q, (rows, channels + 1)
    readouts: Floats  # R, (channels + 1, channels + 1)
    functions: Floats  # Qᵀy, (channels + 1, functions)
    n_samples: int


def _factor(readouts: Floats, functions: Floats, n_samples: int) -> _Factor:
    """Factorise readouts, and turn the functions into the same directions."""
    directions, triangle = np.linalg.qr(readouts)
    return _Factor(directions, triangle, directions.T @ functions, n_samples)


def _joined(factors: list[_Factor]) -> _Factor:
    """Return the factor of the rows of several factors, from these alone."""
    return _factor(
        np.concatenate([factor.readouts for factor in factors]),
        np.concatenate([factor.functions for factor in factors]),
        sum(factor.n_samples for factor in factors),
    )


def _standardised(rows: _Rows) -> _Rows:
    """Return the rows with channels of mean 0 and variance 1, and with the roots of their weights.

    Offset and scale of a channel are no part of what it knows, and equal scales keep the digits.
    """
    readouts = rows.readouts.copy()
    centre = readouts[:, 1:].mean(axis=0)
    spread = readouts[:, 1:].std(axis=0)
    readouts[:, 1:] = (readouts[:, 1:] - centre) / np.where(spread > 0, spread, 1.0)
    roots = np.sqrt(rows.weights)[:, None]
    return _Rows(roots * readouts, roots * rows.functions, rows.weights)


# From factors to a ranking.


def _rank(rows: _Rows, result: CapacityResult, names: tuple[str, ...]) -> ChannelRanking:
    """Return the ranking; its errors come from leaving out each group of rows in turn."""
    rows = _standardised(rows)
    whole = _factor(rows.readouts, rows.functions, len(rows.weights))
    groups = []
    places = np.arange(len(rows.weights))
    if not result.basis.of_sequences:
        # Consecutive points of a design are spread evenly, so stretches of them differ too little.
        places = np.random.default_rng(0).permutation(places)
    for numbers in np.array_split(places, N_GROUPS):
        groups.append(_factor(rows.readouts[numbers], rows.functions[numbers], len(numbers)))
    order = _best_order(whole)
    bias_of_sums = _bias_of_sums(whole, order, rows.functions)
    bias_of_losses = _bias_of_losses(whole, rows.functions)
    shares_without = []
    losses_without = []
    for number in range(N_GROUPS):
        factor = _joined(groups[:number] + groups[number + 1 :])
        shares_without.append(_shares(factor, order, bias_of_sums))
        losses_without.append(_losses(factor) - bias_of_losses)
    share_errors = [jackknife_error_of_groups(column) for column in np.array(shares_without).T]
    loss_errors = [jackknife_error_of_groups(column) for column in np.array(losses_without).T]
    return ChannelRanking(
        names=names,
        loss=_losses(whole) - bias_of_losses,
        loss_standard_error=np.array(loss_errors),
        order=order - 1,
        share=_shares(whole, order, bias_of_sums),
        share_standard_error=np.array(share_errors),
        result=result,
    )


class _Remainder:
    """What chosen channels leave of the other channels (Gram-Schmidt), and of the functions."""

    def __init__(self, factor: _Factor) -> None:
        self.channels = factor.readouts.copy()
        self.functions = factor.functions.copy()
        self.min_norm = MIN_NEW_PART * np.linalg.norm(factor.readouts, axis=0)
        self.take_out(0)  # the constant belongs to every subset

    def gains(self) -> Floats:
        """Return the sums of squares that each channel would take out of the functions."""
        norms = np.linalg.norm(self.channels, axis=0)
        is_new = norms > self.min_norm
        directions = self.channels / np.where(is_new, norms, np.inf)
        gains: Floats = np.sum((directions.T @ self.functions) ** 2, axis=1)
        return gains

    def take_out(self, channel: int) -> Floats | None:
        """Take out what one channel explains; return the new direction that it brings.

        A channel that is a mix of those taken out before brings none.
        """
        norm = np.linalg.norm(self.channels[:, channel])
        if norm <= self.min_norm[channel]:
            return None
        direction: Floats = self.channels[:, channel] / norm
        self.functions = self.functions - np.outer(direction, direction @ self.functions)
        self.channels = self.channels - np.outer(direction, direction @ self.channels)
        return direction


def _best_order(factor: _Factor) -> Integers:
    """Return the channels, numbered from 1, each the one that adds most to those before it."""
    remainder = _Remainder(factor)
    order: list[int] = []
    for _ in range(factor.readouts.shape[1] - 1):
        gains = remainder.gains()
        gains[[0, *order]] = -1.0
        order.append(int(np.argmax(gains)))
        remainder.take_out(order[-1])
    return np.array(order)


def _shares(factor: _Factor, order: Integers, bias_of_sums: Floats) -> Floats:
    """Return the share of the capacity that the first 1, 2, ... channels keep."""
    remainder = _Remainder(factor)
    # What is left of the functions once the constant is taken out.
    before = np.sum(remainder.functions**2)
    sums = []
    for channel in order.tolist():
        remainder.take_out(channel)
        sums.append((before - np.sum(remainder.functions**2)) / factor.n_samples)
    totals = np.array(sums) - bias_of_sums
    return totals / max(float(totals[-1]), SMALLEST_DIVISOR)


def _bias_of_sums(factor: _Factor, order: Integers, functions: Floats) -> Floats:
    """Return what the first 1, 2, ... channels seem to have of all functions by chance alone.

    For residuals r and leverages h it is the mean of r² h over the samples, over N: the paper's
    Δ/N, with leave-one-out residuals r / (1 - h).
    """
    remainder = _Remainder(factor)
    constant = factor.directions @ (factor.readouts[:, 0] / np.linalg.norm(factor.readouts[:, 0]))
    residuals = functions - np.outer(constant, constant @ functions)
    leverage = np.zeros(len(functions))
    biases = []
    for channel in order.tolist():
        direction = remainder.take_out(channel)
        if direction is not None:
            of_rows = factor.directions @ direction
            leverage += of_rows**2
            residuals -= np.outer(of_rows, of_rows @ functions)
        squares = np.sum(residuals**2, axis=1)
        left = np.maximum(1 - leverage, MIN_LEFT)
        biases.append(float(np.sum(squares * leverage / left**2)) / factor.n_samples)
    return np.array(biases)


@dataclass(frozen=True, eq=False)
class _Inverse:
    """R⁻¹ over the independent directions, and which channels are mixes of others."""

    matrix: Floats  # (channels + 1, channels + 1)
    norms: Floats  # of its rows, (channels + 1,)
    is_mixed: Booleans  # (channels + 1,)


def _inverse(factor: _Factor) -> _Inverse:
    left, values, right = np.linalg.svd(factor.readouts)
    is_direction = values > MIN_NEW_PART * values[0]
    matrix = (right[is_direction].T / values[is_direction]) @ left[:, is_direction].T
    norms = np.maximum(np.linalg.norm(matrix, axis=1), SMALLEST_DIVISOR)
    is_mixed = np.sum(right[~is_direction] ** 2, axis=0) > MIN_SHARE_OF_MIX
    return _Inverse(matrix, norms, is_mixed)


def _losses(factor: _Factor) -> Floats:
    """Return the capacity that is lost when one channel is left out and all others stay.

    With weights W = R⁻¹Qᵀy that is W_k² / |(R⁻¹)_k|² for each function. Nothing is lost with a
    channel that is a mix of others.
    """
    inverse = _inverse(factor)
    weights = inverse.matrix @ factor.functions
    lost = np.sum(weights**2, axis=1) / inverse.norms**2 / factor.n_samples
    losses: Floats = np.where(inverse.is_mixed, 0.0, lost)[1:]
    return losses


def _bias_of_losses(factor: _Factor, functions: Floats) -> Floats:
    """Return the losses that chance alone would give."""
    inverse = _inverse(factor)
    own_directions = factor.directions @ (inverse.matrix / inverse.norms[:, None]).T
    residuals = functions - factor.directions @ factor.functions
    leverage = np.sum(factor.directions**2, axis=1)
    left = np.maximum(1 - leverage, MIN_LEFT)
    squares = np.sum(residuals**2, axis=1) / left**2
    bias = own_directions.T**2 @ squares / factor.n_samples
    biases: Floats = np.where(inverse.is_mixed, 0.0, bias)[1:]
    return biases
