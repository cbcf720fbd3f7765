"""Recordings of a simulated device with the mistakes that happen in laboratories, one of each kind."""

import numpy as np

import infocap

BASIS = infocap.product_basis("legendre", 2, 8)
N = 2048
U = infocap.draw(BASIS, N, seed=3)
SYSTEM = infocap.systems.RandomFeatures(2, 20, noise=1e-3, seed=5)
X = SYSTEM(U, seed=7)


def chance():
    """A fresh generator, so that a mistake is the same whichever others were made before."""
    return np.random.default_rng(1)


def late(x, lag=1, rows=slice(None)):
    out = x.copy()
    out[rows] = np.roll(x, lag, axis=0)[rows]
    return out


def with_cells(value, count=20):
    out = X.copy()
    generator = chance()
    out[generator.integers(0, N, count), generator.integers(0, 20, count)] = value
    return out


def stale():
    out = X.copy()
    for row in range(50, N, 101):
        out[row] = out[row - 1]
    return out


def glitched():
    out = X.copy()
    out[[70, 400, 800, 1300, 1900]] += chance().standard_normal((5, 20))
    return out


def wandering():
    return 20 + 0.01 * np.cumsum(chance().standard_normal(N))


def correlated():
    u = U.copy()
    u[::3, 1] = u[::3, 0]
    return u


def with_late_input():
    u = U.copy()
    u[1:, 0] = U[:-1, 0]
    return u


def with_swapped_rows():
    out = X.copy()
    first = np.arange(20, N - 1, 20)
    out[first] = X[first + 1]
    out[first + 1] = X[first]
    return out


def with_foreign_rows():
    out = X.copy()
    rows = chance().choice(N, 100, replace=False)
    out[rows] = SYSTEM(U[np.roll(rows, 7)], seed=8)
    return out


def interpolated():
    out = X.copy()
    rows = np.arange(30, N - 1, 25)
    out[rows] = (X[rows - 1] + X[rows + 1]) / 2
    return out


def with_copied_rows():
    out = X.copy()
    rows = chance().choice(N, 60, replace=False)
    out[rows[:30]] = X[rows[30:]]
    return out


def in_batches():
    parts = X.reshape(-1, 32, X.shape[1])
    return (parts - parts.mean(axis=1, keepdims=True)).reshape(X.shape)


def with_noisy_part():
    out = X.copy()
    out[600:1100] += 0.05 * chance().standard_normal((500, 20))
    return out


def with_means_for_gaps():
    is_gap = chance().random(X.shape) < 0.03
    return np.where(is_gap, X.mean(axis=0), X)


def frozen():
    out = X.copy()
    out[500:800, 3] = out[500, 3]
    return out


def wrapped():
    """A converter whose range ends before the readouts do, and which begins again at its lowest code."""
    highest = np.quantile(X, 0.98, axis=0)
    return np.where(highest < X, X - (highest - X.min(axis=0)), X)


def autoranged():
    """A meter that multiplies small values by 10, and does not write it down."""
    return np.where(np.abs(X) < 0.15 * np.abs(X).max(axis=0), 10 * X, X)


def with_wrong_signs():
    is_wrong = chance().random(X.shape) < 0.3
    return np.where(is_wrong & (np.arange(20) % 4 == 0), -X, X)


def with_thousands_separators():
    """Counts such as 1,234 read as 1.234, beside 987."""
    counts = np.round(300 + 2500 * (X - X.min()) / np.ptp(X))
    return np.where(counts >= 1000, counts / 1000, counts)


def with_stuck_bit():
    codes = np.round((X - X.min()) / np.ptp(X) * 4095).astype(int)
    return (codes | 256).astype(float)


def unfolded_trace():
    """Eight virtual nodes of two channels, not folded into one row for each input."""
    n_steps = N // 8
    return np.repeat(U[:n_steps], 8, axis=0), X[:n_steps, :16].reshape(N, 2)


