"""Capacities under the law of the inputs, as their definition says: for any set and order of functions.

Functions and readouts are the columns of one matrix whose inner products are their mean products under the law: the
triangular factor of a very long run, or of an exact covariance. Gram and Schmidt on these columns give the innovations.
No covariance is formed of a long run, so that functions that hardly differ are not lost to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.linalg import solve_discrete_lyapunov

import infocap
from _drives import SETTLING, Array, Device, Drive, LinearNetwork, NormalDrive

# Powers of the present inputs that `beyond_present` sets aside.
HIGHEST_POWER_OF_PRESENT = 10
# Part of a function's mean square that those before it leave, below which it is a sum of them: above the square of
# rounding (1e-32, times some thousands), and far below what sums in double precision resolve (1e-8).
SMALLEST_PIVOT = 1e-18

# Sequences of a long run, and its steps, shared out to batches by which its own error is judged.
N_SEQUENCES = 200
N_STEPS = 2500
N_BATCHES = 20

# A factor is (input, delay, degree), counted from 0; a function is a product of factors, the constant has none.
Factor = tuple[int, int, int]
Function = tuple[Factor, ...]


def functions_of(basis: infocap.ProductBasis) -> list[Function]:
    """Return the functions of a basis, whatever families it has."""
    functions = []
    if isinstance(basis, infocap.DelayedBasis):
        for factors in basis.factors.tolist():
            functions.append(tuple(sorted(tuple(f) for f in factors if f[2] > 0)))
    else:
        for degrees in np.asarray(basis.indices).tolist():
            functions.append(tuple((i, 0, degree) for i, degree in enumerate(degrees) if degree))
    return functions


def degree_of(function: Function) -> int:
    return sum(degree for _, _, degree in function)


def delay_of(function: Function) -> int:
    return max((delay for _, delay, _ in function), default=0)


def window_of(function: Function) -> int:
    delays = [delay for _, delay, _ in function]
    return max(delays, default=0) - min(delays, default=0)


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The functions that are asked for, and behind them the powers of the present inputs that are set aside."""

    basis: infocap.ProductBasis
    sets_powers_aside: bool = True

    @cached_property
    def asked(self) -> list[Function]:
        """The functions of the basis."""
        return functions_of(self.basis)

    @cached_property
    def set_aside(self) -> list[Function]:
        """The powers of the present inputs that the basis does not have."""
        if not isinstance(self.basis, infocap.DelayedBasis) or not self.sets_powers_aside:
            return []
        powers = []
        for number in range(self.basis.n_inputs):
            for degree in range(1, HIGHEST_POWER_OF_PRESENT + 1):
                power = ((number, 0, degree),)
                if power not in self.asked:
                    powers.append(power)
        return powers

    @cached_property
    def degrees(self) -> Array:
        """Degree of each function that is asked for."""
        return np.array([degree_of(function) for function in self.asked])

    @cached_property
    def delays(self) -> Array:
        """Largest delay of each function that is asked for."""
        return np.array([delay_of(function) for function in self.asked])

    @cached_property
    def order(self) -> list[int]:
        """The functions that are asked for by degree, largest delay and window.

        Where these agree, those of fewer factors come first, and then the order of the basis counts.
        """

        def level(place: int) -> tuple[int, ...]:
            function = self.asked[place]
            key = (degree_of(function), delay_of(function), window_of(function))
            return (*key, len(function), place)

        return sorted(range(len(self.asked)), key=level)

    @property
    def memory(self) -> int:
        """The largest delay."""
        return int(self.delays.max())

    def values(self, u: Array) -> Array:
        """Return all functions as products of Legendre polynomials, (sequences * steps, functions)."""
        n_rows = u.shape[1] - self.memory
        powers = legvander(u, HIGHEST_POWER_OF_PRESENT)
        columns = []
        for function in [*self.asked, *self.set_aside]:
            column = np.ones((len(u), n_rows))
            for number, delay, degree in function:
                first = self.memory - delay
                column = column * powers[:, first : first + n_rows, number, degree]
            columns.append(column.ravel())
        return np.stack(columns, axis=1)


def orthonormal(columns: Array) -> Array:
    """Return Gram and Schmidt's directions of columns in their order; zero for a sum of those before."""
    directions = np.zeros_like(columns)
    for place, column in enumerate(columns.T):
        size = np.linalg.norm(column)
        rest = column
        earlier = directions[:, :place]
        for _ in range(2):  # the second time removes what rounding left
            rest = rest - earlier @ (earlier.T @ rest)
        left = np.linalg.norm(rest)
        if left**2 > SMALLEST_PIVOT * size**2:
            directions[:, place] = rest / left
    return directions


