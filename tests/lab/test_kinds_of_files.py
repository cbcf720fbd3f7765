"""Many kinds of files: the right total from each, in two commands, a preview and an estimate."""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kinds_of_files import (
    KINDS,
    N_WORDS,
    csv_text,
    frame,
    with_words,
    write_clock,
    write_constant_columns,
    write_inputs_in_file_names,
    write_overshoot,
    write_workbook_of_two_sheets,
)
from messy_files import TOTAL, VOLTS, N, X

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import main


def command(*words):
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_nan_policy(words):
    """The words of a command without those that `infocap import` does not know."""
    if "--nan-policy" not in words:
        return words
    position = words.index("--nan-policy")
    return words[:position] + words[position + 2 :]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_file_gives_the_right_total_in_two_commands(desk, kind):
    words = KINDS[kind](desk)
    preview = command("import", "--preview", *without_nan_policy(words))
    assert preview.exit_code == 0
    assert f"Recording of {N} samples, 2 inputs, 6 readouts" in preview.output

    options = ("--domain", 0, 5, "--max-degree", 4, "-o", "result.nc")
    assert command("estimate", *words, *options).exit_code == 0
    result = infocap.load_result("result.nc")
    assert result.n_samples == N - (N_WORDS if "words" in kind else 0)
    assert result.n_readouts == 6
    assert 4 * result.total_standard_error < 0.3
    assert abs(result.total - TOTAL) < 4 * result.total_standard_error
    assert result.warnings == ()


# Cells


def test_words_that_stand_for_missing_values_are_told(desk):
    rows = with_words(["OVERFLOW", "--"])
    (desk / "a.csv").write_text(csv_text(rows))
    recording = infocap.read("a.csv", u="Voltage*")
    assert np.isnan(recording.readouts).sum() == N_WORDS
    (check,) = recording.checks
    assert check.kind == "note"
    assert check.found["missing"] == {"OVERFLOW": 4, "--": 3}
    assert "'OVERFLOW' in 4 cells of PD0, PD2, PD4" in check


def test_a_word_that_is_not_known_is_refused_with_advice(desk):
    (desk / "a.csv").write_text(csv_text(with_words(["lamp off"])))
    with pytest.raises(
        DataError, match=r"'lamp off' in line 2.*missing value: `missing='lamp off'`"
    ):
        infocap.read("a.csv", u="Voltage*")
    recording = infocap.read("a.csv", u="Voltage*", missing="lamp off")
    assert np.isnan(recording.readouts).any(axis=1).sum() == N_WORDS


def test_a_number_may_stand_for_a_missing_value_in_arrays_and_tables(desk):
    x = X.copy()
    x[3, 2] = -999
    np.savez("a.npz", u=VOLTS, x=x)
    frame().replace({X[3, 2]: -999}).to_parquet("a.parquet")
    for name, words in (("a.npz", {}), ("a.parquet", {"u": "Voltage*"})):
        recording = infocap.read(name, missing="-999.0", **words)
        assert np.argwhere(np.isnan(recording.readouts)).tolist() == [[3, 2]]


def test_words_in_a_column_of_words_stay_words(desk):
    rows = [
        [*row, word]
        for row, word in zip([[1, 2], [3, 4], [5, 7]], ["OK", "error", "OK"], strict=True)
    ]
    (desk / "a.csv").write_text(csv_text(rows, ["u1", "x1", "status"]))
    recording = infocap.read("a.csv")
    assert recording.channel == ("x1",)
    (check,) = recording.checks
    assert check.startswith("columns of a.csv were left out: status (text such as 'OK' in line 2)")


