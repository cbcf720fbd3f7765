"""A simulator: sweep its parameters, and see whether capacity predicts accuracy on a task."""

import functools
import sys
from pathlib import Path

import matplotlib

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
POWERS_DBM = (-9.1, -1.9, 1.0, 4.5, 7.1)  # the paper's


def main(
    powers_dbm: tuple[float, ...] = POWERS_DBM, max_degree: int = 14, n_samples: int = 4096
) -> None:
    """Measure the photonic system at several powers and two lengths.

    The script can be stopped and started again at any time.
    """
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=max_degree)
    task = infocap.tasks.two_spirals()
    make_system = functools.partial(infocap.photonics.FibreSystem, n_inputs=2, tolerance=1e-3)

    # Finished settings stay in the folder; executor=ProcessPoolExecutor() would use all cores.
    settings = {"power_dbm": powers_dbm, "length_m": [5, 40]}
    folder = OUTPUT / f"sweep-{max_degree}-{n_samples}"
    sweep = infocap.sweep(make_system, settings, basis, n_samples, seed=1, path=folder)
    print(sweep)

    scores = [infocap.tasks.accuracy(make_system(**point), task) for point in sweep.points]
    relation = infocap.tasks.capacity_accuracy(sweep, scores)
    print(relation)
    print(relation.to_xarray().to_dataframe().round(3))

    figure = infocap.tasks.plot.capacity_accuracy(relation, against="power_dbm").figure
    figure.savefig(OUTPUT / "capacity-accuracy.png")
    print(f"Written: {OUTPUT / 'capacity-accuracy.png'}")


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main((-1.9, 4.5), max_degree=6, n_samples=1024)
    else:
        main()
