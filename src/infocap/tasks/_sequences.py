"""The tasks that reservoirs are compared by: a sequence of inputs, and a real target at every step."""

import numpy as np

from .._validation import number, positive, whole_number
from ..errors import ParameterError
from ..typing import Floats
from ._task import Task

# Steps before the first row, in which a recursion forgets that it started from zero.
WARM_UP = 500
# Up to this order the recursion of NARMA hardly ever diverges for inputs up to 0.5; above, it is bounded by tanh.
STABLE_ORDER = 10
# The recursion does not come back from this value (otherwise y stayed below 1.3 in 600,000 steps), and is tried anew.
DIVERGED, TRIES = 10.0, 50
# Weights of the channel's symbols from d[t+2] to d[t-7] (Mathews and Lee, 1994; Jaeger and Haas, 2004).
CHANNEL = (0.08, -0.12, 1.0, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01)
# Steps of integration of the Mackey-Glass equation per unit of time; twice as many change the first 100 units by 1e-5.
FINE = 20


def narma(
    order: int = 10,
    n_steps: int = 4000,
    *,
    domain: tuple[float, float] = (0.0, 0.5),
    seed: int | None = 0,
) -> Task:
    """Nonlinear autoregressive moving average: y[t+1] from independent inputs up to u[t].

    y[t+1] = 0.3 y[t] + 0.05 y[t] (y[t] + ... + y[t-order+1]) + 1.5 u[t-order+1] u[t] + 0.1, u uniform on [0, 0.5]
    (Atiya and Parlos, IEEE Trans. Neural Netw. 11, 697, 2000); above order 10, where this diverges, y[t+1] = tanh(the
    same with 0.01 in place of 0.1) + 0.2 (Rodan and Tiňo, IEEE Trans. Neural Netw. 22, 131, 2011, for order 20; some
    programs leave out the 0.2).
    The inputs of the task are u, as in the literature, or u scaled to another `domain`, such as (-1, 1) for a device
    whose capacities were measured there. A sequence for which y diverges, which happens about once in 300,000 steps
    of order 10, is drawn anew.

    >>> narma(10)
    Task 'NARMA10': 4000 samples, 1 inputs, a real target, a sequence with a memory of 30 steps
      source: drawn with order=10, n_steps=4000, domain=(0, 0.5), seed=0
    """
    order, n_steps = whole_number("order", order, 1), whole_number("n_steps", n_steps, 10)
    low, high = (
        (number("domain", edge) for edge in domain) if np.shape(domain) == (2,) else (0.0, 0.0)
    )
    if low >= high:
        raise ParameterError(f"`domain={domain!r}` must be (low, high) with low below high.")
    generator = np.random.default_rng(seed)
    for _ in range(TRIES):
        u = generator.uniform(0, 0.5, WARM_UP + n_steps)
        y = _narma_series(u, order)
        if np.isfinite(y[-1]):
            break
    else:
        raise ParameterError(
            f"NARMA{order} diverged in {TRIES} sequences of `n_steps={n_steps}`; give fewer."
        )
    said = f"drawn with order={order}, n_steps={n_steps}, domain=({low:g}, {high:g}), seed={seed}"
    inputs = low + (high - low) * 2 * u[WARM_UP:, None]
    return Task(inputs, y[WARM_UP + 1 :], f"NARMA{order}", said, regression=True, memory=3 * order)


def _narma_series(u: Floats, order: int) -> Floats:
    """y (steps + 1,) from its first value on; it ends with NaN where it diverges."""
    y = np.zeros(len(u) + 1)
    for t in range(order - 1, len(u)):
        y[t + 1] = (
            0.3 * y[t]
            + 0.05 * y[t] * y[t - order + 1 : t + 1].sum()
            + 1.5 * u[t - order + 1] * u[t]
        )
        y[t + 1] = y[t + 1] + 0.1 if order <= STABLE_ORDER else np.tanh(y[t + 1] + 0.01) + 0.2
        if y[t + 1] > DIVERGED:
            y[t + 1 :] = np.nan
            break
    return y


def parity(n: int = 3, delay: int = 0, n_steps: int = 4000, *, seed: int | None = 0) -> Task:
    """The product of `n` past inputs of ± 1, u[t-delay] ... u[t-delay-n+1], which is 1 or -1.

    For n = 2 it is the delayed exclusive or (Bertschinger and Natschläger, 2004). R² is the capacity of this product;
    ``dataclasses.replace(task, regression=False)`` is the same task with two classes, for the share of right answers.

    >>> parity(2, delay=1, n_steps=100).memory
    2
    """
    n, delay = whole_number("n", n, 1), whole_number("delay", delay, 0)
    n_steps, memory = whole_number("n_steps", n_steps, 10), delay + n - 1
    u = np.random.default_rng(seed).choice([-1.0, 1.0], n_steps + memory)
    target = np.prod([u[k : k + n_steps] for k in range(n)], axis=0)
    said = f"drawn with n={n}, delay={delay}, n_steps={n_steps}, seed={seed}"
    name = f"parity of {n} at delay {delay}"
    return Task(u[memory:, None], target, name, said, regression=True, memory=max(memory, 1))