@pytest.mark.parametrize(("cells", "values", "label"), [
    (["1.5 uA", "800 nA", "0"], [1.5e-6, 8e-7, 0], "x1 [A]"),
    (["1.5 mV", "-2 mV", "--"], [1.5, -2, np.nan], "x1 [mV]"),
    (["10 dBm", "11 dBm", "12.5dBm"], [10, 11, 12.5], "x1 [dBm]"),
])  # fmt: skip
def test_units_in_cells_are_read(desk, cells, values, label):
    rows = [[0.1 * k, cell] for k, cell in enumerate(cells)]
    (desk / "a.csv").write_text(csv_text(rows, ["u1", "x1"]))
    recording = infocap.read("a.csv")
    np.testing.assert_allclose(recording.readouts[:, 0], values)
    assert recording.channel == (label,)


def test_units_that_do_not_agree_are_no_numbers(desk):
    (desk / "a.csv").write_text("u1,x1,x2\n0.1,1 V,1\n0.2,1 A,2\n0.3,2 V,4\n")
    assert infocap.read("a.csv").channel == ("x2",)


def test_a_table_in_which_each_row_lacks_a_value_is_read(desk):
    (desk / "a.csv").write_text("u1,x1,x2\n0.1,--,1\n0.2,2,--\n0.3,--,4\n")
    assert np.isnan(infocap.read("a.csv").readouts).sum() == 3


# Clocks


@pytest.mark.parametrize(
    "name",
    ["t", "t_s", "t / s", "time_s", "elapsed_s", "elapsed_ms", "sampling_time", "Clock", "ticks"],
)
def test_a_clock_is_a_time_and_no_readout(desk, name):
    generator = np.random.default_rng(3)
    ticks = np.cumsum(generator.uniform(1, 2, 32))
    rows = np.column_stack([ticks, generator.uniform(size=(32, 3))])
    (desk / "a.csv").write_text(csv_text(rows, [name, "u1", "x1", "x2"]))
    recording = infocap.read("a.csv")
    assert recording.channel == ("x1", "x2")
    np.testing.assert_allclose(recording.time, ticks, rtol=1e-8)


def test_a_second_clock_is_left_out(desk):
    recording = infocap.read(write_clock(desk)[0], u="Voltage*")
    assert recording.channel[0] == "PD0"
    left_out = recording.metadata["read_from"][0]["left out"]
    assert left_out["ticks of the card"].endswith("another clock")


def test_a_readout_that_grows_in_a_sweep_is_no_clock(desk):
    sweep = np.linspace(-1, 1, 64)
    (desk / "a.csv").write_text(
        csv_text(np.column_stack([sweep, np.exp(sweep), sweep**2]), ["u1", "x1", "x2"])
    )
    recording = infocap.read("a.csv")
    assert recording.channel == ("x1", "x2")
    assert recording.time is None


def test_a_clock_that_starts_again_begins_a_run(desk):
    clock = np.tile(np.arange(16) / 10, 3)
    rows = np.column_stack([clock, np.random.default_rng(3).uniform(size=(48, 2))])
    (desk / "a.csv").write_text(csv_text(rows, ["t_s", "u1", "x1"]))
    recording = infocap.read("a.csv")
    assert recording.channel == ("x1",)
    assert [run.start for run in recording.runs] == [0, 16, 32]
    assert "'t_s' of a.csv starts again 2 times" in recording.checks[0]


# Headers


def test_comments_below_the_names_are_no_names(desk):
    lines = ["A\tB\tPD", "V\tV\tmW", "left\tright\tcooled", "0.5\t0.25\t1", "0.1\t0.2\t3"]
    (desk / "a.dat").write_text("\n".join(lines))
    recording = infocap.read("a.dat", u="A,B")
    assert recording.input_names == ("A [V]", "B [V]")
    assert recording.readout_unit == "mW"

    del lines[1]
    lines[1] = "source\tsource\tcooled"
    (desk / "b.dat").write_text("\n".join(lines))
    assert infocap.read("b.dat", u="A,B").channel == ("PD",)


# Workbooks, JSON, packed files


