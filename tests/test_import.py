"""Messy files of many makes, written here by other means than infocap's: the right total from each, in two commands."""

import csv
from datetime import datetime, timedelta

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap.cli import main

BASIS = infocap.product_basis("legendre", 2, 4)
DEVICE = infocap.theory.random_mixture(BASIS, n_active=8, n_readouts=6, noise=0.3, seed=3)
TOTAL = DEVICE.exact().sum()
N = 512
U = infocap.draw(BASIS, N, seed=5)
X = DEVICE(U)
VOLTS = 2.5 + 2.5 * U  # the second input of most files, and the first, are voltages from 0 to 5 V
START = datetime(2026, 1, 31, 23, 58)
TIMES = [START + timedelta(seconds=0.5 * k) for k in range(N)]
IN_VOLTS = ("--input", "Voltage A [V]:0:5", "--input", "Voltage B [V]:0:5")
RNG = np.random.default_rng(8)
ORDER = RNG.permutation(N)


def write_labview(folder):
    """Two headers, a column X_Value, and a column Comment that has a name and no cells."""
    lines = [
        "LabVIEW Measurement\t",
        "Writer_Version\t2",
        "Separator\tTab",
        "Date\t2026/01/31",
        "***End_of_Header***\t",
    ]
    lines += [
        "\t",
        "Channels\t8\t",
        "Samples" + 8 * "\t512",
        "X_Dimension" + 8 * "\tTime",
        "***End_of_Header***" + 8 * "\t",
    ]
    lines.append("\t".join(["X_Value", "Voltage A", "Voltage B", *(f"PD {k}" for k in range(6)), "Comment"]))
    for k in range(N):
        lines.append("\t".join(f"{value:.6f}" for value in (0.5 * k, *VOLTS[k], *X[k])))
    (folder / "run.lvm").write_text("\r\n".join(lines) + "\r\n")
    return "run.lvm", "--u", "Voltage A,Voltage B"


def write_oscilloscope(folder):
    """Channels that are numbers, a row of units, every line with a comma at its end."""
    lines = ["x-axis," + ",".join(str(k + 1) for k in range(8)) + ",", "second," + 8 * "Volt,"]
    for k in range(N):
        lines.append("".join(f"{value:.7e}," for value in (-1e-3 + 1e-6 * k, *VOLTS[k], *X[k])))
    (folder / "scope.csv").write_text("\n".join(lines))
    return "scope.csv", "--u", "1,2"


