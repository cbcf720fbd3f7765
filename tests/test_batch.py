"""Parts of a data set, summarised by jobs that share nothing, put together: the same answer as all at once."""

import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.cli import main
from infocap.errors import DataError, ParameterError

BASIS = infocap.product_basis("legendre", 3, 4)
N, K = 4001, 9
METHODS = ("raw", "threshold-richardson", "richardson-threshold", "chi2")


def recording(n=N, offset=0.0):
    u = infocap.draw(BASIS, n, method="random", seed=0)
    x = infocap.systems.RandomFeatures(3, K, noise=0.01, seed=1)(u) + offset
    x[:200, 2] = x[:, 2].mean()  # still in the first parts, alive in the others
    x[:, 5] = 3.0  # dead everywhere
    return infocap.Recording(u, x, index=np.arange(n))


RUN = recording()
PLAIN = {method: infocap.estimate(RUN.inputs, RUN.readouts, BASIS, method=method) for method in METHODS}
CUTS = ([0, N], [0, 700, 2000, 2001, N], [0, 2000, N], [0, 100, 200, N])


def same(result, plain, rtol=1e-10):
    assert_allclose(result.capacity, plain.capacity, rtol=rtol, atol=1e-12)
    assert_allclose(result.raw, plain.raw, rtol=rtol, atol=1e-12)
    assert result.checks == plain.checks
    assert (result.n_samples, result.rank, result.n_readouts) == (
        plain.n_samples,
        plain.rank,
        plain.n_readouts,
    )


def parts_of(run, cuts, **options):
    return [infocap.summarise(run, BASIS, rows=rows, **options) for rows in pairwise(cuts)]


def with_second(run, parts):
    frame = infocap.common_frame(parts)
    return [infocap.summarise(run, BASIS, rows=(part.start, part.stop), second=frame) for part in parts]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_parts_of_one_file_give_the_answer_of_all_rows(cuts):
    parts = with_second(RUN, parts_of(RUN, cuts))
    for method in METHODS:
        same(infocap.combine(parts[::-1], method=method), PLAIN[method])
    data_bound = infocap.estimate(
        RUN.inputs, RUN.readouts, BASIS, method="threshold-richardson", bound="data"
    )
    same(infocap.combine(parts, bound="data"), data_bound)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_no_offset_of_the_readouts_matters(offset):
    run = recording(offset=offset)
    plain = infocap.estimate(run.inputs, run.readouts, BASIS, method="richardson-threshold")
    same(
        infocap.combine(parts_of(run, CUTS[1]), method="richardson-threshold"),
        plain,
        1e-8 if offset else 1e-10,
    )


def test_without_the_constant_readout():
    plain = infocap.estimate(RUN.inputs, RUN.readouts, BASIS, method="chi2", constant=False)
    same(infocap.combine(parts_of(RUN, CUTS[1], constant=False), method="chi2"), plain)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_equal_files_need_not_know_the_number_of_all_rows(count):
    run = recording(count * 801)
    plain = infocap.estimate(run.inputs, run.readouts, BASIS, method="richardson-threshold")
    parts = [
        infocap.summarise(infocap.Recording(run.inputs[rows], run.readouts[rows], run.index[rows]), BASIS)
        for rows in (slice(a, a + 801) for a in range(0, count * 801, 801))
    ]
    same(infocap.combine(parts, method="richardson-threshold"), plain)


