"""The exact memory of linear networks.

A linear network x[t] = a x[t-1] + b u[t] holds its past inputs in n directions. Some of them are
weaker than others by ten orders of magnitude and more, and without noise they count all the same: a
network of n nodes then remembers n inputs in all. Formulas that invert a covariance, or that cut
singular values off, lose these directions.

Without noise the memory therefore comes from the eigenvalues λ of a. With its left eigenvector w, a
direction of the state is f[t] = λ f[t-1] + v u[t], where v = w'b. A set of such functions is made
orthonormal one by one, as the orthonormal functions of Takenaka and Malmquist for one input and by
Potapov's factors for several:

- The first function, times sqrt(1 - |λ|²) / |v|, has unit variance.
- An all-pass filter (z - λ*) / (1 - λ z), with z the step back in time, acts on the component of
  the inputs along v. It keeps white inputs white, and whatever is computed from its output is
  uncorrelated with the first function.
- What the other functions hold beyond the first is computed from that output with the same
  eigenvalue μ, and with v changed along the first v by the factor (μ - λ) / (1 - μ λ*).

Every step is a filter of gain 1, so that no digits are lost.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy

from .._validation import (
    checks_arguments,
    require_number,
    require_numbers,
    require_positive,
    require_whole_number,
    shown,
)
from ..errors import DataError, DataWarning, ParameterError
from ..kernels import RANK_TOLERANCE
from ..typing import ArrayLike, Floats

# Singular values of the readouts' parts, over the largest, above which these are made orthonormal
# directly: nine digits are then right.
MIN_DIRECT_SINGULAR_VALUE = 1e-6
# What a step leaves of a function, relative to what there was before, below which it is taken for a
# combination of those before it.
MIN_REMAINING_SHARE = 1e-12


class _Direction(NamedTuple):
    """One of the functions f[t] = λ f[t-1] + v u[t] that a state holds."""

    eigenvalue: complex
    input_weights: Any  # v, (inputs,)


@checks_arguments
def linear_memory(
    a: ArrayLike,
    b: ArrayLike,
    *,
    noise: float | ArrayLike = 0.0,
    state_noise: float = 0.0,
    max_delay: int = 100,
    variance: float = 1.0,
) -> Floats:
    """Return the exact linear memory, (delays, inputs), of a network x[t] = a x[t-1] + b u[t].

    These are its capacities for the inputs u_j[t - delay].

    A linear network with independent inputs of mean zero holds these functions and no others. The
    covariance P of its state solves a Lyapunov equation::

        P = a P a' + variance b b' + state_noise² I

    Without noise on the readouts every direction of the state counts, however weak it is, and the
    sum over all delays is the number of nodes. A `DataWarning` tells where the inputs do not reach
    all of them.

    Parameters
    ----------
    a, b
        Recurrent weights (nodes, nodes), of spectral radius below 1, and input weights (nodes,) or
        (nodes, inputs).
    noise
        Standard deviation of the noise on the readouts: one number, or one per node.
    state_noise
        Standard deviation of the noise that enters every node at every step.
    max_delay
        The longest delay.
    variance
        The variance of the inputs: 1 for standard normal inputs, 1/3 for inputs uniform on [-1, 1].

    Returns
    -------
    Floats
        The capacity of every delay and input, (delays, inputs), from delay 0 on.

    Examples
    --------
    One leaky integrator, of which (1 - a²) a^(2 delay) is known:

    >>> linear_memory([[0.5]], [1.0], max_delay=2)[:, 0]
    array([0.75    , 0.1875  , 0.046875])
    """
    a = require_numbers("a", a)
    b = require_numbers("b", b)
    if b.ndim == 1:
        b = b[:, None]
    _refuse_impossible_network(a, b)
    n_nodes = len(a)
    n_inputs = b.shape[1]
    readout_noise: Any = require_numbers("noise", noise)
    fits = readout_noise.shape in ((), (1,), (n_nodes,))
    if not fits or not np.all(readout_noise >= 0):
        raise ParameterError(
            f"`noise={shown(noise)}` must be 0 or more: one number, or one for each of "
            f"{n_nodes} nodes."
        )
    noise_of_states = require_number("state_noise", state_noise, 0.0)
    entering = np.sqrt(require_positive("variance", variance)) * b
    if noise_of_states > 0:
        # Noise of the states is a further input of every node.
        entering = np.hstack([entering, noise_of_states * np.eye(n_nodes)])
    n_delays = require_whole_number("max_delay", max_delay, 0) + 1

    of_readout_noise = np.diag(np.broadcast_to(readout_noise, n_nodes))
    memory, is_exact = _memory_by_singular_values(a, entering, of_readout_noise, n_delays)
    if not is_exact and not readout_noise.any():
        memory = _memory_by_eigenvalues(a, entering, n_delays)
    elif not is_exact:
        warnings.warn(
            f"`noise={shown(noise)}` is so small that directions of the state get lost in "
            "rounding: the memory may be larger. Leave the noise out, or give its real size.",
            DataWarning,
            stacklevel=2,
        )
    return memory[:, :n_inputs]


def _refuse_impossible_network(a: Floats, b: Floats) -> None:
    """Refuse weights that are no network, or a network whose memory does not fade."""
    is_square = a.ndim == 2 and a.shape[0] == a.shape[1]
    if not is_square or not a.size or not b.size or b.ndim != 2 or len(b) != len(a):
        raise DataError(
            f"a has shape {a.shape}, b {b.shape}; give (nodes, nodes) and (nodes, inputs)."
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("a or b has NaN or infinite weights; give finite numbers.")
    radius = float(np.abs(np.linalg.eigvals(a)).max())
    if radius >= 1:
        raise ParameterError(
            f"`a` has the spectral radius {radius:.6g}: its memory does not fade; it must be below "
            "1."
        )


# With noise, or where all directions are of similar strength.


def _memory_by_singular_values(
    a: Floats, entering: Floats, of_readout_noise: Floats, n_delays: int
) -> tuple[Floats, bool]:
    """Return the memory, (delays, entering), and whether no direction of the readouts was lost."""
    # What the state holds of what entered at each delay, and of all that entered before.
    of_delays = [entering]
    for _ in range(n_delays - 1):
        of_delays.append(a @ of_delays[-1])
    of_longer_delays = _summed_over_steps(a, a @ of_delays[-1])
    columns = np.hstack([*of_delays, of_longer_delays, of_readout_noise])

    norms = np.linalg.norm(columns, axis=1)
    scaled = columns[norms > 0] / norms[norms > 0][:, None]
    _, singular_values, functions = np.linalg.svd(scaled, full_matrices=False)
    relative = singular_values / singular_values.max(initial=np.finfo(float).tiny)
    is_direction = relative > RANK_TOLERANCE
    is_exact = len(relative) == len(a) and bool(np.all(relative > MIN_DIRECT_SINGULAR_VALUE))
    if of_readout_noise.any():
        # Noise decides what weak directions are worth, so they need fewer digits.
        is_exact = bool(is_direction.all())
    n_functions = n_delays * entering.shape[1]
    power = np.sum(functions[is_direction, :n_functions] ** 2, axis=0)
    return power.reshape(n_delays, -1), is_exact


def _summed_over_steps(a: Floats, entering: Floats) -> Floats:
    """Return a root R of the sum R R' of a^k E E' a'^k over all k.

    E (nodes, inputs) is what enters the network at every step.
    """
    root = entering
    power = a
    while np.abs(power).max() > np.finfo(float).tiny ** 0.5:
        of_twice_as_many_steps = np.hstack([root, power @ root])
        triangle: Floats = np.linalg.qr(of_twice_as_many_steps.T, mode="r")  # type: ignore[assignment]
        root = triangle.T
        power = power @ power
    return root


# Without noise on the readouts.


def _memory_by_eigenvalues(a: Floats, entering: Floats, n_delays: int) -> Floats:
    """Return the memory, (delays, entering), from orthonormal functions of what entered."""
    n_inputs = entering.shape[1]
    reached = _reachable_directions(a, entering)
    directions = _directions(reached.T @ a @ reached, reached.T @ entering)

    # The response to an impulse of each input, after the all-pass filters of the functions so far.
    responses = np.zeros((n_delays, n_inputs, n_inputs), dtype=complex)
    responses[0] = np.eye(n_inputs)
    memory = np.zeros((n_delays, n_inputs))
    n_functions = 0
    for eigenvalue, input_weights in _orthogonalised(directions):
        unit = input_weights / np.linalg.norm(input_weights)
        along = responses @ unit  # (delays, inputs)
        recursion = [1, -eigenvalue]
        scale = np.sqrt(1 - abs(eigenvalue) ** 2)
        function = scipy.signal.lfilter([scale], recursion, along, axis=0)
        memory += np.abs(function) ** 2
        filtered = scipy.signal.lfilter([-np.conj(eigenvalue), 1], recursion, along, axis=0)
        responses += (filtered - along)[:, :, None] * unit.conj()
        n_functions += 1
    if n_functions < len(a):
        warnings.warn(
            f"the inputs reach {n_functions} of {len(a)} independent directions of the network, so "
            "its memory is at most that.",
            DataWarning,
            stacklevel=3,
        )
    return memory


def _reachable_directions(a: Floats, entering: Floats) -> Floats:
    """Return orthonormal directions that what enters reaches in some steps, (nodes, reached)."""
    size = float(np.linalg.norm(a, ord=2))
    found = _orthonormal_basis(entering, float(np.linalg.norm(entering, ord=2)))
    newest = found
    while newest.shape[1] > 0 and found.shape[1] < len(a):
        image = a @ newest
        for _ in range(2):  # Once is not enough where little remains.
            image = image - found @ (found.T @ image)
        newest = _orthonormal_basis(image, size)
        found = np.hstack([found, newest])
    return found


def _orthonormal_basis(columns: Floats, size: float) -> Floats:
    """Return orthonormal columns for the space of these, without what is rounding of `size`."""
    left, singular_values, _ = np.linalg.svd(columns, full_matrices=False)
    basis: Floats = left[:, singular_values > RANK_TOLERANCE * size]
    return basis


def _directions(a: Floats, entering: Floats) -> list[_Direction]:
    """Return the functions that left eigenvectors make of the state."""
    if entering.shape[1] == 1:
        # One input has a single direction, and repeated eigenvalues need no eigenvectors then.
        one = np.ones(1, dtype=complex)
        return [_Direction(value, one) for value in np.linalg.eigvals(a)]
    values, left = scipy.linalg.eig(a, left=True, right=False)
    weights = left.conj().T @ entering
    return [_Direction(value, row) for value, row in zip(values, weights, strict=True)]


def _orthogonalised(directions: list[_Direction]) -> Iterator[_Direction]:
    """Yield the functions, each without what those before it hold.

    The next one is that of which the largest share is left.
    """
    eigenvalues = np.array([direction.eigenvalue for direction in directions])
    weights = np.array([direction.input_weights for direction in directions])
    weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    has_one_input = weights.shape[1] == 1
    is_left = np.ones(len(weights), dtype=bool)
    while is_left.any():
        share = np.where(is_left, np.linalg.norm(weights, axis=1), -1.0)
        chosen = int(np.argmax(share))
        is_left[chosen] = False
        yield _Direction(eigenvalues[chosen], weights[chosen])
        if has_one_input:
            continue  # All directions are the same.

        unit = weights[chosen] / share[chosen]
        value = eigenvalues[chosen]
        factor = (eigenvalues - value) / (1 - eigenvalues * np.conj(value))
        along = weights @ unit.conj()
        weights = weights + ((factor - 1) * along)[:, None] * unit
        is_left &= np.linalg.norm(weights, axis=1) > MIN_REMAINING_SHARE * share
