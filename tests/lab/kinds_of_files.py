"""Many kinds of files that laboratories have, written by other means than infocap's, all of one device."""

import bz2
import gzip
import json
import lzma
import zipfile
from datetime import timedelta

import numpy as np
from messy_files import ROWS, START, VOLTS, N, X

NAMES = ["Voltage A", "Voltage B", *(f"PD{k}" for k in range(6))]

# Rows in which a cell is a word.
N_WORDS = 7


def frame():
    import pandas as pd

    return pd.DataFrame(ROWS, columns=NAMES)


def csv_text(rows=ROWS, names=NAMES, separator=","):
    lines = [separator.join(names)]
    for row in rows:
        lines.append(
            separator.join(cell if isinstance(cell, str) else f"{cell:.9g}" for cell in row)
        )
    return "\n".join(lines) + "\n"


IN_COLUMNS = ("--u", "Voltage*")


# Each function writes files as some program does, and returns the words of the command that reads them.


def write_workbook(folder):
    """A first sheet of notes, a title above the table, dates."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["Wafer 7", "measured by Ada"])
    sheet = book.create_sheet("Run")
    sheet.append(["Run of 31 January"])
    sheet.append([])
    sheet.append(["Date", *NAMES])
    for k, row in enumerate(ROWS.tolist()):
        sheet.append([START + timedelta(seconds=k), *row])
    book.save(folder / "run.xlsx")
    return ("run.xlsx", *IN_COLUMNS)


def write_workbook_of_two_sheets(folder):
    """Inputs on one sheet and readouts on another, with units below the names."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Inputs"
    book.active.append(NAMES[:2])
    book.active.append(["V", "V"])
    readouts = book.create_sheet("Readouts")
    readouts.append(NAMES[2:])
    for volts, powers in zip(VOLTS.tolist(), X.tolist(), strict=True):
        book.active.append(volts)
        readouts.append(powers)
    book.save(folder / "two.xlsx")
    return ("two.xlsx", *IN_COLUMNS, "--sheet", "Inputs,Readouts")


def write_parquet(folder):
    """Dates as the index, as pandas writes measurements."""
    import pandas as pd

    table = frame()
    table.index = pd.date_range(START, periods=N, freq="s", name="measured")
    table.to_parquet(folder / "run.parquet")
    return ("run.parquet", *IN_COLUMNS)


def write_parquet_of_lists(folder):
    """A spectrum in each cell."""
    table = frame().iloc[:, :2].assign(spectrum=list(X))
    table.to_parquet(folder / "spectra.parquet")
    return ("spectra.parquet", *IN_COLUMNS)


def write_feather(folder):
    """Single precision, and a column of words."""
    frame().astype("float32").assign(operator="Ada").to_feather(folder / "run.feather")
    return ("run.feather", *IN_COLUMNS)


def write_json_records(folder):
    """One object for each row."""
    records = [dict(zip(NAMES, row, strict=True)) for row in ROWS.tolist()]
    (folder / "records.json").write_text(json.dumps(records))
    return ("records.json", *IN_COLUMNS)


def write_json_columns(folder):
    """Lists of lists in an object, beside words."""
    data = {"device": "wafer 7", "data": {"u": VOLTS.tolist(), "x": X.tolist()}}
    (folder / "columns.json").write_text(json.dumps(data))
    return "columns.json", "--u", "data.u", "--x", "data.x"


def write_tdms(folder):
    """Two groups of channels with units."""
    from nptdms import ChannelObject, TdmsWriter

    channels = []
    for k, name in enumerate(NAMES):
        group = "outputs" if k < 2 else "inputs"
        channels.append(ChannelObject(group, name, ROWS[:, k], {"unit_string": "V"}))
    with TdmsWriter(folder / "daq.tdms") as file:
        file.write_segment(channels)
    return ("daq.tdms", *IN_COLUMNS)


