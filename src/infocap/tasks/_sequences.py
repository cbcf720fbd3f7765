"""The tasks that reservoirs are compared by: a sequence of inputs, a real target at every step."""

import numpy as np

from .._validation import (
    checks_arguments,
    require_number,
    require_positive,
    require_whole_number,
    shown,
)
from ..errors import ParameterError
from ..typing import Floats, Limits
from ._task import Task

# Steps before the first row, in which a recursion forgets that it started from zero.
N_WARM_UP_STEPS = 500
# The inputs of NARMA are uniform between zero and this.
MAX_NARMA_INPUT = 0.5
# Up to this order the recursion of NARMA hardly ever diverges for these inputs; above, the
# literature bounds it by tanh.
MAX_STABLE_ORDER = 10
# The recursion does not come back from this value: in 600,000 steps that did not diverge, y stayed
# below 1.3.
DIVERGENCE_LIMIT = 10.0
# Sequences that are drawn before the task is refused.
MAX_NARMA_DRAWS = 50
# Weights of the channel's symbols from d[t+2] to d[t-7] (Mathews and Lee, 1994; Jaeger and Haas,
# 2004).
CHANNEL_WEIGHTS = (0.08, -0.12, 1.0, 0.18, -0.1, 0.091, -0.05, 0.04, 0.03, 0.01)
# Position in the sequence of symbols of the symbol d[t] that belongs to the first input.
FIRST_SYMBOL = 7
# Symbols by which the target lags behind the channel.
TARGET_LAG = 2
# Steps of integration of the Mackey-Glass equation per unit of time; twice as many change the first
# 100 units by 1e-5.
# The longest delay of the series; its past is kept in memory.
MAX_DELAY = 10_000.0
STEPS_PER_UNIT = 20


@checks_arguments
def narma(
    order: int = 10,
    n_steps: int = 4000,
    *,
    domain: Limits = (0.0, 0.5),
    seed: int | None = 0,
) -> Task:
    """Return a nonlinear autoregressive moving average: y[t+1] from independent inputs up to u[t].

    y[t+1] = 0.3 y[t] + 0.05 y[t] (y[t] + ... + y[t-order+1]) + 1.5 u[t-order+1] u[t] + 0.1, u
    uniform on [0, 0.5] (Atiya and Parlos, IEEE Trans. Neural Netw. 11, 697, 2000). Above order 10,
    where this diverges, y[t+1] = tanh(the same with 0.01 in place of 0.1) + 0.2 (Rodan and Tiňo,
    IEEE Trans. Neural Netw. 22, 131, 2011, for order 20; some programs leave out the 0.2). A
    sequence for which y diverges, which happens about once in 300,000 steps of order 10, is drawn
    anew.

    Parameters
    ----------
    order
        The number of past steps that enter.
    n_steps
        The length of the sequence.
    domain
        The range of the task's inputs: that of u, as in the literature, or another one to which u
        is scaled, such as (-1, 1) for a device whose capacities were measured there.
    seed
        Of the inputs.

    Examples
    --------
    >>> narma(10)
    Task 'NARMA10': 4000 samples, 1 inputs, a real target, a sequence with a memory of 30 steps
      source: drawn with order=10, n_steps=4000, domain=(0, 0.5), seed=0
    """
    order = require_whole_number("order", order, 1)
    n_steps = require_whole_number("n_steps", n_steps, 10)
    low, high = _checked_domain(domain)
    u, y = _draw_narma(order, n_steps, np.random.default_rng(seed))
    inputs = low + (high - low) / MAX_NARMA_INPUT * u[N_WARM_UP_STEPS:, None]
    return Task(
        inputs,
        y[N_WARM_UP_STEPS + 1 :],
        name=f"NARMA{order}",
        source=f"drawn with order={order}, n_steps={n_steps}, "
        f"domain=({low:g}, {high:g}), seed={seed}",
        regression=True,
        memory=3 * order,
    )