def test_a_workbook_says_which_sheets_hold_numbers(desk):
    write_workbook_of_two_sheets(desk)
    with pytest.raises(
        DataError, match=r"no column of readouts.*'Readouts' also hold.*sheet='Inputs,Readouts'"
    ):
        infocap.read("two.xlsx", u="Voltage*")
    with pytest.raises(
        ParameterError, match=r"`sheet='Tab'` is not in two.xlsx; its sheets are Inputs, Readouts"
    ):
        infocap.read("two.xlsx", sheet="Tab")


@pytest.mark.parametrize(
    "orient", ["records", "columns", "index", "split", "table", "values", "lines"]
)
def test_json_is_read_in_every_orientation_of_pandas(desk, orient):
    table = frame()
    lines = orient == "lines"
    table.to_json("a.json", orient="records" if lines else orient, lines=lines, double_precision=12)
    names = "1,2" if orient == "values" else "Voltage*"
    x = "3,4,5,6,7,8" if orient == "values" else "PD*"
    recording = infocap.read("a.json", u=names, x=x)
    np.testing.assert_allclose(recording.inputs, VOLTS, atol=1e-9)
    np.testing.assert_allclose(recording.readouts, X, atol=1e-9)


def test_an_archive_of_several_files_is_refused(desk):
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("a.csv", "u1,x1\n1,2\n")
        archive.writestr("b.csv", "u1,x1\n1,2\n")
    with pytest.raises(DataError, match=r"holds 2 files \(a.csv, b.csv\); unpack it"):
        infocap.read("a.zip")


def test_what_is_read_only_unpacked_says_so(desk):
    import gzip

    Path("a.npz.gz").write_bytes(gzip.compress(b"PK"))
    with pytest.raises(DataError, match=r"holds a.npz, which is read only unpacked"):
        infocap.read("a.npz.gz")


def test_a_file_that_unpacks_to_more_than_memory_is_refused(desk, monkeypatch):
    import gzip

    from infocap.lab.files import _packed

    Path("a.csv.gz").write_bytes(gzip.compress(b"u1,x1\n" + 10_000 * b"1,2\n"))
    monkeypatch.setattr(_packed, "available_memory", lambda: 100_000)
    with pytest.raises(DataError, match="unpacks to more than 3,076 bytes"):
        infocap.read("a.csv.gz")


@pytest.mark.parametrize(
    ("suffix", "module"), [(".xlsx", "openpyxl"), (".parquet", "pyarrow"), (".tdms", "nptdms")]
)
def test_the_extra_is_named_where_a_package_is_missing(desk, monkeypatch, suffix, module):
    Path(f"a{suffix}").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ParameterError, match=rf"need the package {module}: pip install infocap\[files\]"
    ):
        infocap.read(f"a{suffix}")


def test_a_tdms_file_that_is_cut_is_refused(desk):
    name, *_ = KINDS["tdms"](desk)
    Path("cut.tdms").write_bytes(Path(name).read_bytes()[:-1000])
    with pytest.raises(DataError, match="cut short"):
        infocap.read("cut.tdms", u="Voltage*")


@pytest.mark.parametrize(("name", "cure"), [
    ("a.xls", "save the workbook as .xlsx"),
    ("a.opju", "in Origin, export the worksheet as .csv"),
    ("a.pkl", "is never loaded: save arrays by numpy.savez"),
    ("a.dta", "save it as .csv, or load it in Python and call infocap.estimate"),
])  # fmt: skip
def test_a_format_that_is_not_read_says_what_to_do(desk, name, cure):
    Path(name).write_text("x")
    with pytest.raises(ParameterError, match=cure):
        infocap.read(name)


# Folders and long tables


def test_files_of_another_make_beside_the_shots_are_left_out(desk):
    write_constant_columns(desk)
    (desk / "sweeps" / "metadata.txt").write_text("temperature: 4 K\n")
    recording = infocap.read("sweeps", u="Field*")
    assert recording.channel[1] == "1.003125"
    left_out = recording.metadata["read_from"][0]["left out"]
    assert left_out["metadata.txt"] == "its name is unlike those of the others"
    assert left_out["Current"].endswith("the same throughout each sample")


