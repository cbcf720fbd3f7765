"""Instruments of other libraries, each tried on what that library itself offers in place of a real one."""

import importlib
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap.errors import DataError, ParameterError
from infocap.lab import Plan, acquire, adapters
from support import absent

PLAN = Plan(n_inputs=2, max_degree=2, n_samples=32, seed=1, repeat_every=4)
VISA = """
spec: "1.0"
devices:
  source and meter:
    eom:
      USB INSTR: {q: "\\n", r: "\\n"}
    error: ERROR
    dialogues:
      - {q: "*IDN?", r: "ACME,2 channels,SN1234,1.0"}
    properties:
      first: &volt
        default: 0.0
        getter: {q: "VOLT1?", r: "{:.6f}"}
        setter: {q: "VOLT1 {:.6f}"}
        specs: {min: -1, max: 1, type: float}
      second:
        <<: *volt
        getter: {q: "VOLT2?", r: "{:.6f}"}
        setter: {q: "VOLT2 {:.6f}"}
resources:
  USB::0x1111::0x2222::0x1234::INSTR: {device: source and meter}
"""


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        absent(name.split(".")[0])


def test_no_library_of_instruments_is_imported_by_infocap():
    names = ("qcodes", "pymeasure", "pyvisa")
    code = (
        f"import sys, infocap.lab.adapters; print([one for one in {names} if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_functions_that_set_and_read_are_an_instrument(tmp_path):
    sent = {}
    device = adapters.SetAndRead(
        [lambda v: sent.update(a=v), lambda v: sent.update(b=v)],
        [lambda: sent["a"] + sent["b"], lambda: np.array([[sent["a"], sent["b"]]])],
        extra={"Room [K]": lambda: 293},
        rest=[0, 0.5],
        shutdown=[lambda: sent.update(off=True)],
        identity="SN 7",
    )
    recording = acquire(PLAN, device, tmp_path / "run.db", progress=False)
    assert_allclose(recording.readouts, np.column_stack([PLAN.inputs.sum(axis=1), PLAN.inputs]))
    assert (recording.extra == 293).all()
    assert sent == {"a": 0.0, "b": 0.5, "off": True}
    with infocap.lab.Store(tmp_path / "run.db") as store:
        assert store.last_instrument == "SN 7"
    with pytest.raises(ParameterError, match=r"rest=\[1\]` must have a value for each of 2 inputs"):
        adapters.SetAndRead([print, print], [], rest=[1])


def test_pymeasure_instruments_are_set_and_read_by_the_names_of_their_properties(tmp_path):
    fakes = library("pymeasure.instruments.fakes")
    one, two = (fakes.SwissArmyFake(name=f"fake {k}", wait=0) for k in (1, 2))
    names = ["first.output_voltage", "second.output_voltage"]
    device = adapters.pymeasure(
        {"first": one, "second": two}, names, names, extra=["first.voltage"], rest=[0, 0]
    )
    recording = acquire(PLAN, device, tmp_path / "run.db", progress=False)
    assert_allclose(recording.readouts, PLAN.inputs)
    assert recording.extra_names == ("first.voltage",)
    assert (recording.extra == 10).all()
    assert (one.output_voltage, two.output_voltage, one.isShutdown) == (0, 0, True)
    for wrong in ("first.outputvoltage", "third.output_voltage"):
        with pytest.raises(
            ParameterError, match=f"'{wrong}' is no property of the instruments first, second"
        ):
            adapters.pymeasure({"first": one, "second": two}, [wrong], names)


def test_a_driver_of_pymeasure_sends_what_its_protocol_says():
    instruments = library("pymeasure.instruments")
    protocols = library("pymeasure.test")

    class Source(instruments.Instrument):
        voltage = instruments.Instrument.control("VOLT?", "VOLT %g", "Control the voltage.")

        def __init__(self, adapter, name="source"):
            super().__init__(adapter, name, includeSCPI=False)

        def shutdown(self):
            self.write("OUTP OFF")

    protocol = [
        ("VOLT 0.25", None),
        ("VOLT?", "0.25"),
        ("VOLT?", "0.75"),
        ("VOLT 0", None),
        ("OUTP OFF", None),
    ]
    with protocols.expected_protocol(Source, protocol) as source:
        device = adapters.pymeasure(
            {"source": source}, ["source.voltage"], ["source.voltage"], rest=[0]
        )
        readouts, extra = device.measure([0.25], averages=2)
        assert_allclose(readouts, [0.5])
        assert extra == {}
        device.safe()


def test_a_driver_for_pyvisa_is_a_few_functions(tmp_path):
    visa = library("pyvisa")
    library("pyvisa_sim")
    (tmp_path / "lab.yaml").write_text(VISA)
    manager = visa.ResourceManager(f"{tmp_path / 'lab.yaml'}@sim")
    ends = {"read_termination": "\n", "write_termination": "\n"}
    device = manager.open_resource("USB::0x1111::0x2222::0x1234::INSTR", **ends)
    inputs = [lambda volt, k=k: device.write(f"VOLT{k} {volt:.6f}") for k in (1, 2)]
    readouts = [lambda k=k: float(device.query(f"VOLT{k}?")) for k in (1, 2)]
    bench = adapters.SetAndRead(inputs, readouts, rest=[0, 0], identity=device.query("*IDN?"))
    recording = acquire(PLAN, bench, tmp_path / "run.db", progress=False)
    assert_allclose(recording.readouts, PLAN.inputs, atol=1e-6)
    assert float(device.query("VOLT1?")) == 0
    with infocap.lab.Store(tmp_path / "run.db") as store:
        assert "SN1234" in store.last_instrument
    manager.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of QCoDeS itself
def test_parameters_of_a_qcodes_station_are_an_instrument(tmp_path):
    qcodes = library("qcodes")
    mock = library("qcodes.instrument_drivers.mock_instruments")
    dac = mock.DummyInstrument("dac", gates=["ch1", "ch2", "room"])
    meter = mock.DummyInstrumentWithMeasurement("meter", setter_instr=dac)
    station = qcodes.Station(dac, meter)
    readouts = ["meter_v1", "meter_v2", dac.ch1]
    device = adapters.qcodes(
        station, ["dac_ch1", dac.ch2], readouts, extra=["dac_room"], rest=[0, 0]
    )
    recording = acquire(PLAN, device, tmp_path / "run.db", progress=False)
    assert_allclose(recording.readouts[:, 2], PLAN.inputs[:, 0])
    assert recording.readouts[:, 0].std() > 0
    assert recording.extra_names == ("Gate room [V]",)
    assert (dac.ch1(), dac.ch2()) == (0, 0)
    with infocap.lab.Store(tmp_path / "run.db") as store:
        assert store.last_instrument == "QCoDeS station of dac, meter"
    with pytest.raises(DataError, match=r"could not be made \(KeyError: .*ch9"):
        acquire(
            PLAN,
            lambda: adapters.qcodes(station, ["dac_ch9"], []),
            tmp_path / "other.db",
            progress=False,
        )
    station.close_all_registered_instruments()
