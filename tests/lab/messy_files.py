"""Files as instruments and programs write them, all with the same inputs and readouts, by other means than infocap's."""

import csv
from datetime import datetime, timedelta

import numpy as np

import infocap

BASIS = infocap.product_basis("legendre", 2, 4)
DEVICE = infocap.theory.random_mixture(BASIS, n_active=8, n_readouts=6, noise=0.3, seed=3)
TOTAL = DEVICE.exact().sum()
N = 512
U = infocap.draw(BASIS, N, seed=5)
X = DEVICE(U, seed=6)
VOLTS = 2.5 + 2.5 * U  # the inputs of all files are voltages from 0 to 5 V
ROWS = np.hstack([VOLTS, X])
START = datetime(2026, 1, 31, 23, 58)
TIMES = [START + timedelta(seconds=0.5 * k) for k in range(N)]


def chance():
    """A fresh generator, so that a file is the same whichever others were written before."""
    return np.random.default_rng(8)


ORDER = chance().permutation(N)


# Each function writes a file as some instrument or program does, and returns the words of the command
# that imports it.


def numbered(name):
    """Names of the six readouts, such as PD 0, PD 1 and so on for "PD {}"."""
    return [name.format(k) for k in range(6)]


def formatted(numbers, style):
    return [format(number, style) for number in numbers]


def write_labview(folder):
    """Two headers, a column X_Value, and a column Comment that has a name and no cells."""
    header_of_file = [
        "LabVIEW Measurement\t",
        "Writer_Version\t2",
        "Separator\tTab",
        "Date\t2026/01/31",
        "***End_of_Header***\t",
    ]
    tabs = 8 * "\t"
    header_of_channels = [
        "\t",
        "Channels\t8\t",
        f"Samples{tabs}512",
        f"X_Dimension{tabs}Time",
        f"***End_of_Header***{tabs}",
    ]
    names = ["X_Value", "Voltage A", "Voltage B", *numbered("PD {}"), "Comment"]
    lines = [*header_of_file, *header_of_channels, "\t".join(names)]
    for k, row in enumerate(ROWS):
        lines.append("\t".join(formatted([0.5 * k, *row], ".6f")))
    (folder / "run.lvm").write_text("\r\n".join(lines) + "\r\n")
    return "run.lvm", "--u", "Voltage A,Voltage B"


def write_oscilloscope(folder):
    """Channels that are numbers, a row of units, every line with a comma at its end."""
    lines = ["x-axis,1,2,3,4,5,6,7,8,", "second," + 8 * "Volt,"]
    for k, row in enumerate(ROWS):
        time = -1e-3 + 1e-6 * k
        lines.append(",".join(formatted([time, *row], ".7e")) + ",")
    (folder / "scope.csv").write_text("\n".join(lines))
    return "scope.csv", "--u", "1,2"