def test_unequal_files_need_it_or_their_rows():
    pieces = [
        infocap.Recording(RUN.inputs[a:b], RUN.readouts[a:b], RUN.index[a:b]) for a, b in ((0, 500), (500, N))
    ]
    parts = [infocap.summarise(one, BASIS) for one in pieces]
    with pytest.raises(DataError, match=r"middle of all rows is row 2000.*total=4001"):
        infocap.combine(parts, method="richardson-threshold")
    parts = [infocap.summarise(one, BASIS, total=N) for one in pieces]
    same(infocap.combine(parts, method="richardson-threshold"), PLAIN["richardson-threshold"])


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A recording in a file, and its parts in others, which carry a few of its rows along."""
    for module in ("summarise", "combine", "diagnose"):
        monkeypatch.setattr(f"infocap.workflow._{module}.LAG_ROWS", 256)
    path = RUN.save(tmp_path / "run.nc")
    again = {"path": str(path)}
    files = []
    for number, part in enumerate(parts_of(RUN, CUTS[1])):
        rows = [part.start, part.stop]
        part = replace(part, read_again={"arguments": again, "rows": rows})
        files.append(part.save(tmp_path / f"part-{number}.sum"))
    return path, files


def test_files_hold_all_there_is_and_rows_are_read_again_where_they_were(saved):
    _, files = saved
    for method in METHODS:
        same(infocap.combine(files, method=method), PLAIN[method])
    assert "rows 0 to 700 of 4001" in repr(infocap.load_part(files[0]))


def test_a_second_look_needs_the_rows_or_a_second_round(saved):
    path, files = saved
    path.unlink()
    for method in ("raw", "richardson-threshold", "chi2"):
        same(infocap.combine(files, method=method), PLAIN[method])
    with pytest.raises(
        DataError, match=r"second look .*part-0.sum cannot be read again .*--second all.frame"
    ):
        infocap.combine(files)
    frame = infocap.load_frame(infocap.common_frame(files).save(path.with_name("all.frame")))
    for file in files:
        part = infocap.load_part(file)
        infocap.summarise(RUN, BASIS, rows=(part.start, part.stop), second=frame).save(file)
    same(infocap.combine(files), PLAIN["threshold-richardson"])


def test_rows_that_changed_are_refused(saved):
    path, files = saved
    replace(RUN, readouts=RUN.readouts + 1.0).save(path)
    with pytest.raises(DataError, match=r"run.nc holds other rows than when .*part-0.sum was made"):
        infocap.combine(files)


def test_what_is_not_one_data_set_is_refused(saved, tmp_path):
    _, files = saved
    with pytest.raises(
        DataError, match=r"rows 700 to 2000, between .*part-0.sum and .*part-2.sum, are missing"
    ):
        infocap.combine([files[0], *files[2:]])
    with pytest.raises(DataError, match=r"rows 0 to 700, before .*part-1.sum, are missing"):
        infocap.combine(files[1:])
    with pytest.raises(DataError, match=r"rows 2001 to 4001, after .*part-2.sum, are missing"):
        infocap.combine(files[:3])
    with pytest.raises(DataError, match="overlap"):
        infocap.combine([*files, files[1]])
    other = infocap.summarise(RUN, infocap.product_basis("legendre", 3, 3), rows=(0, 700)).save(
        tmp_path / "o.sum"
    )
    with pytest.raises(DataError, match=r"o.sum and .*part-1.sum have different bases"):
        infocap.combine([other, *files[1:]])
    with pytest.raises(ParameterError, match="method='control-variate'` is not one of"):
        infocap.combine(files, method="control-variate")
    with pytest.raises(ParameterError, match="must be a list of parts"):
        infocap.combine([])


def test_damaged_files_are_named(saved):
    _, files = saved
    whole = files[0].read_bytes()
    for place in (len(whole) // 2, len(whole) // 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        files[0].write_bytes(bytes(damaged))
        with pytest.raises(DataError, match=r"part-0.sum"):
            infocap.combine(files)
    files[0].write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"part-0.sum cannot be read"):
        infocap.combine(files)
    with zipfile.ZipFile(files[0], "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(DataError, match="is no file of infocap summarise"):
        infocap.combine(files)


def test_places_that_mean_nothing_are_refused():
    with pytest.raises(ParameterError, match="is no stretch of the 4001 rows"):
        infocap.summarise(RUN, BASIS, rows=(10, 5000))
    with pytest.raises(ParameterError, match="leave start= and total= out"):
        infocap.summarise(RUN, BASIS, rows=(0, 10), total=5)
    gap = infocap.Recording(RUN.inputs[:100], RUN.readouts[:100], np.r_[0:50, 60:110])
    with pytest.raises(DataError, match="index goes from 49 to 60 at row 50"):
        infocap.summarise(gap, BASIS)


def run_command(*arguments):
    found = CliRunner().invoke(main, [str(one) for one in arguments])
    assert found.exit_code == 0, found.output + str(found.exception)
    return found.output


@pytest.mark.parametrize("suffix", ["nc", "zarr", "h5"])
def test_an_array_job_needs_two_commands(suffix, tmp_path):
    path = RUN.save(tmp_path / f"run.{suffix}")
    for number in range(3):
        run_command(
            "summarise", path, "--part", f"{number + 1}/3", "--degree", 4, "-o", tmp_path / f"{number}.sum"
        )
    files = sorted(tmp_path.glob("*.sum"))
    output = run_command("combine", *files, "-o", tmp_path / "result.nc", "--bars", tmp_path / "bars.png")
    same(infocap.load_result(tmp_path / "result.nc"), PLAIN["threshold-richardson"])
    assert "total" in output.lower()
    assert (tmp_path / "bars.png").exists()


def test_an_array_job_that_loses_its_data_takes_two_rounds(tmp_path):
    path = RUN.save(tmp_path / "run.nc")

    def summarise(number, *more):
        run_command(
            "summarise",
            path,
            "--part",
            f"{number + 1}/3",
            "--degree",
            4,
            "-o",
            tmp_path / f"{number}.sum",
            *more,
        )

    for number in range(3):
        summarise(number)
    files = sorted(tmp_path.glob("*.sum"))
    run_command("combine", *files, "-o", tmp_path / "all.frame")
    for number in range(3):
        summarise(number, "--second", tmp_path / "all.frame")
    path.unlink()
    run_command("combine", *files, "-o", tmp_path / "result.nc")
    same(infocap.load_result(tmp_path / "result.nc"), PLAIN["threshold-richardson"])