@dataclass(frozen=True, eq=False)
class Capacities:
    """Capacities of functions, and the same without each batch of a long run (batches, functions)."""

    value: Array
    without: Array

    def sum(self, chosen: Array | slice = slice(None)) -> tuple[float, float]:
        """Return a sum of capacities and its standard error; that of exact ones is 0."""
        return jackknifed(self.value[chosen].sum(), self.without[:, chosen].sum(axis=1))

    @cached_property
    def errors(self) -> Array:
        """Standard error of each capacity."""
        n_batches = len(self.without)
        if not n_batches:
            return np.zeros_like(self.value)
        return np.sqrt(n_batches - 1) * self.without.std(axis=0)


def jackknifed(value: float, without: Array) -> tuple[float, float]:
    """Return a value and its jackknife standard error."""
    n_batches = len(without)
    if not n_batches:
        return float(value), 0.0
    return float(value), float(np.sqrt(n_batches - 1) * without.std())


@dataclass(frozen=True, eq=False)
class LawTruth:
    """True capacities of a device under a drive.

    Columns of `root` are the functions of the dictionary, then readouts with noise; those of `roots_without` the same
    without each batch of the long run, and none where the truth is exact. `noise_sizes` is what noise adds to each readout.
    """

    dictionary: Dictionary
    root: Array
    roots_without: tuple[Array, ...]
    noise_sizes: Array
    # What was computed for a set and order of functions; data sets often tell the same functions apart.
    _known: dict[tuple[object, ...], Capacities] = field(default_factory=dict)

    def capacities(self, told_apart: Array) -> Capacities:
        """Return the capacity of each innovation, degree first, among the functions that are told apart.

        The others have no capacity, which is 0 here.
        """
        in_order = [place for place in self.dictionary.order if told_apart[place]]
        return self._remembered(("degree", *in_order), in_order)

    def beyond_present(self, told_apart: Array) -> tuple[float, float]:
        """Return what the functions told apart that have a delay add to all powers of the present inputs."""
        asked = len(self.dictionary.asked)
        present = list(range(asked, asked + len(self.dictionary.set_aside)))
        later = []
        for place in self.dictionary.order:
            if told_apart[place]:
                (later if self.dictionary.delays[place] else present).append(place)
        # The constant and the lower powers come first.
        present.sort(key=lambda place: degree_of(self._function(place)))
        found = self._remembered(("delay", *present, *later), [*present, *later])
        return found.sum(np.array(later, dtype=int))

    def recall(self, place: int) -> float:
        """Return R² of one function itself, without the constant."""
        constant = self.dictionary.asked.index(())
        n_functions = len(self.dictionary.asked) + len(self.dictionary.set_aside)
        return float(_capacities_of(self.root, n_functions, [constant, place])[1])

    def _function(self, place: int) -> Function:
        return [*self.dictionary.asked, *self.dictionary.set_aside][place]

    def _remembered(self, key: tuple[object, ...], order: list[int]) -> Capacities:
        if key not in self._known:
            n_functions = len(self.dictionary.asked) + len(self.dictionary.set_aside)
            tables = []
            for root in (self.root, *self.roots_without):
                table = np.zeros(n_functions)
                table[order] = _capacities_of(root, n_functions, order)
                tables.append(table)
            value = tables[0]
            without = np.array(tables[1:]).reshape(-1, n_functions)
            if len(without):
                # Least squares in a finite run finds a little too much; the jackknife removes what goes with 1 / N.
                value = len(without) * value - (len(without) - 1) * without.mean(axis=0)
            self._known[key] = Capacities(value, without)
        return self._known[key]


def _capacities_of(root: Array, n_functions: int, order: list[int]) -> Array:
    """Return the capacities of the innovations of some columns in their order."""
    constant = root[:, :1]
    readouts = orthonormal(np.hstack([constant, root[:, n_functions:]]))
    innovations = orthonormal(root[:, order])
    return np.sum((readouts.T @ innovations) ** 2, axis=0)


def with_noise(root: Array, n_readouts: int, sizes: Array) -> Array:
    """Append rows that add noise to the readouts, independent of all else."""
    rows = np.zeros((n_readouts, root.shape[1]))
    rows[:, root.shape[1] - n_readouts :] = np.diag(sizes)
    return np.vstack([root, rows])


