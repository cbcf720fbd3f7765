"""The orders in which inputs are measured and written to a file, all without a mistake.

A design gives inputs in the order of acquisition. Their joint distribution is that of the basis,
unless the docstring of the design says otherwise; what differs is how neighbouring rows are
related, in which order the rows stand in the file, and whether the file has a column of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr
from scipy.stats import qmc

import infocap

Array = np.ndarray
# Inputs (rows, inputs) in the order of acquisition, from a basis, a number of rows and a seed.
DrawInputs = Callable[[infocap.ProductBasis, int, int], Array]

# Parts of the tables of designs and of kinds of device. Checks are developed with the first; the
# others stay unseen until checks are finished.
DEVELOPED = "developed"
HELD_OUT = "held-out"
THIRD = "third"
FOURTH = "fourth"

# Keys that keep the random numbers of inputs, file order and time apart.
INPUTS_KEY = 1
FILE_KEY = 2
# Points of the unit cube keep this distance from its faces, where a normal quantile is infinite.
MIN_DISTANCE_FROM_FACE = 2.0**-32
# Share of its plan that a part-way recording holds.
PART_WAY = 0.6
# Rows for which a held input stays.
ROWS_PER_HELD_INPUT = 3
# Autocorrelation of neighbouring rows; seeds take turns.
AUTOCORRELATIONS = (0.5, 0.9)
# Rows per period of periodic inputs; each input has a period of its own between these.
SHORTEST_PERIOD = 15.0
LONGEST_PERIOD = 60.0
# Standard deviation of one step of the random walk, in units of the width of the unit cube.
WALK_STEP = 0.1
# Bands of the first input that are measured in random order.
N_BANDS = 16
# Rows of one sweep up or down.
ROWS_PER_SWEEP = 80
# Rows on average for which each input stays when they change independently of each other.
MEAN_ROWS_PER_LEVEL = 4.0
# Rows of one Latin hypercube, where the run consists of many.
ROWS_PER_HYPERCUBE = 64
# Rows are written every so many seconds, give or take this share.
SECONDS_PER_ROW = 0.02
TIME_JITTER = 0.2

# Causes that are right words for these designs, today's and those that new checks may use.
ORDER_WORDS = ("order of inputs", "inputs in order")
LEVEL_WORDS = ("rounded inputs", "repeats")
DEPENDENCE_WORDS = ("inputs depend", "inputs are not independent", "dependent inputs")
# Words about inputs, which are right for a device with memory wherever its inputs are dependent.
WORDS_ABOUT_INPUTS = (
    *ORDER_WORDS,
    *LEVEL_WORDS,
    *DEPENDENCE_WORDS,
    "domain",
    "shape of inputs",
    "correlated inputs",
)


def to_inputs(basis: infocap.ProductBasis, points: Array) -> Array:
    """Return the inputs at points of the unit cube, by the quantile function of each input."""
    inside = np.clip(points, MIN_DISTANCE_FROM_FACE, 1 - MIN_DISTANCE_FROM_FACE)
    columns = []
    for family, column in zip(basis.families, inside.T, strict=True):
        columns.append(family.quantile(column))
    return np.column_stack(columns)


def random_generator(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, INPUTS_KEY])


def without_memory(basis: infocap.ProductBasis) -> infocap.ProductBasis:
    """Return a basis of the same inputs whose rows have no order."""
    return infocap.product_basis(basis.families, max_degree=1)


def drawn(design: str) -> DrawInputs:
    """Return the inputs that `infocap.draw` gives, in the order that it gives them."""

    def draw(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
        return infocap.draw(without_memory(basis), n, design=design, seed=seed)

    return draw


def shuffled(engine: Callable[..., qmc.QMCEngine]) -> DrawInputs:
    """Return points of one of SciPy's designs in random order."""

    def draw(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
        generator = random_generator(seed)
        points = engine(basis.n_inputs, rng=generator).random(n)
        return to_inputs(basis, generator.permutation(points))

    return draw


def part_way(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return the first rows of a plan that is measured up to PART_WAY."""
    n_planned = round(n / PART_WAY)
    return infocap.draw(without_memory(basis), n_planned, seed=seed)[:n]


def sobol_in_own_order(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return SciPy's Sobol points, of which each lies far from the one before."""
    power_of_two = (n - 1).bit_length()
    points = qmc.Sobol(basis.n_inputs, rng=random_generator(seed)).random_base2(power_of_two)
    return to_inputs(basis, points[:n])


def sorted_by_first_input(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return one of four designs, the seeds taking turns, sorted by u1."""
    makers = (drawn("sobol"), drawn("random"), shuffled(qmc.Halton), shuffled(qmc.LatinHypercube))
    u = makers[seed % len(makers)](basis, n, seed)
    return u[np.argsort(u[:, 0], kind="stable")]


def raster_scan(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return a grid row by row, the last input fastest, scanned as often as there is time for.

    Every input has as many levels as n rows allow, so the inputs really are on levels, and with few
    levels their distribution is not that of the basis.
    """
    q = basis.n_inputs
    n_levels = int(n ** (1 / q) + 1e-9)
    levels = (np.arange(n_levels) + 0.5) / n_levels
    grid = np.stack(np.meshgrid(*[levels] * q, indexing="ij"), axis=-1).reshape(-1, q)
    n_scans = max(n // len(grid), 1)
    return to_inputs(basis, np.tile(grid, (n_scans, 1)))


def snake_scan(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return random inputs in bands of u1, swept along u2 up and down in turn."""
    u = drawn("random")(basis, n, seed)
    order = np.argsort(u[:, 0], kind="stable")
    if basis.n_inputs == 1:
        return u[order]
    sweeps = []
    for number, band in enumerate(np.array_split(order, max(int(n**0.5), 1))):
        sweep = band[np.argsort(u[band, 1], kind="stable")]
        sweeps.append(sweep[::-1] if number % 2 else sweep)
    return u[np.concatenate(sweeps)]


def autocorrelated(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return a normal AR(1) process for each input, carried to the distribution of the input."""
    rho = AUTOCORRELATIONS[seed % len(AUTOCORRELATIONS)]
    steps = random_generator(seed).standard_normal((n, basis.n_inputs))
    steps[1:] *= np.sqrt(1 - rho**2)  # the first row is already of the stationary distribution
    return to_inputs(basis, ndtr(lfilter([1.0], [1.0, -rho], steps, axis=0)))


def periodic(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return one oscillation for each input, with its own period and the right distribution.

    The phase is uniform, and a triangle of it is, too; the periods have no common multiple.
    """
    generator = random_generator(seed)
    period = generator.uniform(SHORTEST_PERIOD, LONGEST_PERIOD, basis.n_inputs)
    phase = generator.random(basis.n_inputs)
    turns = np.arange(n)[:, None] / period + phase
    return to_inputs(basis, np.abs(2 * (turns % 1) - 1))


def held(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return random inputs, each of which stays for a few rows that are measured anew."""
    n_inputs_sent = -(-n // ROWS_PER_HELD_INPUT)  # rounded up
    u = drawn("random")(basis, n_inputs_sent, seed)
    return np.repeat(u, ROWS_PER_HELD_INPUT, axis=0)[:n]


def reflected_walk(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return a random walk of each input that is reflected at the ends."""
    generator = random_generator(seed)
    start = generator.random(basis.n_inputs)
    steps = WALK_STEP * generator.standard_normal((n, basis.n_inputs))
    unfolded = start + np.cumsum(steps, axis=0)
    return to_inputs(basis, 1 - np.abs(unfolded % 2 - 1))


# Designs that stay unseen while checks are developed.


def blocks_in_random_order(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return bands of u1 in random order; within a band, inputs are sorted by u1."""
    u = drawn("random")(basis, n, seed)
    order = np.argsort(u[:, 0], kind="stable")
    bands = np.array_split(order, N_BANDS)
    band_order = random_generator(seed).permutation(N_BANDS)
    return u[np.concatenate([bands[number] for number in band_order])]


def sweeps_up_and_down(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return sweeps of u1 over its whole range, up and down in turn; other inputs are random."""
    u = drawn("random")(basis, n, seed)
    for number, start in enumerate(range(0, n, ROWS_PER_SWEEP)):
        sweep = np.sort(u[start : start + ROWS_PER_SWEEP, 0])
        u[start : start + ROWS_PER_SWEEP, 0] = sweep[::-1] if number % 2 else sweep
    return u


def held_each_for_its_time(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return inputs that change at random times, each at times of its own."""
    generator = random_generator(seed)
    changes = generator.random((n, basis.n_inputs)) < 1 / MEAN_ROWS_PER_LEVEL
    levels = generator.random((n, basis.n_inputs))
    number_of_level = np.cumsum(changes, axis=0) - changes[0]
    return to_inputs(basis, np.take_along_axis(levels, number_of_level, axis=0))


def one_input_at_a_time(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return rows of which each differs from the one before by one input, the inputs taking turns."""
    generator = random_generator(seed)
    q = basis.n_inputs
    points = np.empty((n, q))
    point = generator.random(q)
    for row in range(n):
        point[row % q] = generator.random()
        points[row] = point
    return to_inputs(basis, points)


def opposite_pairs(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return random inputs, each followed by the opposite corner of the domain."""
    points = random_generator(seed).random((-(-n // 2), basis.n_inputs))
    pairs = np.stack([points, 1 - points], axis=1)
    return to_inputs(basis, pairs.reshape(-1, basis.n_inputs)[:n])


def many_latin_hypercubes(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return one Latin hypercube after the other, each in random order."""
    generator = random_generator(seed)
    n_hypercubes = -(-n // ROWS_PER_HYPERCUBE)
    engine = qmc.LatinHypercube(basis.n_inputs, rng=generator)
    points = np.vstack([engine.random(ROWS_PER_HYPERCUBE) for _ in range(n_hypercubes)])
    return to_inputs(basis, points[:n])


def kronecker_sequence(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return multiples of irrational steps, modulo 1: each row goes on by the same step."""
    q = basis.n_inputs
    # The root of z^(q + 1) = z + 1 generalises the golden ratio to q inputs.
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (q + 1))
    steps = root ** -np.arange(1.0, q + 1)
    start = random_generator(seed).random(q)
    return to_inputs(basis, (start + np.arange(n)[:, None] * steps) % 1)


@dataclass(frozen=True)
class Design:
    """In which order inputs are measured, and how the file tells it.

    Parameters
    ----------
    draw
        The inputs in the order of acquisition.
    file_order
        The order of the rows in the file: ``"acquired"``, ``"random"`` or ``"sorted"`` by u1.
    has_time
        Whether the file has the time of every row; None where odd seeds do.
    is_random
        Whether the inputs of neighbouring measurements are independent.
    right_words
        Causes that are no false alarms here, as warnings and as notes.
    part
        DEVELOPED, or the part that stays unseen while checks are developed: HELD_OUT or FOURTH.
    of_sequences
        Whether devices with memory are measured in this design, too. The file of a sequence is in the
        order of acquisition. Snakes are left out because they are like raster scans, and part-way
        because it is a shorter sequence.
    """

    draw: DrawInputs
    file_order: str = "acquired"
    has_time: bool | None = None
    is_random: bool = True
    right_words: tuple[str, ...] = ()
    part: str = DEVELOPED
    of_sequences: bool = True

    @property
    def looks_random(self) -> bool:
        """Whether the inputs are in random order by the times, or else by the rows, of the file."""
        order_is_hidden = self.file_order == "sorted" and not self.has_time
        return self.is_random and not order_is_hidden


DEPENDENT_ROWS = (*ORDER_WORDS, *DEPENDENCE_WORDS)
DESIGNS = {
    "sobol": Design(drawn("sobol")),
    "random": Design(drawn("random")),
    "halton": Design(shuffled(qmc.Halton)),
    "latin hypercube": Design(shuffled(qmc.LatinHypercube)),
    "part-way": Design(part_way, of_sequences=False),
    "file shuffled, with time": Design(drawn("sobol"), "random", True, of_sequences=False),
    "file shuffled, no time": Design(drawn("sobol"), "random", False, of_sequences=False),
    "file sorted by u1, with time": Design(drawn("sobol"), "sorted", True, of_sequences=False),
    "file sorted by u1, no time": Design(
        drawn("sobol"), "sorted", False, right_words=DEPENDENT_ROWS, of_sequences=False
    ),
    "measured sorted by u1": Design(
        sorted_by_first_input, is_random=False, right_words=DEPENDENT_ROWS
    ),
    "sobol in its own order": Design(
        sobol_in_own_order, is_random=False, right_words=DEPENDENT_ROWS
    ),
    "raster scan": Design(
        raster_scan, is_random=False, right_words=(*DEPENDENT_ROWS, *LEVEL_WORDS)
    ),
    "snake scan": Design(
        snake_scan, is_random=False, right_words=DEPENDENT_ROWS, of_sequences=False
    ),
    "autocorrelated": Design(autocorrelated, is_random=False, right_words=DEPENDENT_ROWS),
    "periodic": Design(periodic, is_random=False, right_words=DEPENDENT_ROWS),
    "held": Design(
        held, is_random=False, right_words=(*DEPENDENT_ROWS, *LEVEL_WORDS, "held inputs")
    ),
    "reflected walk": Design(reflected_walk, is_random=False, right_words=DEPENDENT_ROWS),
    "blocks in random order": Design(
        blocks_in_random_order, is_random=False, right_words=DEPENDENT_ROWS, part=HELD_OUT
    ),
    "sweeps up and down": Design(
        sweeps_up_and_down, is_random=False, right_words=DEPENDENT_ROWS, part=HELD_OUT
    ),
    "held each for its time": Design(
        held_each_for_its_time,
        is_random=False,
        right_words=(*DEPENDENT_ROWS, *LEVEL_WORDS),
        part=HELD_OUT,
    ),
    "one input at a time": Design(
        one_input_at_a_time,
        is_random=False,
        right_words=(*DEPENDENT_ROWS, *LEVEL_WORDS),
        part=HELD_OUT,
        of_sequences=False,
    ),
    "opposite pairs": Design(
        opposite_pairs, is_random=False, right_words=DEPENDENT_ROWS, part=HELD_OUT
    ),
    # Points of one hypercube avoid each other, which very many rows show.
    "many latin hypercubes": Design(
        many_latin_hypercubes, right_words=DEPENDENT_ROWS, part=HELD_OUT
    ),
    "kronecker sequence": Design(
        kronecker_sequence, is_random=False, right_words=DEPENDENT_ROWS, part=HELD_OUT
    ),
}


def design_names(basis: infocap.ProductBasis, part: str) -> tuple[str, ...]:
    """Return the designs of a part in which devices with this basis are measured."""
    names = []
    for name, design in DESIGNS.items():
        if design.part == part and (design.of_sequences or not basis.memory):
            names.append(name)
    return tuple(names)


def as_file(design: Design, u: Array, x: Array, seed: int) -> infocap.Recording:
    """Return the recording of rows that were measured in this order, as its file has it."""
    generator = np.random.default_rng([seed, FILE_KEY])
    n = len(u)
    if design.file_order == "random":
        rows = generator.permutation(n)
    elif design.file_order == "sorted":
        rows = np.argsort(u[:, 0], kind="stable")
    else:
        rows = np.arange(n)
    has_time = design.has_time
    if has_time is None:
        has_time = seed % 2 == 1
    time = None
    if has_time:
        jitter = generator.uniform(-TIME_JITTER, TIME_JITTER, n)
        time = SECONDS_PER_ROW * (np.arange(n) + jitter)[rows]
    return infocap.Recording(u[rows], x[rows], np.arange(n), time=time)