def _checked_domain(domain: tuple[float, float]) -> tuple[float, float]:
    """Return the lowest and the highest input; refuse what is no range."""
    if np.shape(domain) == (2,):
        low = require_number("domain", domain[0])
        high = require_number("domain", domain[1])
        if low < high:
            return low, high
    raise ParameterError(f"`domain={shown(domain)}` must be (low, high) with low below high.")


def _draw_narma(order: int, n_steps: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return inputs and targets of the first sequence that does not diverge."""
    for _ in range(MAX_NARMA_DRAWS):
        u = rng.uniform(0, MAX_NARMA_INPUT, N_WARM_UP_STEPS + n_steps)
        y = _narma_series(u, order)
        if np.isfinite(y[-1]):
            return u, y
    raise ParameterError(
        f"NARMA{order} diverged in {MAX_NARMA_DRAWS} sequences of `n_steps={n_steps}`; give fewer."
    )


def _narma_series(u: Floats, order: int) -> Floats:
    """Return y (steps + 1,) from its first value on; it ends with NaN where it diverges."""
    y = np.zeros(len(u) + 1)
    for t in range(order - 1, len(u)):
        oldest = t - order + 1
        sum_of_values = y[oldest : t + 1].sum()
        from_inputs = 1.5 * u[oldest] * u[t]
        following = 0.3 * y[t] + 0.05 * y[t] * sum_of_values + from_inputs
        if order <= MAX_STABLE_ORDER:
            y[t + 1] = following + 0.1
        else:
            y[t + 1] = np.tanh(following + 0.01) + 0.2
        if y[t + 1] > DIVERGENCE_LIMIT:
            y[t + 1 :] = np.nan
            break
    return y


@checks_arguments
def parity(n: int = 3, delay: int = 0, n_steps: int = 4000, *, seed: int | None = 0) -> Task:
    """Return the product of past inputs of ± 1, u[t-delay] ... u[t-delay-n+1], which is 1 or -1.

    For n = 2 it is the delayed exclusive or (Bertschinger and Natschläger, 2004). R² is the
    capacity of this product. ``dataclasses.replace(task, regression=False)`` is the same task with
    two classes, for the share of right answers.

    Parameters
    ----------
    n
        The number of inputs in the product.
    delay
        Steps from the latest of these inputs to the target.
    n_steps
        The length of the sequence.
    seed
        Of the inputs.

    Examples
    --------
    >>> parity(2, delay=1, n_steps=100).memory
    2
    """
    n = require_whole_number("n", n, 1)
    delay = require_whole_number("delay", delay, 0)
    n_steps = require_whole_number("n_steps", n_steps, 10)
    memory = delay + n - 1
    u = np.random.default_rng(seed).choice([-1.0, 1.0], n_steps + memory)
    factors = [u[k : k + n_steps] for k in range(n)]
    return Task(
        u[memory:, None],
        np.prod(factors, axis=0),
        name=f"parity of {n} at delay {delay}",
        source=f"drawn with n={n}, delay={delay}, n_steps={n_steps}, seed={seed}",
        regression=True,
        memory=max(memory, 1),
    )


@checks_arguments
def channel_equalisation(
    n_steps: int = 4000, *, snr_db: float = 28.0, seed: int | None = 0
) -> Task:
    """Return symbols -3, -1, 1, 3 to be recovered from a noisy nonlinear channel with echoes.

    The input is q + 0.036 q² - 0.011 q³ + noise, with q[t] = 0.08 d[t+2] - 0.12 d[t+1] + d[t] +
    0.18 d[t-1] - ... (Mathews and Lee, 1994), the target d[t-2], as in Jaeger and Haas (Science
    304, 78, 2004), without their shift of the input by 30. The field also rounds predictions to the
    nearest symbol and counts the wrong ones; R² and NRMSE are those before rounding.

    Parameters
    ----------
    n_steps
        The length of the sequence.
    snr_db
        The ratio of the powers of signal and noise in decibels.
    seed
        Of symbols and noise.

    Examples
    --------
    >>> channel_equalisation(n_steps=100).name
    'channel equalisation at 28 dB'
    """
    n_steps = require_whole_number("n_steps", n_steps, 10)
    rng = np.random.default_rng(seed)
    symbols = rng.choice([-3.0, -1.0, 1.0, 3.0], n_steps + len(CHANNEL_WEIGHTS) - 1)
    q = np.convolve(symbols, CHANNEL_WEIGHTS, mode="valid")
    signal = q + 0.036 * q**2 - 0.011 * q**3
    noise_amplitude = np.std(signal) * 10 ** (-require_number("snr_db", snr_db) / 20)
    inputs = signal + noise_amplitude * rng.standard_normal(n_steps)
    first = FIRST_SYMBOL - TARGET_LAG
    return Task(
        inputs[:, None],
        symbols[first : first + n_steps],
        name=f"channel equalisation at {snr_db:g} dB",
        source=f"drawn with n_steps={n_steps}, snr_db={snr_db:g}, seed={seed}",
        regression=True,
        memory=len(CHANNEL_WEIGHTS),
    )


@checks_arguments
def mackey_glass(
    horizon: int = 84, n_steps: int = 4000, *, delay: float = 17.0, seed: int | None = 0
) -> Task:
    """Return the Mackey-Glass series `horizon` steps ahead, from its values up to now.

    x' = 0.2 x(t - delay) / (1 + x(t - delay)^10) - 0.1 x, sampled at every unit of time and shown
    as tanh(x - 1), both as in Jaeger and Haas (Science 304, 78, 2004). Their error 84 steps ahead
    is of a network that runs freely, ours of a readout trained for this horizon. The inputs are not
    independent in time, so capacities measured with independent inputs do not predict how well a
    device does here.

    Parameters
    ----------
    horizon
        Steps from the latest input to the target.
    n_steps
        The length of the sequence.
    delay
        The delay of the equation; above 16.8 the series is chaotic.
    seed
        Of the initial values.

    Examples
    --------
    >>> mackey_glass(horizon=10, n_steps=200).inputs.shape
    (200, 1)
    """
    horizon = require_whole_number("horizon", horizon, 1)
    n_steps = require_whole_number("n_steps", n_steps, 10)
    if require_positive("delay", delay) > MAX_DELAY:
        raise ParameterError(f"`delay={delay:g}` is too long; give {MAX_DELAY:,} or less.")
    rng = np.random.default_rng(seed)
    series = _mackey_glass_series(N_WARM_UP_STEPS + n_steps + horizon, delay, rng)
    x = np.tanh(series[N_WARM_UP_STEPS:] - 1)
    return Task(
        x[:n_steps, None],
        x[horizon:],
        name=f"Mackey-Glass {horizon} steps ahead",
        source=f"integrated with horizon={horizon}, n_steps={n_steps}, "
        f"delay={delay:g}, seed={seed}",
        regression=True,
        memory=horizon + int(np.ceil(delay)),
    )


def _mackey_glass_series(n_steps: int, delay: float, rng: np.random.Generator) -> Floats:
    """Return x at whole times, integrated delay by delay.

    Over one delay the feedback is known from the delay before, so the equation is linear:
    x[k+1] = decay x[k] + gain (feedback between k and k+1), which is a recursive filter.
    """
    from scipy.signal import lfilter

    n_per_delay = max(round(STEPS_PER_UNIT * delay), 1)
    step = delay / n_per_delay
    decay = np.exp(-0.1 * step)
    gain = (1 - decay) / 0.1  # of a feedback that is constant over a step
    # The past is random around 1.2, where the series is usually started.
    past = 1.2 + 0.2 * (rng.random(n_per_delay + 1) - 0.5)
    pieces = [past[1:]]
    n_delays = int(np.ceil((n_steps + 1) / delay)) + 1
    for _ in range(n_delays):
        feedback = 0.2 * past / (1 + past**10)
        drive = gain * (feedback[:-1] + feedback[1:]) / 2
        last = past[-1]
        present, _ = lfilter([1.0], [1.0, -decay], drive, zi=[decay * last])
        past = np.concatenate([[last], present])
        pieces.append(present)
    fine = np.concatenate(pieces)
    fine_times = step * np.arange(1, len(fine) + 1)
    return np.interp(np.arange(1, n_steps + 1), fine_times, fine)