def test_a_list_of_files_is_a_list_of_shots_where_channels_are_named(desk):
    write_constant_columns(desk)
    files = sorted(Path("sweeps").iterdir())
    recording = infocap.read(files, u="Field*", channels="Frequency")
    np.testing.assert_allclose(recording.inputs, VOLTS, rtol=1e-8)


def test_inputs_in_file_names_keep_their_units_and_other_files_are_told(desk):
    write_inputs_in_file_names(desk)
    recording = infocap.read("scans", u="name:scan{n} A={a}V B={b}V")
    assert recording.input_names == ("a [V]", "b [V]")
    left_out = recording.metadata["read_from"][0]["left out"]
    assert left_out["background.txt"].startswith("not named as scan{n}")


@pytest.mark.parametrize(("pattern", "message"), [
    ("name:scan{n}", "needs each input once, in braces"),
    ("name:run{a}", r"no file of scans is named as 'run\{a\}'; the first is 'background.txt'"),
])  # fmt: skip
def test_patterns_of_file_names_that_do_not_fit_are_refused(desk, pattern, message):
    write_inputs_in_file_names(desk)
    with pytest.raises((DataError, ParameterError), match=message):
        infocap.read("scans", u=pattern)


@pytest.mark.parametrize(("text", "message"), [
    ("nm\tcounts\n1540\t1\n", r"scan2 .* has readouts of shape \(1, 2\), and .* of \(6, 2\)"),
    ("nm\tvolts\n" + 6 * "1\t1\n", "has the columns nm, volts, and .* nm, counts"),
])  # fmt: skip
def test_a_shot_unlike_the_first_is_refused(desk, text, message):
    write_inputs_in_file_names(desk)
    next(Path("scans").glob("scan2 *")).write_text(text)
    with pytest.raises(DataError, match=message):
        infocap.read("scans", u="name:scan{n} A={a}V B={b}V")


def test_channels_that_differ_from_shot_to_shot_are_refused(desk):
    write_inputs_in_file_names(desk)
    file = next(Path("scans").glob("scan2 *"))
    file.write_text(file.read_text().replace("1542", "1542.5"))
    with pytest.raises(DataError, match="channels='nm' differs from file to file"):
        infocap.read("scans", u="name:scan{n} A={a}V B={b}V", channels="nm")


def long_lines(order):
    return [f"{shot},PD{k},{X[shot, k]:.9g}" for shot in order for k in range(6)]


def test_samples_of_a_long_table_come_in_the_order_of_their_numbers(desk):
    order = np.random.default_rng(3).permutation(N)
    Path("x.csv").write_text("\n".join(["sample,channel,value", *long_lines(order)]))
    Path("u.csv").write_text(csv_text(VOLTS, ["u1", "u2"]))
    recording = infocap.read(["u.csv", "x.csv"])
    np.testing.assert_allclose(recording.readouts, X, rtol=1e-8)
    assert recording.channel == tuple(f"PD{k}" for k in range(6))


@pytest.mark.parametrize("is_long", [True, False], ids=["long", "wide"])
def test_two_files_that_number_their_samples_are_matched_by_them(desk, is_long):
    generator = np.random.default_rng(3)
    sent, measured = generator.permutation(N), generator.permutation(N)
    Path("u.csv").write_text(csv_text(np.column_stack([sent, VOLTS[sent]]), ["shot", "u1", "u2"]))
    if is_long:
        Path("x.csv").write_text("\n".join(["shot,channel,value", *long_lines(measured)]))
    else:
        names = ["shot", *(f"PD{k}" for k in range(6))]
        Path("x.csv").write_text(csv_text(np.column_stack([measured, X[measured]]), names))
    recording = infocap.read(["u.csv", "x.csv"])
    np.testing.assert_allclose(recording.inputs, VOLTS[sent], rtol=1e-8)
    np.testing.assert_allclose(recording.readouts, X[sent], rtol=1e-8)