def write_igor_columns(folder):
    """One wave for each column, with units."""
    lines = ["IGOR", "WAVES/D\t" + "\t".join(f"'{name}'" for name in NAMES), "BEGIN"]
    lines += ["\t".join(f"{value:.9g}" for value in row) for row in ROWS]
    lines += ["END", "X SetScale d 0,0,\"V\", 'Voltage A','Voltage B'"]
    (folder / "waves.itx").write_text("\r".join(lines) + "\r")
    return ("waves.itx", *IN_COLUMNS)


def write_igor_matrix(folder):
    """A wave of two dimensions for the inputs, and one for the readouts."""
    lines = ["IGOR"]
    for name, table in (("volts", VOLTS), ("spectra", X)):
        lines += [f"WAVES/D/N=({N},{table.shape[1]})\t{name}", "BEGIN"]
        lines += ["\t".join(f"{value:.9g}" for value in row) for row in table]
        lines += ["END", f'X SetScale/P x 0,1,"", {name}; SetScale y 0,0,"V", {name}']
    (folder / "matrix.itx").write_text("\n".join(lines))
    return "matrix.itx", "--u", "volts", "--x", "spectra"


def write_gz(folder):
    with gzip.open(folder / "run.csv.gz", "wt") as file:
        file.write(csv_text())
    return ("run.csv.gz", *IN_COLUMNS)


def write_bz2(folder):
    with bz2.open(folder / "run.txt.bz2", "wt") as file:
        file.write(csv_text(separator="\t"))
    return ("run.txt.bz2", *IN_COLUMNS)


def write_xz(folder):
    with lzma.open(folder / "run.csv.xz", "wt") as file:
        file.write(csv_text())
    return ("run.csv.xz", *IN_COLUMNS)


def write_zip(folder):
    """With what macOS adds."""
    with zipfile.ZipFile(folder / "run.zip", "w") as archive:
        archive.writestr("export/run.csv", csv_text())
        archive.writestr("__MACOSX/export/._run.csv", b"\0\0")
    return ("run.zip", *IN_COLUMNS)


def with_words(words):
    """Rows in which some cells are words, from the first row on."""
    rows = [list(row) for row in ROWS]
    for k in range(N_WORDS):
        rows[64 * k][2 + k % 6] = words[k % len(words)]
    return rows


def write_usual_words(folder):
    """What meters write where they have no value."""
    (folder / "meter.csv").write_text(csv_text(with_words(["OVERFLOW", "--", "#DIV/0!"])))
    return ("meter.csv", *IN_COLUMNS, "--nan-policy", "omit")


def write_own_words(folder):
    """A word of one's own, and the number that stands for an overflow in SCPI."""
    (folder / "own.csv").write_text(csv_text(with_words(["lamp off", "9.9E37"])))
    return ("own.csv", *IN_COLUMNS, "--missing", "lamp off,9.9e+37", "--nan-policy", "omit")


def write_units_in_cells(folder):
    """1.23 uA beside 800 nA, and volts."""
    lines = [",".join(NAMES)]
    for volts, powers in zip(VOLTS, X, strict=True):
        cells = [f"{value:.6f} V" for value in volts]
        for value in powers:
            cells.append(f"{1000 * value:.4f} nA" if abs(value) < 1 else f"{value:.7f} uA")
        lines.append(",".join(cells))
    (folder / "units.csv").write_text("\n".join(lines))
    return ("units.csv", *IN_COLUMNS)


def write_origin(folder):
    """Three lines above the numbers: name, unit, comment."""
    units = ["V", "V", *6 * ["mW"]]
    comments = ["source", "source", *(f"detector {k}, cooled" for k in range(6))]
    lines = ["\t".join(NAMES), "\t".join(units), "\t".join(comments)]
    lines += ["\t".join(f"{value:.8g}" for value in row) for row in ROWS]
    (folder / "Book1.dat").write_text("\r\n".join(lines))
    return ("Book1.dat", *IN_COLUMNS)