def long_run(drive: Drive, device: Device, basis: infocap.ProductBasis, seed: int) -> LawTruth:
    """Return the truth from half a million steps."""
    dictionary = Dictionary(basis)
    rng = np.random.default_rng(seed)
    u = drive.draw(rng, N_SEQUENCES, SETTLING + dictionary.memory + N_STEPS)
    x = device.respond(u)[:, SETTLING + dictionary.memory :]
    u = u[:, SETTLING:]
    n_readouts = x.shape[2]
    spread = x.std(axis=(0, 1))
    sizes = device.noise * np.where(spread > 0, spread, 1.0)
    batches = []
    for one in np.array_split(np.arange(N_SEQUENCES), N_BATCHES):
        values = dictionary.values(u[one])
        columns = np.hstack([values, x[one].reshape(-1, n_readouts)])
        batches.append(np.linalg.qr(columns / np.sqrt(N_SEQUENCES * N_STEPS), mode="r"))
    roots_without = []
    for left_out in range(N_BATCHES):
        others = [batch for number, batch in enumerate(batches) if number != left_out]
        root = np.linalg.qr(np.vstack(others), mode="r") * np.sqrt(N_BATCHES / (N_BATCHES - 1))
        roots_without.append(with_noise(root, n_readouts, sizes))
    root = with_noise(np.linalg.qr(np.vstack(batches), mode="r"), n_readouts, sizes)
    return LawTruth(dictionary, root, tuple(roots_without), sizes)


def exact(drive: NormalDrive, device: LinearNetwork, basis: infocap.DelayedBasis) -> LawTruth:
    """Return the truth of a linear network with normal inputs, from the covariance of its state.

    The basis has degrees 1 and 2. Powers of the present input above 2 need not be set aside: what they say beyond lower
    ones is orthogonal to every linear readout.
    """
    dictionary = Dictionary(basis, sets_powers_aside=False)
    covariance = state_covariance(drive, device, dictionary.memory)
    n_delays = dictionary.memory + 1
    of_inputs = covariance[:n_delays, :n_delays]
    products = _moments_of_products(dictionary.asked, of_inputs)
    with_readouts = np.zeros((len(products), device.n_nodes))
    for place, function in enumerate(dictionary.asked):
        if degree_of(function) == 1:
            with_readouts[place] = covariance[delay_of(function), n_delays:]
    of_readouts = covariance[n_delays:, n_delays:]
    gram = np.block([[products, with_readouts], [with_readouts.T, of_readouts]])
    sizes = device.noise * np.sqrt(np.diag(of_readouts))
    # Noise is part of the Gram matrix, which is positive definite with it.
    gram[len(products) :, len(products) :] += np.diag(sizes**2)
    return LawTruth(dictionary, np.linalg.cholesky(gram).T, (), sizes)


def state_covariance(drive: NormalDrive, device: LinearNetwork, memory: int) -> Array:
    """Return the covariance of u[t], ..., u[t - memory] and the readouts without noise at time t."""
    between, from_input = device.weights
    of_drive, shock_of_drive = drive.transition
    scale = 1 / np.sqrt(drive.variance)  # inputs of variance 1
    n_inputs = max(memory + 1, 2)
    n_state = n_inputs + 1 + device.n_nodes  # inputs, the shock, readouts
    shock_place = n_inputs
    transition = np.zeros((n_state, n_state))
    transition[0, [0, 1, shock_place]] = of_drive[0] * [1.0, 1.0, scale]
    transition[np.arange(1, n_inputs), np.arange(n_inputs - 1)] = 1.0
    transition[shock_place + 1 :, shock_place + 1 :] = between
    transition[shock_place + 1 :] += np.outer(from_input, transition[0])
    shock = np.zeros(n_state)
    shock[0] = scale * shock_of_drive[0]
    shock[shock_place] = 1.0
    shock[shock_place + 1 :] = from_input * shock[0]
    covariance = solve_discrete_lyapunov(transition, np.outer(shock, shock))
    kept = [*range(memory + 1), *range(shock_place + 1, n_state)]
    return covariance[np.ix_(kept, kept)]


def _moments_of_products(functions: list[Function], covariance: Array) -> Array:
    """Return the mean products of monomials up to degree 2 of normal inputs (Isserlis)."""
    delays = []
    for function in functions:
        delays.append([delay for _, delay, degree in function for _ in range(degree)])
    moments = np.empty((len(functions), len(functions)))
    for row, first in enumerate(delays):
        for column, second in enumerate(delays):
            moments[row, column] = _normal_moment([*first, *second], covariance)
    return moments


def _normal_moment(places: list[int], covariance: Array) -> float:
    """Return the mean of a product of normal variables of mean 0, the sum over all pairings."""
    if not places:
        return 1.0
    first, *others = places
    total = 0.0
    for number, partner in enumerate(others):
        rest = others[:number] + others[number + 1 :]
        total += covariance[first, partner] * _normal_moment(rest, covariance)
    return total