def channel_equalisation(
    n_steps: int = 4000, *, snr_db: float = 28.0, seed: int | None = 0
) -> Task:
    """Symbols -3, -1, 1, 3 to be recovered from a noisy nonlinear channel with echoes, two steps later.

    The input is q + 0.036 q² - 0.011 q³ + noise, q[t] = 0.08 d[t+2] - 0.12 d[t+1] + d[t] + 0.18 d[t-1] - ... (Mathews
    and Lee, 1994), the target d[t-2], as Jaeger and Haas (Science 304, 78, 2004) have it, without their shift of the
    input by 30. `snr_db` is the ratio of the powers of signal and noise in decibels. The field also rounds predictions
    to the nearest symbol and counts the wrong ones; R² and NRMSE are those before rounding.

    >>> channel_equalisation(n_steps=100).name
    'channel equalisation at 28 dB'
    """
    n_steps, generator = whole_number("n_steps", n_steps, 10), np.random.default_rng(seed)
    d = generator.choice([-3.0, -1.0, 1.0, 3.0], n_steps + len(CHANNEL) - 1)
    q = np.convolve(d, CHANNEL, mode="valid")  # the first is at t = 7 of d
    clean = q + 0.036 * q**2 - 0.011 * q**3
    noise = np.std(clean) * 10 ** (-number("snr_db", snr_db) / 20)
    inputs = clean + noise * generator.standard_normal(n_steps)
    said = f"drawn with n_steps={n_steps}, snr_db={snr_db:g}, seed={seed}"
    name = f"channel equalisation at {snr_db:g} dB"
    return Task(
        inputs[:, None], d[5 : 5 + n_steps], name, said, regression=True, memory=len(CHANNEL)
    )


def mackey_glass(
    horizon: int = 84, n_steps: int = 4000, *, delay: float = 17.0, seed: int | None = 0
) -> Task:
    """The Mackey-Glass series `horizon` steps ahead, from its values up to now.

    x' = 0.2 x(t - delay) / (1 + x(t - delay)^10) - 0.1 x, sampled at every unit of time and shown as tanh(x - 1), both
    as Jaeger and Haas (Science 304, 78, 2004) have it; their error 84 steps ahead is of a network that runs freely,
    ours of a readout trained for this horizon. The inputs are not independent in time, so capacities measured with
    independent inputs do not tell how well a device does here.

    >>> mackey_glass(horizon=10, n_steps=200).inputs.shape
    (200, 1)
    """
    horizon, n_steps = whole_number("horizon", horizon, 1), whole_number("n_steps", n_steps, 10)
    positive("delay", delay)
    x = np.tanh(
        _mackey_glass_series(WARM_UP + n_steps + horizon, delay, np.random.default_rng(seed))[
            WARM_UP:
        ]
        - 1
    )
    said = f"integrated with horizon={horizon}, n_steps={n_steps}, delay={delay:g}, seed={seed}"
    name, memory = f"Mackey-Glass {horizon} steps ahead", horizon + int(np.ceil(delay))
    return Task(x[:n_steps, None], x[horizon:], name, said, regression=True, memory=memory)


def _mackey_glass_series(n_steps: int, delay: float, generator: np.random.Generator) -> Floats:
    """x at whole times: over one delay the feedback is known, and the equation linear."""
    from scipy.signal import lfilter

    size = max(round(FINE * delay), 1)  # fine steps per delay
    step = delay / size
    decay = np.exp(-0.1 * step)
    gain = (1 - decay) / 0.1  # of a feedback that is constant over a fine step
    x = [1.2 + 0.2 * (generator.random(size + 1) - 0.5)]
    for _ in range(int(np.ceil((n_steps + 1) / delay)) + 1):
        past = x[-1]
        f = 0.2 * past / (1 + past**10)
        drive = gain * (f[:-1] + f[1:]) / 2
        x.append(
            np.concatenate(
                [past[-1:], lfilter([1.0], [1.0, -decay], drive, zi=[decay * past[-1]])[0]]
            )
        )
    fine = np.concatenate([piece[1:] for piece in x])
    return np.interp(np.arange(1, n_steps + 1), step * np.arange(1, len(fine) + 1), fine)
