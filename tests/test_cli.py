"""The command line: what it writes, what it says, and how it stops and goes on."""

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import infocap
from infocap.cli import main, run
from infocap.errors import DataError

ARGUMENTS = [
    "simulate",
    "--power-dbm",
    "1.0",
    "--length-m",
    "5",
    "--inputs",
    "2",
    "--samples",
    "2048",
    "--seed",
    "3",
]


def invoke(*extra):
    return CliRunner().invoke(main, [*ARGUMENTS, *map(str, extra)], catch_exceptions=False)


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
    result = infocap.estimate(recording.inputs, recording.readouts, basis, index=recording.index)
    assert 8 < result.total < 13


def test_an_interrupted_simulation_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole.nc", tmp_path / "broken.nc"
    invoke("-o", whole)
    original, calls = infocap.systems.FibreSystem.__call__, []

    def second_call_is_interrupted(self, u, seed=None):
        calls.append(len(u))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, u, seed)

    monkeypatch.setattr(infocap.systems.FibreSystem, "__call__", second_call_is_interrupted)
    outcome = invoke("-o", broken)
    assert outcome.exit_code == 130
    assert "Interrupted after 512 of 2048" in outcome.output
    assert len(infocap.read(broken).inputs) == 512
    assert invoke("-o", broken).exit_code == 0
    assert len(calls) == 5
    assert "is complete already" in invoke("-o", broken).output
    assert len(calls) == 5
    assert_allclose(infocap.read(broken).readouts, infocap.read(whole).readouts, rtol=0)


def test_another_simulation_is_never_overwritten(tmp_path):
    invoke("-o", tmp_path / "run.nc")
    with pytest.raises(DataError, match="holds another simulation"):
        invoke("-o", tmp_path / "run.nc", "--phase-noise", "bin")


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["simulate", "--inputs", "3", "-o", "x.nc"], 2, "--inputs 3 does not divide 20 bins"),
    (["simulate", "-o", "x.txt"], 2, "'.txt' is not one of '.nc'"),
    (["simulate", "-o", "missing/x.nc"], 3, "the folder missing does not exist"),
    (["simulate", "--seed", "-1", "-o", "x.nc"], 2, "-1 is not in the range"),
    (["simulate"], 2, "Missing option"),
])  # fmt: skip
def test_mistakes_are_one_line_and_an_exit_code(arguments, code, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["infocap", *arguments, *(["--samples", "64"] if len(arguments) > 1 else [])]
    )
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_files_that_are_no_recordings_are_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        infocap.read(tmp_path / "nowhere.nc")
    (tmp_path / "cut.nc").write_bytes(b"\x89HDF\r\n\x1a\n and nothing more")
    with pytest.raises(DataError, match="truncated or of another format"):
        infocap.read(tmp_path / "cut.nc")
    basis = infocap.product_basis("legendre", 2, 2)
    infocap.probe(lambda u: u, basis, 64, seed=0).save(tmp_path / "result.nc")
    with pytest.raises(
        DataError, match="is not an 'infocap recording 1' file but 'infocap result 2'; it holds capacity"
    ):
        infocap.read(tmp_path / "result.nc")
    with pytest.raises(DataError, match="as many inputs as readouts"):
        infocap.Recording(np.zeros((3, 1)), np.zeros((2, 1)), np.arange(3))


def test_cite_gives_both_references_in_bibtex():
    said = CliRunner().invoke(main, ["cite"], catch_exceptions=False).output
    assert "@article{ramachandran2026ipc," in said
    assert f"version = {{{infocap.__version__}}}" in said
    assert said.count("{") == said.count("}")
