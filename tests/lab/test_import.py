"""Messy files of many makes: the right total from each, in two commands."""

import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from messy_files import (
    MAKES,
    ORDER,
    START,
    TOTAL,
    N,
    X,
    formatted,
    numbered,
    write_european,
    write_excel,
    write_matlab,
    write_spectra,
    write_tabs,
)

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import main
from infocap.lab.files import _tables
from infocap.lab.files._options import ReadOptions

IN_VOLTS = ("--input", "Voltage A [V]:0:5", "--input", "Voltage B [V]:0:5")
IN_ROWS = "acquired in the order of the rows"
DATES = f"2026-01-31 23:58:00 to 2026-02-01 00:02:15, {IN_ROWS}"
# What the preview of each file says: how it was read, what became input, the first and the last readout, the rest.
PREVIEWS = {
    "labview": (
        "run.lvm: text separated by tabs, names in line 11, numbers from line 12 on",
        ("Voltage A 0.013215 to 4.996", "Voltage B 0.002297 to 4.995"),
        ("PD 0 -13.106 to 8.0371", "PD 5 -6.2684 to 5.064"),
        (f"time X_Value: 0 to 255.5, {IN_ROWS}", "left out Comment: empty"),
    ),
    "oscilloscope": (
        "scope.csv: text separated by ',', names in line 1 and units below them, numbers from line 3 on",
        ("1 [Volt] 0.013215 to 4.996", "2 [Volt] 0.0022969 to 4.995"),
        ("3 [Volt] -13.106 to 8.0371 Volt", "8 [Volt] -6.2684 to 5.064 Volt"),
        (f"time x-axis [second]: -0.001 to -0.000489, {IN_ROWS}",),
    ),
    "european": (
        "messung.csv: text separated by ';', decimal comma, '.' between thousands, names in line 4, numbers from line 5 on",
        ("Spannung A [V] 0.01321 to 4.996", "Spannung B [V] 0.0023 to 4.995"),
        ("Kanal 0 (µW) 6894.1 to 28037 µW", "Kanal 5 (µW) 13732 to 25064 µW"),
        (f"time Zeitpunkt: {DATES}",),
    ),
    "matlab": (
        "lab.mat: MATLAB, from data.v (2, 512), data.det (6, 512), readouts as channels,samples",
        ("u1 0.013215 to 4.996", "u2 0.0022969 to 4.995"),
        ("x1 -13.106 to 8.0371", "x6 -6.2684 to 5.064"),
        ("left out data.who: (1,) text", "left out data.set.gain: (1, 1) float64"),
    ),
    "hdf5": (
        "daq.h5: HDF5, from run1/ao (512, 2), run1/ai (512, 4, 6), readouts as samples,averages,channels",
        ("u1 0.013215 to 4.996", "u2 0.0022969 to 4.995"),
        ("x1 -13.106 to 8.0371 mV", "x6 -6.2684 to 5.064 mV"),
        ("left out run1/temperature: (512,) float64",),
    ),
    "spectra": (
        "inputs.csv: text separated by ',', names in line 1, numbers from line 2 on\n"
        f"spectra: one file per sample, shot{ORDER[0]}.txt to shot{ORDER[-1]}.txt, 512 files",
        ("V_A 0.013215 to 4.996", "V_B 0.0022969 to 4.995"),
        ("1540 nm -13.106 to 8.0371 counts", "1560 nm -6.2684 to 5.064 counts"),
        (f"left out file: text such as 'shot{ORDER[0]}.txt' in line 2", "left out operator: text such as 'Ada' in line 2",
         "left out dark.txt: not named in the table"),
    ),
    "excel": (
        "book.csv: text separated by ',', names in line 2, numbers from line 3 on",
        ("Set A (V) 0.013215 to 4.996", "Set B (V) 0.0022969 to 4.995"),
        ("Det 0 (mV) -13.106 to 8.0371 mV", "Det 5 (mV) -6.2684 to 5.064 mV"),
        (f"time Timestamp: {DATES}", "left out Remarks: text such as 'laser relocked, again' in line 6", "left out Checked: empty"),
    ),
    "npz": (
        "sim.npz: npz, from va (512,), vb (512,), det (6, 512), readouts as channels,samples",
        ("va 0.013215 to 4.996", "vb 0.0022969 to 4.995"),
        ("x1 -13.106 to 8.0371", "x6 -6.2684 to 5.064"),
        ("left out labels: (2,) text",),
    ),
    "tabs": (
        "table.txt: text separated by tabs, names in line 2, numbers from line 3 on",
        ("u1 0.013215 to 4.996", "u2 0.0022969 to 4.995"),
        ("x0 -13.106 to 8.0371", "x5 -6.2684 to 5.064"),
        ("left out status: text such as 'OK' in line 3",),
    ),
    "netcdf": (
        "bench.nc: NetCDF, from voltage (512, 2), power (512, 6)",
        ("u1 0.013215 to 4.996 V", "u2 0.0022969 to 4.995 V"),
        ("a -13.106 to 8.0371 uW", "f -6.2684 to 5.064 uW"),
        (f"time time: {DATES}", "left out humidity: (512,) float64"),
    ),
    "lines_per_channel": (
        "wide.csv: text separated by ',', names in line 1, numbers from line 2 on, one line per channel",
        ("Voltage A [V] 0.013215 to 4.996", "Voltage B [V] 0.0022969 to 4.995"),
        ("PD0 [V] -13.106 to 8.0371 V", "PD5 [V] -6.2684 to 5.064 V"),
        (),
    ),
    "counts": (
        "counts.csv: text separated by ';', ',' between thousands, names in line 1, numbers from line 2 on",
        ("A 0.01321 to 4.996", "B 0.0023 to 4.995"),
        ("SPAD0 -2932 to 3411", "SPAD5 -1.1342e+06 to 4.532e+06"),
        (f"time time: 0 to 5.11, {IN_ROWS}", "left out shot: 1 to 512, numbers the samples"),
    ),
}  # fmt: skip


