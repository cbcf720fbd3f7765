"""Which of three reservoirs does NARMA-10 best? Capacities say so before anything is trained.

The capacities of each device are measured once. What the task needs (its target expanded in the
functions of past inputs) and what a device computes then give R² for any task of this kind. A
readout that is trained for the task, and tested on other steps, confirms the prediction.
"""

import warnings
from pathlib import Path

import infocap

OUTPUT = Path("example-output")
N_STEPS = 8000
WASHOUT = 300
DEVICES = {
    "weak": infocap.systems.EchoState(
        100, radius=0.95, input_scale=0.1, bias=0.2, noise=1e-4, seed=1
    ),
    "delay": infocap.systems.DelayReservoir(100, seed=1),
    "strong": infocap.systems.EchoState(
        100, radius=0.95, input_scale=1.0, bias=0.2, noise=1e-4, seed=1
    ),
}


def measure(name: str) -> infocap.CapacityResult:
    """Return the capacities of a device for functions of up to 40 past inputs."""
    basis = infocap.delayed_basis("legendre", max_delay={1: 40, 2: 20, 3: 8})
    u = infocap.draw(basis, N_STEPS, seed=1)
    return infocap.estimate(u, DEVICES[name](u, seed=1), basis, washout=WASHOUT)


def main() -> None:
    """Print predicted and trained scores, and write the results for `infocap task`."""
    OUTPUT.mkdir(exist_ok=True)
    task = infocap.tasks.narma(10, N_STEPS, domain=(-1, 1), seed=5)
    for name, device in DEVICES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", infocap.errors.DataWarning)
            result = measure(name)
            predicted = infocap.tasks.predict_score(
                infocap.tasks.named_task("narma10", result.basis), result
            )
            trained = infocap.tasks.accuracy(device, task, washout=WASHOUT)
        result.save(OUTPUT / f"{name}.nc")
        print(f"{name}: total {result.total_in_words}")
        print(f"  predicted R² {predicted.score_in_words}")
        print(f"  trained R² {trained.mean:.3f} ± {trained.standard_error:.3f}")


if __name__ == "__main__":
    main()