def write_units_behind_slashes(folder):
    """Names as in DIN 1313, with decimal commas and a clock."""
    names = ["t / s", "U_A / V", "U_B / V", *(f"P{k} / mW" for k in range(6))]
    lines = [";".join(names)]
    for k, row in enumerate(ROWS):
        lines.append(";".join(f"{value:.7f}".replace(".", ",") for value in (0.1 * k, *row)))
    (folder / "din.csv").write_text("\n".join(lines))
    return "din.csv", "--u", "U_*"


def write_struct_array(folder):
    """data(k).v and data(k).det of MATLAB, and the name of the operator in each."""
    import scipy.io

    kinds = [("v", object), ("det", object), ("who", object)]
    data = np.empty((1, N), dtype=kinds)
    for k in range(N):
        data[0, k] = (VOLTS[k : k + 1], X[k][:, None], "Ada")
    scipy.io.savemat(folder / "shots.mat", {"data": data})
    return "shots.mat", "--u", "data.v", "--x", "data.det"


def write_struct_array_73(folder):
    """The same as -v7.3 saves it, in which each field refers to data sets elsewhere in the file."""
    import h5py

    with h5py.File(folder / "shots73.mat", "w", userblock_size=512) as file:
        elements = file.create_group("#refs#")
        group = file.create_group("data")
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        for field, table in (("v", VOLTS), ("det", X)):
            references = np.empty((N, 1), dtype=h5py.ref_dtype)
            for k, row in enumerate(table):
                element = elements.create_dataset(f"{field}{k}", data=row[:, None])
                element.attrs["MATLAB_class"] = np.bytes_("double")
                references[k, 0] = element.ref
            group.create_dataset(field, data=references)
    with (folder / "shots73.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return "shots73.mat", "--u", "data.v", "--x", "data.det"


def write_short_axes(folder):
    """Axes of length one, which MATLAB and instruments add."""
    np.savez(folder / "axes.npz", u=VOLTS[None], x=X[:, None, :, None])
    return ("axes.npz",)


def write_coordinates(folder):
    """Readouts by wavelength, with samples last, as xarray names them."""
    import xarray as xr

    variables = {
        "u": (("shot", "input"), VOLTS),
        "x": (("wavelength", "shot"), X.T, {"units": "mW"}),
    }
    wavelengths = ("wavelength", np.linspace(1540, 1560, 6), {"units": "nm"})
    dataset = xr.Dataset(variables, {"wavelength": wavelengths})
    dataset.to_netcdf(folder / "bench.nc", engine="h5netcdf")
    return ("bench.nc",)


def write_compound(folder):
    """A table of HDF5, with a type of named fields."""
    import h5py

    table = np.empty(N, dtype=[(name, "f8") for name in NAMES])
    for k, name in enumerate(NAMES):
        table[name] = ROWS[:, k]
    with h5py.File(folder / "table.h5", "w") as file:
        file["run"] = table
    return "table.h5", "--u", "run.Voltage*", "--x", "run.PD*"


def write_clock(folder):
    """A clock of a name of its own that only grows, beside one in milliseconds."""
    generator = np.random.default_rng(4)
    ticks = np.cumsum(generator.uniform(1, 2, N))
    rows = np.column_stack([ticks, 1000 * ticks + 7, ROWS])
    (folder / "clock.csv").write_text(csv_text(rows, ["ticks of the card", "elapsed_ms", *NAMES]))
    return ("clock.csv", *IN_COLUMNS)


def write_overshoot(folder):
    """Inputs that a noisy meter recorded."""
    noise = 0.015 * np.random.default_rng(4).standard_normal(VOLTS.shape)
    (folder / "meter.txt").write_text(
        csv_text(np.hstack([VOLTS + noise, X]), separator=" ").replace("Voltage ", "U_")
    )
    return "meter.txt", "--u", "U_*"


# Shots: less of them, because each is a file or has several rows.


def write_shots_of_two_channels(folder):
    """A table of inputs, and a file for each shot with three times and two channels."""
    (folder / "shots").mkdir()
    for k, row in enumerate(X):
        lines = ["time [ns],CH1 [V],CH2 [V]"]
        for j in range(3):
            lines.append(f"{10 * j},{row[j]:.9g},{row[3 + j]:.9g}")
        (folder / "shots" / f"shot_{k}.csv").write_text("\n".join(lines))
    (folder / "inputs.csv").write_text(csv_text(VOLTS, NAMES[:2]))
    return "inputs.csv", "shots", *IN_COLUMNS


def write_inputs_in_file_names(folder):
    """A file for each shot, with its inputs in its name, and a background beside them."""
    (folder / "scans").mkdir()
    for k, row in enumerate(X):
        a, b = (f"{value:.6f}".replace(".", "_") for value in VOLTS[k])
        text = "nm\tcounts\n" + "".join(f"{1540 + j}\t{row[j]:.9g}\n" for j in range(6))
        (folder / "scans" / f"scan{k + 1} A={a}V B={b}V.txt").write_text(text)
    (folder / "scans" / "background.txt").write_text(text)
    return "scans", "--u", "name:scan{n} A={a}V B={b}V"


def write_constant_columns(folder):
    """A file for each shot, in which the inputs and a current are columns, beside a frequency and its spectrum."""
    (folder / "sweeps").mkdir()
    for k, row in enumerate(X):
        lines = ['"Current","Field A","Field B","Frequency","Spectra"']
        for j in range(6):
            lines.append(
                f"{7 * VOLTS[k, 0]:.6g},{VOLTS[k, 0]:.9g},{VOLTS[k, 1]:.9g},{1 + j / 320},{row[j]:.9g}"
            )
        (
            folder / "sweeps" / f"scan_{k + 1}_{VOLTS[k, 0]:.3f}mT.txt".replace(".", "_", 1)
        ).write_text("\n".join(lines))
    return "sweeps", "--u", "Field*", "--channels", "Frequency"


def write_arrays_of_shots(folder):
    """A NumPy archive for each shot, which holds inputs and readouts."""
    (folder / "npz").mkdir()
    for k in range(N):
        np.savez(folder / "npz" / f"{k:04d}.npz", u=VOLTS[k], x=X[k].reshape(2, 3))
    return ("npz",)


def long_rows():
    """Shot, channel and value, in an order of their own."""
    rows = []
    for k, row in enumerate(ROWS):
        rows += [(k, NAMES[j], row[j]) for j in range(8)]
    return rows


def write_long(folder):
    """One row for each shot and channel, in which the inputs are channels, too."""
    lines = ["shot,channel,value"]
    lines += [f"{shot},{channel},{value:.9g}" for shot, channel, value in long_rows()]
    (folder / "long.csv").write_text("\n".join(lines))
    return ("long.csv", *IN_COLUMNS)


def write_long_with_inputs(folder):
    """One row for each shot and pixel, with the inputs in each."""
    lines = ["frame;x_position;Voltage A;Voltage B;counts"]
    for k, row in enumerate(X):
        for j in range(6):
            lines.append(f"{k};{10 * j};{VOLTS[k, 0]:.9g};{VOLTS[k, 1]:.9g};{row[j]:.9g}")
    (folder / "pixels.csv").write_text("\n".join(lines))
    return "pixels.csv", *IN_COLUMNS, "--channels", "x_position"


# For the page about files, which shows commands without their files.


def write_scans_of_the_page(folder):
    """Spectra of a magnet: the field is a column of each file, and part of its name."""
    (folder / "scans").mkdir()
    for k, row in enumerate(X[:16]):
        field = 50 + VOLTS[k, 0]
        lines = ['"Current","Field","Frequency","Spectra"']
        lines += [f"{field / 15:.5g},{field:.6g},{1 + j / 320},{row[j]:.9g}" for j in range(6)]
        name = f"scan_{k + 1}_{field:.4f}mT".replace(".", "_")
        (folder / "scans" / f"{name}.txt").write_text("\n".join(lines))


def write_workbook_of_the_page(folder):
    table = frame().rename(columns={"Voltage A": "Set A", "Voltage B": "Set B"}).astype(object)
    table.loc[3, "PD0"] = "lamp off"
    table.to_excel(folder / "book.xlsx", sheet_name="Run", index=False)


def write_french(folder):
    """Spaces that do not break between thousands, decimal commas, and accents of Windows."""
    lines = [
        "Banc;École",
        ";".join(["Voltage réglé A (V)", "Voltage réglé B (V)", *NAMES[2:]]),
    ]
    for volts, powers in zip(VOLTS, 1000 * X + 5000, strict=True):
        cells = [f"{value:.6f}" for value in volts]
        cells += [f"{value:,.5f}".replace(",", "\xa0") for value in powers]
        lines.append(";".join(cells).replace(".", ","))
    (folder / "banc.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    return ("banc.csv", *IN_COLUMNS)


def write_r_table(folder):
    """As write.table of R writes it: names in quotes, and rows with numbers of their own."""
    lines = [" ".join(f'"{name}"' for name in NAMES)]
    for number, row in enumerate(ROWS, start=1):
        lines.append(" ".join([f'"{number}"', *(f"{value:.9g}" for value in row)]))
    (folder / "r.txt").write_text("\n".join(lines))
    return ("r.txt", *IN_COLUMNS)


def write_fortran(folder):
    """Exponents of double precision, columns of one width, names behind a sign of comments."""
    lines = ["#  " + "  ".join(name.replace(" ", "_") for name in NAMES)]
    lines += ["".join(f"{value:17.9E}".replace("E", "D") for value in row) for row in ROWS]
    (folder / "fort.dat").write_text("\n".join(lines))
    return ("fort.dat", *IN_COLUMNS)


def write_two_levels(folder):
    """Columns of two levels and an index, as pandas writes them, numbers among the names."""
    import pandas as pd

    table = frame()
    pairs = [("Voltage", "A"), ("Voltage", "B"), *(("PD", str(k)) for k in range(6))]
    table.columns = pd.MultiIndex.from_tuples(pairs)
    table.to_csv(folder / "levels.csv")
    return ("levels.csv", *IN_COLUMNS)


def write_drawn_table(folder):
    """Bars between columns, a rule below the names, and a line below the table, as psql prints it."""
    lines = [" | ".join(f"{name:>12}" for name in NAMES), "-+-".join(["-" * 12] * 8)]
    lines += [" | ".join(f"{value:12.8f}" for value in row) for row in ROWS]
    lines += [f"({N} rows)", ""]
    (folder / "psql.txt").write_text("\n".join(lines))
    return ("psql.txt", *IN_COLUMNS)


def write_counts(folder):
    """Counts of an analogue-to-digital converter as hexadecimal numbers."""
    counts = np.round(65535 * (X - X.min()) / np.ptp(X)).astype(int)
    lines = [",".join(NAMES)]
    for volts, row in zip(VOLTS, counts, strict=True):
        cells = [f"{value:.8f}" for value in volts]
        lines.append(",".join(cells + [f"0x{count:04X}" for count in row]))
    (folder / "adc.csv").write_text("\n".join(lines))
    return ("adc.csv", *IN_COLUMNS)


def write_names_that_cannot_be_read(folder):
    """Japanese names in the encoding of Windows: the columns have numbers, too."""
    lines = ["設定電圧1[V],設定電圧2[V]," + ",".join(f"検出器{k}" for k in range(6))]
    lines += [",".join(f"{value:.9g}" for value in row) for row in ROWS]
    (folder / "sjis.csv").write_bytes("\r\n".join(lines).encode("cp932"))
    return "sjis.csv", "--u", "1,2"


def write_arrow_stream(folder):
    import pyarrow

    table = pyarrow.table({name: ROWS[:, k] for k, name in enumerate(NAMES)})
    with (
        pyarrow.OSFile(str(folder / "stream.arrow"), "wb") as file,
        pyarrow.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table)
    return ("stream.arrow", *IN_COLUMNS)


def write_records(folder):
    """An array of records, as np.save writes it."""
    names = [name.replace(" ", "_") for name in NAMES]
    np.save(folder / "records.npy", np.rec.fromarrays(list(ROWS.T), names=names))
    return ("records.npy", *IN_COLUMNS)


def write_classic_netcdf(folder):
    from scipy.io import netcdf_file

    with netcdf_file(folder / "classic.nc", "w") as file:
        for name, length in (("shot", N), ("input", 2), ("detector", 6)):
            file.createDimension(name, length)
        file.createVariable("volts", "d", ("shot", "input"))[:] = VOLTS
        file.createVariable("signal", "d", ("shot", "detector"))[:] = X
    return "classic.nc", "--u", "volts", "--x", "signal"


def write_groups_of_shots(folder):
    """A group for each shot, in an HDF5 file; the order of the names is not that of the numbers."""
    import h5py

    with h5py.File(folder / "groups.h5", "w") as file:
        for number, (volts, powers) in enumerate(zip(VOLTS, X, strict=True)):
            group = file.create_group(f"shot_{number}")
            group["u"] = volts
            group["x"] = powers
    return ("groups.h5",)


def write_channels_of_other_lengths(folder):
    """A temperature that was logged more slowly, beside the channels of the run."""
    from nptdms import ChannelObject, TdmsWriter

    channels = [ChannelObject("Run", name, ROWS[:, k]) for k, name in enumerate(NAMES)]
    channels.append(ChannelObject("Log", "Temperature", np.linspace(4.0, 5.0, 17)))
    with TdmsWriter(folder / "logged.tdms") as file:
        file.write_segment(channels)
    return "logged.tdms", "--u", "*Voltage*"


def write_spectra_between_marks(folder):
    """A table of inputs, and for each shot a file with marks around the numbers."""
    lines = ["Voltage A;Voltage B"]
    lines += [";".join(f"{value:.9g}" for value in volts).replace(".", ",") for volts in VOLTS]
    (folder / "inputs.csv").write_text("\n".join(lines))
    (folder / "spectra").mkdir()
    for number, powers in enumerate(X):
        rows = [
            f"{500 + 10 * k},00\t{value:.9g}".replace(".", ",") for k, value in enumerate(powers)
        ]
        text = [
            "SpectraSuite Datei",
            "Pixel: 6",
            ">>>>>Begin Daten<<<<<",
            *rows,
            ">>>>>End Daten<<<<<",
        ]
        (folder / "spectra" / f"USB4__{number:04d}.txt").write_text("\n".join(text))
    return "inputs.csv", "spectra", *IN_COLUMNS


KINDS = {
    function.__name__.removeprefix("write_"): function
    for function in (
        write_french,
        write_r_table,
        write_fortran,
        write_two_levels,
        write_drawn_table,
        write_counts,
        write_names_that_cannot_be_read,
        write_arrow_stream,
        write_records,
        write_classic_netcdf,
        write_groups_of_shots,
        write_channels_of_other_lengths,
        write_spectra_between_marks,
        write_workbook,
        write_workbook_of_two_sheets,
        write_parquet,
        write_parquet_of_lists,
        write_feather,
        write_json_records,
        write_json_columns,
        write_tdms,
        write_igor_columns,
        write_igor_matrix,
        write_gz,
        write_bz2,
        write_xz,
        write_zip,
        write_usual_words,
        write_own_words,
        write_units_in_cells,
        write_origin,
        write_units_behind_slashes,
        write_struct_array,
        write_struct_array_73,
        write_short_axes,
        write_coordinates,
        write_compound,
        write_clock,
        write_overshoot,
        write_shots_of_two_channels,
        write_inputs_in_file_names,
        write_constant_columns,
        write_arrays_of_shots,
        write_long,
        write_long_with_inputs,
    )
}