def command(*words):
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_single_spaces(text):
    """The lines of a text, without the spaces that align its columns."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize("make", MAKES)
def test_a_messy_file_gives_the_right_total_in_two_commands(desk, make):
    words = MAKES[make](desk)
    options = (*IN_VOLTS, "--max-degree", 4)
    assert command("import", *words, "-o", "run.nc").exit_code == 0
    assert command("estimate", "run.nc", *options, "-o", "result.nc").exit_code == 0
    result = infocap.load_result("result.nc")
    assert result.n_samples == N
    assert result.n_readouts == 6
    assert 4 * result.total_standard_error < 0.3
    assert abs(result.total - TOTAL) < 4 * result.total_standard_error
    assert result.metadata["provenance"]["read_from"][0]["file"] == words[0]
    assert f"{words[0]}: " in command("show", "run.nc").output


@pytest.mark.parametrize("make", MAKES)
def test_the_preview_shows_what_becomes_what_before_anything_is_written(desk, make):
    words = MAKES[make](desk)
    files_before = sorted(desk.rglob("*"))
    preview = command("import", "--preview", *words)
    assert preview.exit_code == 0
    assert sorted(desk.rglob("*")) == files_before

    layout, (input_a, input_b), (first_readout, last_readout), others = PREVIEWS[make]
    n_layout = len(layout.splitlines())
    lines = in_single_spaces(preview.output)
    assert lines[:n_layout] == layout.splitlines()
    headline, a, b, first, *_, last = lines[n_layout : n_layout + 9]
    assert headline == "Recording of 512 samples, 2 inputs, 6 readouts"
    assert a == f"input {input_a}"
    assert b == f"input {input_b}"
    assert first.startswith(f"readout {first_readout}")
    assert last.startswith(f"readout {last_readout}")
    assert lines[n_layout + 9 :] == [
        *others,
        "",
        "Nothing was written; the same command with -o run.nc in place of --preview writes it.",
    ]


def test_the_page_shows_the_preview_that_is_printed(desk):
    page = (Path(__file__).parents[2] / "docs/files.md").read_text(encoding="utf-8")
    printed = re.search(r"^```text\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)[1]
    assert command("import", "--preview", *write_european(desk)).output.startswith(printed)


def test_a_preview_of_columns_that_are_not_obvious_lists_what_is_there(desk):
    write_excel(desk)
    preview = CliRunner().invoke(main, ["import", "--preview", "book.csv"])
    assert isinstance(preview.exception, DataError)
    lines = in_single_spaces(preview.output)
    assert lines[0] == "book.csv: text separated by ',', names in line 2, numbers from line 3 on"
    assert "Timestamp text such as '01/31/2026 11:58:00 PM' in line 3" in lines
    assert "Set A (V) 0.0132149 to 4.99598" in lines


def test_a_preview_of_variables_that_are_not_there_lists_what_is_there(desk):
    write_matlab(desk)
    preview = CliRunner().invoke(main, ["import", "--preview", "lab.mat", "--u", "volts"])
    assert "data.v (2, 512) float64" in in_single_spaces(preview.output)
    assert "u='volts' is not in lab.mat" in str(preview.exception)


@pytest.mark.parametrize("options", [(), ("--preview", "-o", "run.nc")], ids=["neither", "both"])
def test_import_writes_or_previews(desk, options):
    write_tabs(desk)
    message = r"-o run.nc, or --preview to look first: one of the two"
    with pytest.raises(ParameterError, match=message):
        command("import", "table.txt", *options)


def test_columns_that_were_not_asked_for_do_not_stop_a_file_and_are_told(desk):
    write_excel(desk)
    recording = infocap.read("book.csv", u="Set A,Set B", x="Det 0,Det 1")
    assert recording.checks == ()
    left_out = recording.metadata["read_from"][0]["left out"]
    assert list(left_out) == [*numbered("Det {} (mV)")[2:], "Remarks", "Checked"]

    (note,) = infocap.read("book.csv", u="Set*").checks
    assert note.kind == "note"
    assert note.startswith(
        "columns of book.csv were left out: "
        "Remarks (text such as 'laser relocked, again' in line 6)"
    )


def test_columns_of_words_that_were_asked_for_are_refused(desk):
    write_excel(desk)
    message = "has 'laser relocked, again' in line 6, column 'Remarks'; give numbers only"
    with pytest.raises(DataError, match=message):
        infocap.read("book.csv", u="Set*", x="Det*,Remarks")


def test_names_and_units_come_along(desk):
    write_european(desk)
    recording = infocap.read("messung.csv", u="Spannung*")
    assert recording.input_names == ("Spannung A [V]", "Spannung B [V]")
    assert recording.readout_unit == "µW"
    assert recording.time[0] == START.replace(tzinfo=UTC).timestamp()
    np.testing.assert_allclose(np.diff(recording.time), 0.5)
    np.testing.assert_allclose(recording.readouts, 20000 + 1000 * X, atol=0.006)


# Tables


@pytest.mark.parametrize(("text", "numbers"), [
    ("u1;a\n1.234,5;2\n3,25;1.000.000\n", [[1234.5, 2], [3.25, 1e6]]),
    ("u1;a\n1'234.5;2\n3.25;7\n", [[1234.5, 2], [3.25, 7]]),
    ("u1;a\n1 234,5;2\n3,25;7\n", [[1234.5, 2], [3.25, 7]]),
    ('u1,a\n"1,234.5",2\n3.25,7\n', [[1234.5, 2], [3.25, 7]]),
    ("u1;a\n1,5;2,5e-3\n 3;7,5 \n", [[1.5, 2.5e-3], [3, 7.5]]),
    ("u1;a\n1,5;(1,5+2j)\n3;2-1i\n", [[1.5, 1.5 + 2j], [3, 2 - 1j]]),
    ('u1,a\n"0,5","1,25"\n3,"7,5"\n', [[0.5, 1.25], [3, 7.5]]),
    ("u1;a\n0.5;987\n0.25;1,234\n", [[0.5, 987], [0.25, 1234]]),
    ("u1;a\n0,512;1,234\n0,250;9,876\n", [[0.512, 1.234], [0.25, 9.876]]),
    ("u1 a\n0,5 1,25\n3 7,5\n", [[0.5, 1.25], [3, 7.5]]),
    ("Tool 7\n\nu1\ta\nV\tmW\n0.5\t1\n0.25\t2\n", [[0.5, 1], [0.25, 2]]),
    ("Operator,Ada\nSamples,2\nu1,a\n0.5,1\n0.25,2\n", [[0.5, 1], [0.25, 2]]),
    ("# u1 a\n0.5 1\n0.25 2\n", [[0.5, 1], [0.25, 2]]),
    ("u1 [V]  a (mW)\n0.5  1\n0.25  2\n", [[0.5, 1], [0.25, 2]]),
    ("Time\tu1\ta\ns\tV\tmW\n\t\tof the lamp\n0\t0.5\t1\n1\t0.25\t2\n", [[0.5, 1], [0.25, 2]]),
    ("u1,a\n0.5,1\n0.25,2\n,\n,\n", [[0.5, 1], [0.25, 2]]),
])  # fmt: skip
def test_numbers_are_found_however_they_are_written(tmp_path, text, numbers):
    (tmp_path / "data.csv").write_text(text)
    recording = infocap.read(tmp_path / "data.csv")
    np.testing.assert_array_equal(np.column_stack([recording.inputs, recording.readouts]), numbers)
    assert recording.checks == ()


def test_names_above_columns_that_stay_empty_are_told(tmp_path):
    rigol = "X,u1,CH2,Start,Increment,\nSequence,Volt,Volt,-6e-3,2e-6\n0,0.5,1,,\n1,0.25,2,,\n"
    (tmp_path / "data.csv").write_text(rigol)
    recording = infocap.read(tmp_path / "data.csv")
    assert recording.input_names == ("u1 [Volt]",)
    assert recording.channel == ("X", "CH2 [Volt]")
    (check,) = recording.checks
    assert check == "columns of data.csv were left out: Start (empty), Increment (empty)."


def test_names_that_do_not_fit_the_columns_are_not_used(tmp_path):
    (tmp_path / "data.txt").write_text("volt a volt b\n0.5 1\n0.25 2\n")
    with pytest.raises(DataError, match="columns are numbered from 1"):
        infocap.read(tmp_path / "data.txt")


def test_commas_that_may_be_either_are_told(tmp_path):
    (tmp_path / "data.csv").write_text("u1;a\n1,512;1,234\n2,250;9,876\n")
    recording = infocap.read(tmp_path / "data.csv")
    assert recording.readouts.tolist() == [[1.234], [9.876]]
    assert recording.checks[0].startswith(
        "commas in data.csv were taken for decimal signs, though all of them stand before"
    )


TWO_TIMES = {
    "ISO": (["Time", "2026-01-31 10:00", "2026-01-31 10:02"], 120),
    "German": (["Measured at", "31.01.2026 10:00:00", "01.02.2026 10:00:00"], 86400),
    "American": (["Stamp", "01/31/2026 11:59 PM", "02/01/2026 12:01 AM"], 120),
    "elapsed": (["elapsed [s]", "0.5", "1.5", "2.5"], 1),
    "t": (["t (s)", "0.5", "1.5", "2.5"], 1),
    "Unix, seconds": (["Timestamp", "1769853600.5", "1769853602.5"], 2),
    "Unix, milliseconds": (["Timestamp", "1769853600500", "1769853602500"], 2),
}


@pytest.mark.parametrize(("column", "seconds"), TWO_TIMES.values(), ids=TWO_TIMES.keys())
def test_times_are_found_by_name_by_dates_or_as_seconds_that_grow(tmp_path, column, seconds):
    name, *cells = column
    lines = [f"{name},u1,a"]
    for k, cell in enumerate(cells):
        lines.append(f"{cell},{k / 7},{k % 2}")
    (tmp_path / "data.csv").write_text("\n".join(lines))
    recording = infocap.read(tmp_path / "data.csv")
    assert recording.channel == ("a",)
    assert recording.time[1] - recording.time[0] == seconds


def test_a_day_beside_the_time_counts(tmp_path):
    (tmp_path / "data.csv").write_text(
        "Date,Time,u1,a\n2026-01-31,23:59:59,0.1,1\n2026-02-01,00:00:01,0.2,2\n"
    )
    assert np.diff(infocap.read(tmp_path / "data.csv").time) == [2.0]


# Arrays and folders


@pytest.fixture
def images(tmp_path):
    """A file of averages, channels, channels and samples; and its inputs and readouts as they should be."""
    u = np.arange(10.0).reshape(2, 5)
    x = np.arange(4 * 3 * 2 * 5, dtype="f4").reshape(4, 3, 2, 5)
    path = tmp_path / "images.npz"
    np.savez(path, u=u, x=x)
    return path, u.T, x.mean(axis=0).reshape(6, 5).T


def test_axes_are_brought_into_order(images):
    path, u, x = images
    recording = infocap.read(path, axes="averages, channels, channels, samples")
    np.testing.assert_array_equal(recording.inputs, u)
    np.testing.assert_array_equal(recording.readouts, x)


def test_axes_are_asked_for_where_they_are_needed(images):
    path, *_ = images
    message = r"x in .* has shape \(4, 3, 2, 5\); .*`axes='samples,averages,channels'`"
    with pytest.raises(DataError, match=message):
        infocap.read(path)


def test_axes_that_do_not_fit_are_refused(images):
    path, *_ = images
    with pytest.raises(DataError, match="names 2 axes; name each"):
        infocap.read(path, axes="channels,samples")
    for axes in ("shots,channels", "channels", "samples,samples"):
        with pytest.raises(ParameterError, match=f"`axes='{axes}'` needs samples once"):
            infocap.read(path, axes=axes)


def test_arrays_that_are_both_transposed_are_not_turned_silently(tmp_path):
    path = tmp_path / "b.npz"
    np.savez(path, u=np.zeros((2, 9)), x=np.zeros((3, 9)))
    with pytest.raises(DataError, match=r"agree with both transposed: .*`axes='channels,samples'`"):
        infocap.read(path)
    recording = infocap.read(path, axes="channels,samples", in_memory=False)
    assert recording.readouts.shape == (9, 3)


def test_a_time_axis_of_something_else_is_left_out(tmp_path):
    u = np.zeros((9, 1))
    x = np.ones((9, 3))
    np.savez(tmp_path / "a.npz", u=u, x=x, time=np.arange(1000))
    (file,) = infocap.read(tmp_path / "a.npz").metadata["read_from"]
    assert file["left out"] == {"time": "(1000,) int64"}


def write_shots(folder, numbers):
    """A folder with one file of three readouts for each number, and a table of inputs."""
    shots = folder / "shots"
    shots.mkdir()
    for number in numbers:
        lines = [f"{k}\t{number + k / 10}" for k in range(3)]
        (shots / f"run7 shot{number}.dat").write_text("\n".join(lines))
    inputs = folder / "inputs.csv"
    lines = [str(number / 100) for number in sorted(numbers)]
    inputs.write_text("\n".join(["u1", *lines]))
    return inputs, shots


def test_files_of_a_folder_count_by_their_numbers(tmp_path):
    recording = infocap.read(*write_shots(tmp_path, [11, 9, 10, 12]))
    assert recording.readouts[:, 0].tolist() == [9, 10, 11, 12]
    assert recording.channel == ("0", "1", "2")


def test_each_file_of_a_folder_may_hold_one_plain_array(tmp_path):
    shots = tmp_path / "shots"
    shots.mkdir()
    for number in range(4):
        np.save(shots / f"{number}.npy", number + np.arange(3))
    np.save(tmp_path / "u.npy", np.linspace(-1, 1, 4))
    recording = infocap.read(tmp_path / "u.npy", shots)
    assert recording.readouts.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]


def test_counts_below_the_dark_level_are_negative(tmp_path):
    x = np.array([[100], [98], [103]], dtype=np.uint16)
    np.savez(tmp_path / "a.npz", u=np.zeros((3, 1)), x=x, index=[-3, 0, 1])
    assert infocap.read(tmp_path / "a.npz").readouts.tolist() == [[-2], [3]]


def test_folders_with_a_gap_are_refused(tmp_path):
    inputs, shots = write_shots(tmp_path, [1, 2, 4])
    with pytest.raises(DataError, match="not numbered without gaps"):
        infocap.read(inputs, shots)


def test_folders_with_another_file_are_refused(tmp_path):
    inputs, shots = write_shots(tmp_path, [1, 2, 3])
    (shots / "notes.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match="not numbered without gaps"):
        infocap.read(inputs, shots)


@pytest.mark.parametrize("text", ["0\t1\n", "0\t1\t2\n1\t1\t2\n2\t1\t2\n"], ids=["short", "wide"])
def test_folders_with_a_file_of_another_size_are_refused(tmp_path, text):
    inputs, shots = write_shots(tmp_path, [1, 2, 3])
    (shots / "run7 shot2.dat").write_text(text)
    with pytest.raises(DataError, match="has readouts of shape"):
        infocap.read(inputs, shots)


def test_a_file_that_the_table_names_must_be_there(desk):
    write_spectra(desk)
    (desk / "spectra" / "shot7.txt").unlink()
    message = r"spectra has no shot7\.txt, of 512 files that the table names"
    with pytest.raises(DataError, match=message):
        infocap.read("inputs.csv", "spectra", u="V_*")


def test_a_day_and_a_time_in_german_count_and_rows_that_pandas_numbered_are_no_readout(tmp_path):
    rows = [f"{k};01.03.2026;22:00:0{k};{k * k % 7},5;{k * k % 5},25" for k in range(8)]
    (tmp_path / "run.csv").write_text("\n".join([";Datum;Uhrzeit;u1;PD [mV]", *rows]))
    recording = infocap.read(tmp_path / "run.csv")
    assert recording.channel == ("PD [mV]",)
    assert np.diff(recording.time).tolist() == [1.0] * 7
    assert datetime.fromtimestamp(recording.time[0], UTC).hour == 22
    assert recording.metadata["read_from"][0]["left out"]["(no name)"] == "0 to 7"
    with pytest.raises(DataError, match=r"'PD \[mV\]' of .* is named as an input and as a readout"):
        infocap.read(tmp_path / "run.csv", u="PD*", x="PD*")


def write_row(numbers, separator=","):
    return separator.join(formatted(numbers, ".17g"))


LONG = np.random.default_rng(8).standard_normal((4000, 3))
COMMAS = [write_row(row) for row in LONG]
TABS = [write_row(row, "\t") for row in LONG]
SPACES = [write_row(row, "  ") for row in LONG]
LONG_TABLES = {
    "commas": ["u1,x1,x2", *COMMAS],
    "tabs, a preamble with a quote, units": ['Wafer\t5"', "", "u1\tx1\tx2", "V\tmV\tmV", *TABS],
    "columns of white space": [
        "# made by hand",
        "    u1  x1  x2",
        *(f"    {row}" for row in SPACES),
    ],
    "a name more, as LabVIEW has for comments": ["u1\tx1\tx2\tComment", *TABS],
    "a gap and an infinity": ["u1,x1,x2", *COMMAS[:3000], "1,,inf", "NaN, 2 ,3"],
}


@pytest.mark.parametrize("name", LONG_TABLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_long_clean_table_is_read_at_once_as_line_by_line(tmp_path, monkeypatch, name, newline):
    path = tmp_path / "long.csv"
    path.write_bytes((newline.join(LONG_TABLES[name]) + newline).encode())
    if "a name more" not in name:
        read_cell_by_cell = _tables._read_cell_by_cell

        def read_few_lines(path, layout, missing):
            assert len(layout.rows) <= 2 * _tables.N_SAMPLED_LINES, "read line by line"
            return read_cell_by_cell(path, layout, missing)

        monkeypatch.setattr(_tables, "_read_cell_by_cell", read_few_lines)
    at_once = _tables.load_text(path, path.read_bytes(), ReadOptions())
    monkeypatch.undo()
    monkeypatch.setattr(_tables, "MIN_LENGTH_READ_AT_ONCE", 10**9)
    by_line = _tables.load_text(path, path.read_bytes(), ReadOptions())
    for column, expected in zip(at_once.columns, by_line.columns, strict=True):
        np.testing.assert_array_equal(column.cells, expected.cells)
    np.testing.assert_array_equal(at_once.lines, by_line.lines)
    for attribute in ("labels", "has_names", "comments", "layout"):
        assert getattr(at_once, attribute) == getattr(by_line, attribute)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.1,oops,0.3", "'oops' in line 3502, column 'x1'"),
        ("0.1,0.2", "2 cells in line 3502"),
        ("1,2,3,4", "4 cells"),
    ],
)
def test_a_mistake_far_down_in_a_long_table_is_named_with_its_line(tmp_path, line, message):
    lines = ["u1,x1,x2", *COMMAS[:3500], line, *COMMAS[3500:]]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=message):
        infocap.read(tmp_path / "long.csv")