def european(value, digits):
    """A number such as 1.234,50."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def write_european(folder):
    """Decimal commas, points between thousands, a time stamp with the day first, Latin-1."""
    names = ["Zeitpunkt", "Spannung A [V]", "Spannung B [V]", *numbered("Kanal {} (µW)")]
    lines = ["Messung;7", "Bediener;Müller", "", ";".join(names)]
    for time, volts, readouts in zip(TIMES, VOLTS, X, strict=True):
        milliseconds = time.microsecond // 1000
        cells = [f"{time:%d.%m.%Y %H:%M:%S},{milliseconds:03d}"]
        cells += [european(value, 5) for value in volts]
        cells += [european(value, 2) for value in 20000 + 1000 * readouts]
        lines.append(";".join(cells))
    (folder / "messung.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    return "messung.csv", "--u", "Spannung*"


def write_matlab(folder):
    """A structure with one row per channel, and text and a nested structure beside it."""
    import scipy.io

    structure = {"v": VOLTS.T, "det": X.T, "who": "Ada", "set": {"gain": 3.0}}
    scipy.io.savemat(folder / "lab.mat", {"data": structure})
    return "lab.mat", "--u", "data.v", "--x", "data.det", "--axes", "channels,samples"


def write_hdf5(folder):
    """Shots, averages and channels; the shots alone are too noisy."""
    import h5py

    generator = chance()
    noise = generator.normal(size=(N, 4, 6))
    noise -= noise.mean(axis=1, keepdims=True)
    with h5py.File(folder / "daq.h5", "w") as file:
        file["run1/ai"] = (X[:, None] + noise).astype("f4")
        file["run1/ai"].attrs["units"] = "mV"
        file["run1/ao"] = VOLTS
        file["run1/temperature"] = 293 + generator.random(N)
    return "daq.h5", "--u", "run1/ao", "--x", "run1/ai", "--axes", "samples,averages,channels"


def write_spectra(folder):
    """One file per shot, in a table of inputs by their names, which are not in its order."""
    (folder / "spectra").mkdir()
    header = "Ocean Optics\nIntegration time (ms): 10\nWavelength (nm)\tIntensity (counts)\n"
    wavelengths = np.linspace(1540, 1560, 6)
    table = ["file,V_A,V_B,operator"]
    for number, volts, readouts in zip(ORDER, VOLTS, X, strict=True):
        name = f"shot{number}.txt"
        spectrum = header
        for wavelength, counts in zip(wavelengths, readouts, strict=True):
            spectrum += f"{wavelength:.2f}\t{counts:.6f}\n"
        (folder / "spectra" / name).write_text(spectrum)
        table.append(",".join([name, *formatted(volts, ".8f"), "Ada"]))
    (folder / "spectra" / "dark.txt").write_text(spectrum)
    (folder / "inputs.csv").write_text("\n".join(table))
    return "inputs.csv", "spectra", "--u", "V_*"


def write_excel(folder):
    """Comments with commas and line breaks between quotes, time stamps, empty cells, UTF-16."""
    remarks = {3: "laser relocked, again", 4: 'filter 0.5"\nchanged', 9: "ok"}
    voltages = ["Set A (V)", "Set B (V)"]
    names = ["Timestamp", *voltages, *numbered("Det {} (mV)"), "Remarks", "Checked"]
    with (folder / "book.csv").open("w", encoding="utf-16", newline="") as file:
        file.write("sep=,\r\n")
        table = csv.writer(file)
        table.writerow(names)
        for k, row in enumerate(ROWS):
            time = f"{TIMES[k]:%m/%d/%Y %I:%M:%S %p}"
            table.writerow([time, *formatted(row, ".9g"), remarks.get(k, ""), ""])
    return "book.csv", "--u", "Set*"


def write_npz(folder):
    """Arrays under names of their own, a single array for each input, labels as text."""
    np.savez_compressed(
        folder / "sim.npz",
        va=VOLTS[:, 0],
        vb=VOLTS[:, 1],
        det=X.T.astype("f4"),
        labels=np.array(["a", "b"]),
    )
    return "sim.npz", "--u", "va,vb", "--x", "det", "--axes", "channels,samples"


def write_tabs(folder):
    """A header in a comment as NumPy writes it, and a last column of words."""
    names = ["u1", "u2", *numbered("x{}"), "status"]
    lines = ["# taken with rack 2", "# " + "\t".join(names)]
    for row in ROWS:
        lines.append("\t".join([*formatted(row, ".8g"), "OK"]))
    (folder / "table.txt").write_text("\n".join(lines) + "\n")
    return ("table.txt",)


def write_netcdf(folder):
    """What xarray writes: dimensions, units, times since a date, packed integers, a variable beside them."""
    import xarray as xr

    variables = {
        "voltage": (("shot", "input"), VOLTS, {"units": "V"}),
        "power": (("shot", "detector"), X, {"units": "uW"}),
        "humidity": ("shot", chance().random(N)),
    }
    coordinates = {"time": ("shot", np.array(TIMES, "M8[ns]")), "detector": list("abcdef")}
    packed = {"dtype": "i4", "scale_factor": 1e-6, "_FillValue": -(2**31)}
    dataset = xr.Dataset(variables, coordinates)
    dataset.to_netcdf(folder / "bench.nc", engine="h5netcdf", encoding={"power": packed})
    return "bench.nc", "--u", "voltage", "--x", "power"


def write_lines_per_channel(folder):
    """One line per channel, its unit beside its name."""
    names = ["Voltage A", "Voltage B", *numbered("PD{}")]
    with (folder / "wide.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "unit", *(f"shot {k}" for k in range(N))])
        for name, values in zip(names, ROWS.T.tolist(), strict=True):
            table.writerow([name, "V", *values])
    return "wide.csv", "--u", "Voltage*", "--axes", "channels,samples"


def write_counts(folder):
    """Photon counts with commas between thousands, beside plain ones below a thousand."""
    lines = [";".join(["shot", "time", "A", "B", *numbered("SPAD{}")])]
    for k, row in enumerate(ROWS):
        volts, first, others = np.split(row, [2, 3])
        cells = [str(k + 1), f"{0.01 * k:.2f}", *formatted(volts, ".5f")]
        cells += [f"{round(value):,}" for value in 1_000 + 300 * first]
        cells += [f"{round(value):,}" for value in 2_000_000 + 500_000 * others]
        lines.append(";".join(cells))
    (folder / "counts.csv").write_text("\n".join(lines))
    return "counts.csv", "--u", "A,B", "--x", "SPAD*"


MAKES = {
    "labview": write_labview,
    "oscilloscope": write_oscilloscope,
    "european": write_european,
    "matlab": write_matlab,
    "hdf5": write_hdf5,
    "spectra": write_spectra,
    "excel": write_excel,
    "npz": write_npz,
    "tabs": write_tabs,
    "netcdf": write_netcdf,
    "lines_per_channel": write_lines_per_channel,
    "counts": write_counts,
}