def test_two_files_of_other_samples_are_refused(desk):
    Path("u.csv").write_text(
        csv_text(np.column_stack([np.arange(8), VOLTS[:8]]), ["shot", "u1", "u2"])
    )
    Path("x.csv").write_text(
        csv_text(np.column_stack([np.arange(1, 9), X[:8]]), ["shot", *"abcdef"])
    )
    with pytest.raises(DataError, match=r"shot 0 is in only one of u.csv and x.csv, and 1 more"):
        infocap.read(["u.csv", "x.csv"])


def test_a_long_table_with_a_gap_is_refused(desk):
    lines = long_lines(range(N))
    del lines[100]
    Path("x.csv").write_text("\n".join(["sample,channel,value", *lines]))
    Path("u.csv").write_text(csv_text(VOLTS, ["u1", "u2"]))
    with pytest.raises(DataError, match="sample that begins in line 98 has 5 rows"):
        infocap.read(["u.csv", "x.csv"], channels="channel")


# Arrays


def test_elements_of_matlab_cells_are_rows(desk):
    import scipy.io

    cells = np.empty((1, N), dtype=object)
    for k in range(N):
        cells[0, k] = X[k][None]
    scipy.io.savemat("a.mat", {"u": VOLTS, "x": cells})
    np.testing.assert_array_equal(infocap.read("a.mat").readouts, X)


def test_matlab_structures_of_unequal_shapes_are_no_array(desk):
    import scipy.io

    data = np.empty((1, 2), dtype=[("x", object)])
    data[0, 0] = (X[:3],)
    data[0, 1] = (X[:4],)
    scipy.io.savemat("a.mat", {"u": VOLTS[:2], "data": data})
    with pytest.raises(DataError, match="give an array of plain numbers"):
        infocap.read("a.mat", x="data.x")


@pytest.mark.parametrize("content", ["numbers", "text"])
def test_virtual_data_sets_do_not_read_other_files(desk, content):
    import h5py

    recording = infocap.Recording(VOLTS[:4], X[:4], np.arange(4))
    with h5py.File("secret.h5", "w") as file:
        file["x"] = X[:4]
        file["metadata"] = "{}"
    with h5py.File("a.h5", "w") as file:
        for name in ("inputs", "readouts", "design_index"):
            file[name] = getattr(recording, name)
        name = "x" if content == "numbers" else "metadata"
        with h5py.File("secret.h5", "r") as secret:
            source = h5py.VirtualSource(secret[name])
            layout = h5py.VirtualLayout(shape=secret[name].shape, dtype=secret[name].dtype)
        layout[...] = source
        if content == "numbers":
            del file["readouts"]
            file.create_virtual_dataset("readouts", layout)
        else:
            file.attrs["format"] = "infocap recording 1"
            file.create_virtual_dataset("metadata", layout)
    with pytest.raises(DataError, match="its values lie in other files"):
        infocap.read("a.h5")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe is a file of Unix")
@pytest.mark.parametrize("name", ["pipe", "pipe.csv", "pipe.nc", "pipe.db"])
def test_a_pipe_is_refused_at_once(desk, name):
    os.mkfifo(name)
    program = "import sys, infocap; infocap.read(sys.argv[1])"
    process = subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "is no regular file" in process.stderr


# Recorded inputs


def test_inputs_that_overshoot_by_their_noise_are_taken_for_the_end_of_the_range(desk):
    recording = infocap.read(write_overshoot(desk)[0], u="U_*")
    basis = infocap.product_basis("legendre", 2, 4, domain=(0, 5))
    result = infocap.estimate(recording, basis=basis)
    notes = [note for note in result.notes if "as noise of a recorded input does" in note]
    assert notes
    assert all(0 < note.found["overshoot"] < 0.01 for note in notes)
    assert abs(result.total - TOTAL) < 4 * result.total_standard_error


