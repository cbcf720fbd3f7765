"""The command line: what it writes, what it says, and how it stops and goes on."""

import numpy as np
import pytest
from click.testing import CliRunner

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab.cli import main, run

ARGUMENTS = ["simulate", "--power-dbm", 1, "--length-m", 5, "--n-inputs", 2, "--n-samples", 2048]
ARGUMENTS += ["--seed", 3]


def invoke(*extra):
    return CliRunner().invoke(main, list(map(str, [*ARGUMENTS, *extra])), catch_exceptions=False)


def test_simulate_writes_a_recording_that_can_be_estimated(tmp_path):
    path = tmp_path / "run.nc"
    outcome = invoke("-o", path)
    assert outcome.exit_code == 0
    assert "Recording: 2048 samples, 2 inputs, 71 readouts in mW/nm" in outcome.output
    recording = infocap.read(path)
    basis = infocap.product_basis("legendre", 2, 6)
    assert np.array_equal(recording.inputs, infocap.draw(basis, 2048, seed=3))
    assert recording.channel[0] == "1548.25 nm"
    assert recording.metadata["system"]["power_dbm"] == 1.0
    assert recording.metadata["seed"] == 3
    result = infocap.estimate(
        recording.inputs, recording.readouts, basis, design_index=recording.design_index
    )
    assert 13 < result.total < 18


def test_a_simulation_is_never_overwritten_unless_asked_to(tmp_path):
    invoke("-o", tmp_path / "run.nc")
    with pytest.raises(ParameterError, match="is there already; give another name, or --force"):
        invoke("-o", tmp_path / "run.nc", "--phase-noise", "bin")
    assert invoke("-o", tmp_path / "run.nc", "--force").exit_code == 0


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["simulate", "--n-inputs", "3", "-o", "x.nc"], 2, "--n-inputs 3 does not divide 20 bins"),
    (["simulate", "-o", "x.txt"], 2, "'.txt' is not one of '.nc'"),
    (["simulate", "-o", "missing/x.nc"], 3, "the folder missing does not exist"),
    (["simulate", "--seed", "-1", "-o", "x.nc"], 2, "-1 is not in the range"),
    (["simulate"], 2, "Missing option"),
])  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(
    arguments, code, message, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["infocap", *arguments, *(["--n-samples", "64"] if len(arguments) > 1 else [])]
    )
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_large_inputs_are_no_dates(tmp_path):
    u = np.linspace(1.5e8, 1.9e8, 4)[:, None]
    seconds = 1.7e9 + np.arange(4)
    recording = infocap.Recording(u, np.ones((4, 2)), np.arange(4), time=seconds, input_unit="Hz")
    recording.save(tmp_path / "run.nc")
    outcome = CliRunner().invoke(main, ["show", str(tmp_path / "run.nc")])
    assert "1.5e+08 to 1.9e+08 Hz" in outcome.output
    assert "2023-11-14 22:13:20 to 2023-11-14 22:13:23" in outcome.output


def test_many_files_are_not_all_listed(tmp_path):
    paths = [tmp_path / f"{number}.csv" for number in range(22)]
    for path in paths:
        path.write_text("u1,x1\n0.1,2\n0.3,4\n")
    outcome = CliRunner().invoke(main, ["show", *map(str, paths)])
    lines = outcome.output.splitlines()
    assert sum(": text separated by" in line for line in lines) == 20
    assert lines[20] == "and 2 more files"


def test_files_that_are_no_recordings_are_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        infocap.read(tmp_path / "nowhere.nc")
    (tmp_path / "cut.nc").write_bytes(b"\x89HDF\r\n\x1a\n and nothing more")
    with pytest.raises(DataError, match="truncated or of another format"):
        infocap.read(tmp_path / "cut.nc")
    basis = infocap.product_basis("legendre", 2, 2)
    infocap.probe(lambda u: u, basis, 64, seed=0).save(tmp_path / "result.nc")
    with pytest.raises(
        DataError,
        match="is not an 'infocap recording 1' file but 'infocap result 1'; it holds capacity",
    ):
        infocap.read(tmp_path / "result.nc")
    with pytest.raises(
        DataError, match=r"readouts has shape \(2, 1\); a recording needs \(3 samples, channel\)"
    ):
        infocap.Recording(np.zeros((3, 1)), np.zeros((2, 1)), np.arange(3))


def test_cite_gives_both_references_in_bibtex():
    said = CliRunner().invoke(main, ["cite"], catch_exceptions=False).output
    assert "@misc{ramachandran2026ipc," in said
    assert "doi           = {10.48550/arXiv.2605.19152}" in said
    assert f"version = {{{infocap.__version__}}}" in said
    assert said.count("{") == said.count("}")