def measured_in_a_row():
    u = np.repeat(U[: N // 4], 4, axis=0)
    return u, SYSTEM(u, seed=7)


NORMAL = 0.8 * np.tanh(chance().standard_normal((N, 2)))
MISTAKES = {
    "memory": lambda: (U, SYSTEM(U + 0.3 * np.roll(U, 1, axis=0), seed=7)),
    "a slip": lambda: (U, late(X, 1, slice(700, 1400))),
    "a slip backwards to the end": lambda: (U, late(X, -2, slice(1000, N))),
    "a large slip": lambda: (U, late(X, 300)),
    "reversed": lambda: (U, X[::-1]),
    "late channels": lambda: (U, np.hstack([X[:, :10], late(X[:, 10:])])),
    "another seed": lambda: (infocap.draw(BASIS, N, seed=4), X),
    "SCPI's code": lambda: (U, with_cells(9.91e37, 1)),
    "-9999": lambda: (U, with_cells(-9999.0)),
    "glitches": lambda: (U, glitched()),
    "stale": lambda: (U, stale()),
    "clipped": lambda: (U, np.clip(X, -0.5, 0.5) + 1e-4 * chance().standard_normal(X.shape)),
    "mV for V": lambda: (U, np.where(chance().random(X.shape) < 0.2, 1000 * X, X)),
    "thousands separators": lambda: (U, with_thousands_separators()),
    "autorange": lambda: (U, autoranged()),
    "gains of 2": lambda: (U, np.where(chance().random(X.shape) < 0.2, 2 * X, X)),
    "wrong signs": lambda: (U, with_wrong_signs()),
    "wrapped": lambda: (U, wrapped()),
    "rounded readouts": lambda: (U, np.round(16 * X) / 16),
    "rounded inputs": lambda: (np.round(U, 1), X),
    "gain": lambda: (0.92 * U, X),
    "shape": lambda: (NORMAL, SYSTEM(NORMAL, seed=7)),
    "correlated": lambda: (correlated(), SYSTEM(correlated(), seed=7)),
    "no effect": lambda: (np.column_stack([U[:, 0], chance().permutation(U[:, 1])]), X),
    "stacked": lambda: (np.vstack([U, U]), np.vstack([X, X])),
    "repeats": lambda: (np.vstack([U, U]), np.vstack([X, SYSTEM(U, seed=8)])),
    "held inputs": unfolded_trace,
    "four times in a row": measured_in_a_row,
    "hum": lambda: (U, X + 0.01 * np.sin(0.3117 * np.arange(N)[:, None] + np.arange(20))),
    "counter": lambda: (U, np.column_stack([X, np.arange(N)])),
    "temperature": lambda: (U, np.column_stack([X, wandering()])),
    "gap": lambda: (U, SYSTEM(np.where((np.arange(N) // 200 == 4)[:, None], 0.3, U), seed=7)),
    "a source out of step": lambda: (U, SYSTEM(with_late_input(), seed=7)),
    "both neighbours": lambda: (
        U,
        (X + 0.3 * np.roll(X, 1, axis=0) + 0.3 * np.roll(X, -1, axis=0)),
    ),
    "swapped rows": lambda: (U, with_swapped_rows()),
    "foreign rows": lambda: (U, with_foreign_rows()),
    "interpolated": lambda: (U, interpolated()),
    "copied rows": lambda: (U, with_copied_rows()),
    "batches": lambda: (U, in_batches()),
    "alternate rows": lambda: (U, X * np.where(np.arange(N) % 2, 1, 1.05)[:, None]),
    "polarity": lambda: (U, SYSTEM(U * np.where(np.arange(N) < 1000, 1, -1)[:, None], seed=7)),
    "drift": lambda: (U, X + 0.02 * np.linspace(-1, 1, N)[:, None]),
    "noisy part": lambda: (U, with_noisy_part()),
    "means for gaps": lambda: (U, with_means_for_gaps()),
    "frozen": lambda: (U, frozen()),
    "missing codes": lambda: (U, with_stuck_bit()),
    "unsteady": lambda: (U, X * np.where(np.arange(N) < 900, 1, 1.1)[:, None]),
}
CAUSES = {
    "a slip": "slip",
    "a slip backwards to the end": "slip",
    "a large slip": "shift",
    "four times in a row": "repeats",
    "reversed": "shift",
    "another seed": "nothing",
    "SCPI's code": "codes",
    "-9999": "codes",
    "mV for V": "units",
    "thousands separators": "units",
    "autorange": "gain steps",
    "gains of 2": "gain steps",
    "wrong signs": "gain steps",
    "gain": "domain",
    "shape": "shape of inputs",
    "correlated": "correlated inputs",
    "counter": "clock",
    "temperature": "clock",
    "hum": "period",
    "a source out of step": "late input",
    "both neighbours": "neighbours",
    "alternate rows": "period",
    "polarity": "response",
    "noisy part": "noise",
    "means for gaps": "codes",
    "unsteady": "response",
}


def recorded(u, x, **more):
    return infocap.Recording(u, x, np.arange(len(u)), **more)