@pytest.mark.parametrize(
    "wrong",
    [lambda u: 1.009 * u, lambda u: u + 0.008, lambda u: 1.2 * u],
    ids=["gain", "offset", "units"],
)
def test_inputs_of_another_range_are_refused_as_before(wrong):
    u = np.random.default_rng(1).uniform(-1, 1, (20_000, 1))
    x = np.column_stack([u, u**2])
    basis = infocap.product_basis("legendre", 1, 4)
    with pytest.raises(DataError, match="outside the domain"):
        infocap.estimate(infocap.Recording(wrong(u), x, np.arange(len(u))), basis=basis)


@pytest.mark.parametrize("options", [("--domain", "auto"), ("--family", "recorded"), ()])
def test_ranges_and_families_are_taken_from_recorded_inputs(desk, options):
    """Also where nothing is said, as inputs from 0 to 5 V are not those from -1 to 1."""
    words = write_overshoot(desk)
    assert (
        command("estimate", *words, *options, "--max-degree", 4, "-o", "result.nc").exit_code == 0
    )
    result = infocap.load_result("result.nc")
    assert abs(result.total - TOTAL) < 4 * result.total_standard_error


def test_a_recorded_family_has_its_range_already(desk):
    words = write_overshoot(desk)
    with pytest.raises(ParameterError, match="leave out --domain"):
        command("estimate", *words, "--family", "recorded", "--domain", 0, 5)


def test_inputs_that_fill_the_usual_range_are_uniform(desk):
    for scale, words in ((1.0, "legendre, uniform inputs"), (0.3, "that was recorded")):
        u = scale * np.random.default_rng(1).uniform(-1, 1, 200)
        np.savez("a.npz", u=u, x=np.column_stack([u, u**2]))
        ran = command("estimate", "a.npz", "--max-degree", 3)
        assert words in " ".join(ran.output.split())


def test_brackets_of_units_stand_for_themselves_in_patterns(desk):
    rows = np.random.default_rng(1).uniform(-1, 1, (20, 5))
    names = ["8_V[V]", "9_V[V]", "9_I[A]", "10_V[V]", "V"]
    Path("a.csv").write_text(csv_text(rows, names))
    recording = infocap.read("a.csv", u="8_V[V]", x="*_V[V]")
    assert recording.channel == ("9_V[V]", "10_V[V]")
    # Where no name has such brackets, they are alternatives.
    Path("b.csv").write_text(csv_text(rows, ["u", "x1", "x2", "x3", "y"]))
    assert infocap.read("b.csv", u="u", x="x[13]").channel == ("x1", "x3")


# Size


def test_a_wide_table_is_read_as_others_are(desk):
    rows = np.random.default_rng(1).standard_normal((4, 3000))
    rows[1, 7] = np.nan
    Path("a.csv").write_text(
        csv_text(rows, ["u1", *(f"x{k}" for k in range(1, 3000))]).replace("nan", "")
    )
    np.testing.assert_allclose(infocap.read("a.csv").readouts, rows[:, 1:], rtol=1e-7)


@pytest.mark.slow
def test_a_table_of_fifty_thousand_columns_takes_seconds(desk):
    rows = np.random.default_rng(1).uniform(size=(4, 50_000))
    Path("a.csv").write_text(csv_text(rows, ["u1", *(f"x{k}" for k in range(1, 50_000))]))
    start = time.process_time()
    assert infocap.read("a.csv").readouts.shape == (4, 49_999)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("separator", [",", ";"], ids=["points", "decimal commas"])
def test_a_long_table_with_words_gives_what_a_short_one_gives(desk, separator, monkeypatch):
    from infocap.lab.files import _tables

    rows = [
        [*row, "Ada", f"{k % 7} mV"]
        for k, row in enumerate(np.round(np.random.default_rng(1).uniform(size=(400, 4)), 6))
    ]
    text = csv_text(rows, ["u1", "x1", "x2", "x3", "who", "range"], separator)
    if separator == ";":
        text = text.replace(".", ",")
    Path("a.csv").write_text(text)
    line_by_line = infocap.read("a.csv")
    monkeypatch.setattr(_tables, "MIN_LENGTH_READ_AT_ONCE", 100)
    at_once = infocap.read("a.csv")
    np.testing.assert_array_equal(at_once.readouts, line_by_line.readouts)
    assert at_once.channel == line_by_line.channel == ("x1", "x2", "x3", "range [mV]")


