"""The main job in one go: draw a design, measure a built-in system, estimate its capacities, show them."""

from pathlib import Path

import matplotlib

import infocap

matplotlib.use("Agg")

OUTPUT = Path("demo-output")


def main() -> None:
    """Two inputs, 71 noisy tanh readouts, the paper's 120 Legendre functions, 4096 Sobol points."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=71, noise=1e-3)
    print(f"{basis}\nMeasuring {system} at 4096 Sobol points ...\n")
    result = infocap.probe(system, basis, 4096, seed=1)
    print(result)

    OUTPUT.mkdir(exist_ok=True)
    result.save(OUTPUT / "result.nc")
    infocap.plot.capacity_matrix(result).figure.savefig(OUTPUT / "capacity-matrix.png", dpi=300)
    infocap.plot.capacity_bars(result).figure.savefig(OUTPUT / "capacity-bars.png", dpi=300)
    print("\nWritten:")
    for path in sorted(OUTPUT.iterdir()):
        print(f"  {path}")


if __name__ == "__main__":
    main()