def european(value, digits):
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def write_european(folder):
    """Decimal commas, points between thousands, a time stamp with the day first, Latin-1."""
    lines = [
        "Messung;7",
        "Bediener;Müller",
        "",
        "Zeitpunkt;Spannung A [V];Spannung B [V];" + ";".join(f"Kanal {k} (µW)" for k in range(6)),
    ]
    for k in range(N):
        cells = [european(value, 5) for value in VOLTS[k]] + [european(5000 + 1000 * value, 2) for value in X[k]]
        lines.append(";".join([f"{TIMES[k]:%d.%m.%Y %H:%M:%S},{500 * (k % 2):03d}", *cells]))
    (folder / "messung.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    return "messung.csv", "--u", "Spannung*"


def write_matlab(folder):
    """A structure with one row per channel, and text and a nested structure beside it."""
    import scipy.io

    scipy.io.savemat(folder / "lab.mat", {"data": {"v": VOLTS.T, "det": X.T, "who": "Ada", "set": {"gain": 3.0}}})
    return "lab.mat", "--u", "data.v", "--x", "data.det", "--axes", "channels,samples"


def write_hdf5(folder):
    """Shots, averages and channels; the shots alone are too noisy."""
    import h5py

    with h5py.File(folder / "daq.h5", "w") as file:
        noise = RNG.normal(size=(N, 4, 6))
        file["run1/ai"] = (X[:, None] + noise - noise.mean(axis=1, keepdims=True)).astype("f4")
        file["run1/ai"].attrs["units"] = "mV"
        file["run1/ao"], file["run1/temperature"] = VOLTS, 293 + RNG.random(N)
    return "daq.h5", "--u", "run1/ao", "--x", "run1/ai", "--axes", "samples,averages,channels"


def write_spectra(folder):
    """One file per shot, in a table of inputs by their names, which are not in its order."""
    (folder / "spectra").mkdir()
    wavelengths = np.linspace(1540, 1560, 6)
    rows = ["file,V_A,V_B,operator"]
    for k in range(N):
        name = f"shot{ORDER[k]}.txt"
        head = "Ocean Optics\nIntegration time (ms): 10\nWavelength (nm)\tIntensity (counts)\n"
        body = "".join(f"{w:.2f}\t{value:.6f}\n" for w, value in zip(wavelengths, X[k], strict=True))
        (folder / "spectra" / name).write_text(head + body)
        rows.append(f"{name},{VOLTS[k, 0]:.8f},{VOLTS[k, 1]:.8f},Ada")
    (folder / "spectra" / "dark.txt").write_text(head + body)
    (folder / "inputs.csv").write_text("\n".join(rows))
    return "inputs.csv", "spectra", "--u", "V_*"


def write_excel(folder):
    """Comments with commas and line breaks between quotes, time stamps, a counter, empty cells, UTF-16."""
    comments = {3: "laser relocked, again", 4: 'filter 0.5"\nchanged', 9: "ok"}
    with (folder / "book.csv").open("w", encoding="utf-16", newline="") as file:
        file.write("sep=,\r\n")
        table = csv.writer(file)
        table.writerow(
            ["Timestamp", "Set A (V)", "Set B (V)", *(f"Det {k} (mV)" for k in range(6)), "Remarks", "Checked"]
        )
        for k in range(N):
            numbers = [f"{value:.9g}" for value in (*VOLTS[k], *X[k])]
            table.writerow([f"{TIMES[k]:%m/%d/%Y %I:%M:%S %p}", *numbers, comments.get(k, ""), ""])
    return "book.csv", "--u", "Set*"


def write_npz(folder):
    """Arrays under names of their own, a single array for each input, labels as text."""
    np.savez_compressed(
        folder / "sim.npz", va=VOLTS[:, 0], vb=VOLTS[:, 1], det=X.T.astype("f4"), labels=np.array(["a", "b"])
    )
    return "sim.npz", "--u", "va,vb", "--x", "det", "--axes", "channels,samples"


def write_tabs(folder):
    """A header in a comment as NumPy writes it, and a last column of words."""
    lines = ["# taken with rack 2", "# u1\tu2\t" + "\t".join(f"x{k}" for k in range(6)) + "\tstatus"]
    lines += ["\t".join([*(f"{value:.8g}" for value in (*VOLTS[k], *X[k])), "OK"]) for k in range(N)]
    (folder / "table.txt").write_text("\n".join(lines) + "\n")
    return ("table.txt",)


def write_netcdf(folder):
    """What xarray writes: dimensions, units, times since a date, packed integers, a variable beside them."""
    import xarray as xr

    data = xr.Dataset(
        {
            "voltage": (("shot", "input"), VOLTS, {"units": "V"}),
            "power": (("shot", "detector"), X, {"units": "uW"}),
            "humidity": ("shot", RNG.random(N)),
        },
        coords={"time": ("shot", np.array(TIMES, "M8[ns]")), "detector": list("abcdef")},
    )
    packed = {"power": {"dtype": "i4", "scale_factor": 1e-6, "_FillValue": -(2**31)}}
    data.to_netcdf(folder / "bench.nc", engine="h5netcdf", encoding=packed)
    return "bench.nc", "--u", "voltage", "--x", "power"


def write_lines_per_channel(folder):
    """One line per channel, its unit beside its name."""
    rows = [["name", "unit", *(f"shot {k}" for k in range(N))]]
    names = ["Voltage A", "Voltage B", *(f"PD{k}" for k in range(6))]
    rows += [
        [name, "V", *map(repr, values)]
        for name, values in zip(names, np.column_stack([VOLTS, X]).T.tolist(), strict=True)
    ]
    with (folder / "wide.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return "wide.csv", "--u", "Voltage*", "--axes", "channels,samples"


def write_counts(folder):
    """Photon counts with commas between thousands, beside plain ones below a thousand."""
    lines = ["shot;time;A;B;" + ";".join(f"SPAD{k}" for k in range(6))]
    for k in range(N):
        counts = [
            f"{round(2_000_000 + 500_000 * value):,}" if j else f"{round(1_000 + 300 * value):,}"
            for j, value in enumerate(X[k])
        ]
        lines.append(";".join([str(k + 1), f"{0.01 * k:.2f}", *(f"{value:.5f}" for value in VOLTS[k]), *counts]))
    (folder / "counts.csv").write_text("\n".join(lines))
    return "counts.csv", "--u", "A,B", "--x", "SPAD*"


MAKES = {name[6:]: function for name, function in list(globals().items()) if name.startswith("write_")}


def command(*words):
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("make", MAKES)
def test_a_messy_file_gives_the_right_total_in_two_commands(desk, make):
    words = MAKES[make](desk)
    assert command("import", *words, "-o", "run.nc").exit_code == 0
    assert command("estimate", "run.nc", *IN_VOLTS, "--degree", 4, "--no-growth", "-o", "result.nc").exit_code == 0
    result = infocap.load_result("result.nc")
    assert (result.n_samples, result.n_readouts) == (N, 6)
    assert abs(result.total - TOTAL) < 4 * result.total_standard_error < 0.3