# Real recordings

DATA = os.environ.get("INFOCAP_DATA")


@pytest.mark.skipif(DATA is None, reason="INFOCAP_DATA names no folder of real recordings")
@pytest.mark.parametrize(
    "names",
    [{"u": "Field", "x": "Spectra", "channels": "Frequency"}, {"u": "name:scan_{n}_{u}mT"}],
    ids=["columns", "file names"],
)
def test_spectra_of_a_magnet_are_read_with_their_field(names):
    recording = infocap.read(Path(DATA, "magnet_scans", "skyrmion"), **names)
    assert recording.readouts.shape == (500, 1601)
    np.testing.assert_allclose(recording.inputs[[0, -1], 0], [62.923, 64.607], atol=1e-3)
    assert recording.channel[1] == "1.003125"


@pytest.mark.skipif(DATA is None, reason="INFOCAP_DATA names no folder of real recordings")
def test_a_recorded_voltage_of_a_nanowire_network_may_overshoot():
    (file,) = Path(DATA, "nanowire").glob("011*")
    recording = infocap.read(file, u="8_V*", x="*_V*")
    basis = infocap.delayed_basis("legendre", n_inputs=1, max_delay={1: 4}, domain=(0.4, 1))
    with pytest.warns(infocap.errors.DataWarning):
        result = infocap.estimate(recording, basis=basis)
    raw = [0.998393, 0.996968, 0.735609, 0.244043, 0.135919]
    # Squared correlations divide by the mean of y² over the samples, and raw capacities by 1; the other program also
    # leaves out other rows at the start.
    mean_square = np.mean(((recording.inputs - 0.7) / 0.3) ** 2) * 3
    np.testing.assert_allclose(np.sort(result.raw[1:])[::-1] / mean_square, raw, atol=0.015)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"# Created by Octave 8.4.0\n# name: u\n1 2\n3 4\n", "save -v7 a.mat"),
        ("a.txt", b"A:1.0 B:2.0\nA:1.5 B:2.5\n", "save it as a table with one row per sample"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(100), "load it by pandas.read_sql"),
        ("a.ods", b"PK", "save the workbook as .xlsx"),
        ("a.nc", b"CDF\x05" + bytes(100), "nccopy -k nc4"),
    ],
)
def test_what_is_not_read_is_told_how_to_save_it(desk, name, content, message):
    (desk / name).write_bytes(content)
    with pytest.raises((DataError, ParameterError), match=message):
        infocap.read(name, u="A")


def test_formulas_without_values_are_told(desk):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["u1", "x1"])
    for k in range(5):
        book.active.append([0.1 * k, f"={k}*2"])
    book.save("formulas.xlsx")
    with pytest.raises(DataError, match="formulas whose values were never computed"):
        infocap.read("formulas.xlsx")


def test_many_arrays_of_single_samples_are_told_how_to_be_put_together(desk):
    import h5py

    with h5py.File("traces.h5", "w") as file:
        for number in range(100):
            file[f"traces/{number}"] = np.zeros(5)
    with pytest.raises(DataError, match=r"numpy\.stack"):
        infocap.read("traces.h5", u="V")


def test_numbered_runs_of_time_steps_are_not_put_together(desk):
    import h5py

    with h5py.File("runs.h5", "w") as file:
        for number in range(10):
            file[f"run{number}/ao"] = np.linspace(0, 1, 50)
            file[f"run{number}/ai"] = np.ones((50, 2))
    recording = infocap.read("runs.h5", u="run3/ao", x="run3/ai")
    assert recording.inputs.shape == (50, 1)
