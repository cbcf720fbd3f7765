"""The main job in one go: draw a design, measure a simulated device, estimate its capacities."""

from pathlib import Path

import matplotlib

import infocap

matplotlib.use("Agg")

OUTPUT = Path("demo-output")


def main() -> None:
    """Measure a pulse with two inputs after 40 m of fibre, and write all results."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
    system = infocap.photonics.FibreSystem(power_dbm=4.5, length_m=40.0, n_inputs=2)
    print(basis)
    print(
        f"Simulating a pulse of {system.peak_power_w:.0f} W in {system.length_m:g} m of fibre, "
        "4096 times ...\n"
    )
    u = infocap.draw(basis, 4096, seed=1)
    x = system(u, seed=1)
    result = infocap.estimate(u, x, basis)
    print(result)

    OUTPUT.mkdir(exist_ok=True)
    result.save(OUTPUT / "result.nc")
    infocap.report.save(result, OUTPUT / "report.html", title="A picosecond pulse in 40 m of fibre")
    infocap.plot.save(infocap.plot.capacity_matrix(result), OUTPUT / "capacity-matrix.png")
    infocap.plot.save(infocap.plot.capacity_bars(result), OUTPUT / "capacity-bars.png")
    infocap.photonics.plot.stages(system, [[0.9, 0.5]], seed=1).savefig(
        OUTPUT / "light.png", dpi=300
    )
    print("\nWritten:")
    for path in sorted(OUTPUT.iterdir()):
        print(f"  {path}")


if __name__ == "__main__":
    main()
