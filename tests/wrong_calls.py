"""Wrong calls of every public function, made from its signature.

For each parameter of each public function, class and method there is one call for every wrong value:
the other arguments are right, and this one is None, a text, NaN, a ragged list, a huge number, an
array of another shape or type, a path that is none, and so on. A call passes where it succeeds or
raises an error of infocap. Anything else is a raw error.

The calls are made in processes that may be ended: one call that takes too long costs one process.
As a program this module is such a process, or with ``--all`` makes all calls and prints a summary.
"""

import argparse
import contextlib
import decimal
import fractions
import importlib
import inspect
import io
import itertools
import json
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import scipy.sparse

import infocap
from infocap.errors import InfocapError

# The modules whose names are public, as in docs/reference/index.md, and those of what they return.
PUBLIC_MODULES = (
    "infocap", "infocap.basis", "infocap.systems", "infocap.photonics", "infocap.photonics.plot",
    "infocap.estimators", "infocap.diagnostics", "infocap.theory", "infocap.dimension",
    "infocap.tasks", "infocap.tasks.plot", "infocap.lab", "infocap.lab.adapters", "infocap.plot",
    "infocap.report", "infocap.errors", "infocap.workflow",
)  # fmt: skip
# Seconds of processor time that a call may take.
MAX_PROCESSOR_S = 5.0
# Seconds after which a call is ended: other programs may use the processor meanwhile.
MAX_WALL_S = 30.0
# Bytes of address space of a process: what asks for more is told so.
MAX_BYTES = 8 << 30
# Longest message that is still one line to read.
MAX_MESSAGE = 1000


@dataclass(frozen=True)
class Outcome:
    """What became of one call: "fine", "refused", "raw" or "hang"."""

    function: str
    parameter: str
    value: str
    kind: str
    seconds: float = 0.0
    error: str = ""
    place: str = ""
    warned: str = ""


# Right arguments. Everything is small, so that a call takes milliseconds.


@cache
def basis():
    return infocap.product_basis("legendre", n_inputs=2, max_degree=2)


@cache
def delayed():
    return infocap.delayed_basis("legendre", max_delay={1: 3, 2: 2})


@cache
def u():
    return infocap.draw(basis(), 128, seed=1)


@cache
def features():
    return infocap.systems.RandomFeatures(2, 4, noise=0.05, seed=1)


@cache
def x():
    return features()(u(), seed=1)


@cache
def result():
    return infocap.estimate(recording())


@cache
def sequence_result():
    return infocap.probe(infocap.systems.EchoState(4), delayed(), 300, seed=1)


@cache
def plan():
    return infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=1, noise_repeats=4)


def recording():
    """A recording with everything that a recording may have."""
    return infocap.Recording(**recording_fields())


@cache
def recording_fields():
    rng = np.random.default_rng(1)
    n = len(u())
    return {
        "inputs": u(),
        "readouts": x(),
        "design_index": np.arange(n),
        "readout_unit": "V",
        "channel": ("a", "b", "c", "d"),
        "metadata": {"device": "wire"},
        "input_unit": "V",
        "time": np.arange(n) * 1.0,
        "repeats": features()(u(), seed=2),
        "noise": rng.normal(size=(8, 4)),
        "reference": rng.normal(size=(8, 4)),
        "reference_time": np.arange(8.0),
        "checks": (),
        "input_names": ("p", "q"),
        "extra": np.arange(n)[:, None] * 1.0,
        "extra_names": ("T [K]",),
        "reference_inputs": np.zeros((8, 2)),
    }


@cache
def task():
    return infocap.tasks.Task(u(), u()[:, 0] > 0, name="sign")


def store():
    """A store in the current folder, with all rows of a plan."""
    path = Path("run.db")
    if not path.exists():
        bench = infocap.lab.SimulatedBench(features())
        infocap.lab.acquire(plan(), bench, path, progress=False)
    return path


def two_results():
    return [result(), infocap.estimate(u(), x()[:, :2], basis())]


@cache
def fibre_system():
    return infocap.photonics.FibreSystem(n_inputs=2, tolerance=1e-2)


@cache
def grid():
    return infocap.photonics.Grid()


def table_file():
    path = Path("table.csv")
    pd.DataFrame(np.hstack([u(), x()]), columns=["u1", "u2", "x1", "x2", "x3", "x4"]).to_csv(
        path, index=False
    )
    return path


def damaged_store():
    store().rename("damaged.db")
    return Path("damaged.db")


def mistake():
    """A finding with a picture: readouts that are one row late."""
    late = infocap.Recording(u(), np.roll(x(), 1, axis=0), np.arange(len(u())))
    return infocap.diagnose(late, basis=basis()).checks[0]


def drifting_result():
    return result()


class Wire:
    """An instrument that answers with its inputs."""

    name = "wire"
    volts = 0.0

    def measure(self, u):
        return u

    def shutdown(self):
        pass


def swept():
    return infocap.sweep(
        lambda n: infocap.systems.RandomFeatures(2, n), {"n": [2, 3]}, basis(), 64, seed=1,
        progress=False,
    )  # fmt: skip


@cache
def devices_and_scores():
    """Capacities of four devices, and how well each does a task."""
    devices = [infocap.systems.RandomFeatures(2, n, noise=0.1) for n in (2, 4, 8, 12)]
    results = [infocap.probe(device, basis(), 128, seed=1) for device in devices]
    scores = [infocap.tasks.accuracy(device, task()) for device in devices]
    return {"results": results, "accuracies": scores}


def measurements():
    """The first two measurements of the plan, made."""
    made = []
    for measurement in itertools.islice(plan().schedule, 2):
        made.append(replace(measurement, readouts=np.ones(4)))
    return made


def relation():
    return infocap.tasks.capacity_accuracy(**devices_and_scores())


# The right arguments of each function by name, each made when the call is made.
ARGUMENTS = {
    "infocap.calibrate": lambda: {
        "predict": lambda a: a * np.ones(3), "start": {"a": 1.0},
        "measured": np.full(3, 2.0), "errors": np.ones(3), "n_starts": 1, "within": 2.0,
    },
    "infocap.compare": lambda: {
        "results": two_results(), "names": ["a", "b"], "different_drives": False,
    },
    "infocap.convergence": lambda: {"u": u(), "x": x(), "basis": basis(), "sizes": [32, 64]},
    "infocap.delayed_basis": lambda: {
        "family": "legendre", "n_inputs": 1, "max_delay": {1: 3, 2: 2}, "max_degree": 2,
    },
    "infocap.diagnose": lambda: {"u": u(), "x": x(), "basis": basis()},
    "infocap.draw": lambda: {"basis": basis(), "n_samples": 64, "seed": 1},
    "infocap.draw_weighted": lambda: {"basis": basis(), "n_samples": 64, "seed": 1},
    "infocap.estimate": lambda: {"u": u(), "x": x(), "basis": basis()},
    "infocap.explore": lambda: {
        "u": u()[:, :1], "x": x(), "max_degree": 2, "most_tested": 100, "washout": 8,
    },
    "infocap.find_steps": lambda: {
        "u": np.repeat(u()[:32], 4, axis=0), "x": x(), "rows_per_step": 4,
    },
    "infocap.fold_trace": lambda: {
        "u": np.repeat(u()[:32], 4, axis=0), "x": x(), "rows_per_step": 4,
    },
    "infocap.inputs": lambda: {"described": ["Field [mT] = 0..5"]},
    "infocap.load_sweep": lambda: {"folder": saved_sweep()},
    "infocap.rank_channels": lambda: {"u": u(), "x": x(), "basis": basis()},
    "infocap.load_result": lambda: {"path": result().save("result.nc")},
    "infocap.probe": lambda: {"system": features(), "basis": basis(), "n_samples": 64, "seed": 1},
    "infocap.product_basis": lambda: {"family": "legendre", "n_inputs": 2, "max_degree": 2},
    "infocap.read": lambda: {"path": table_file(), "u": "u1,u2"},
    "infocap.sweep": lambda: {
        "make_system": lambda n: infocap.systems.RandomFeatures(2, n),
        "settings": {"n": [2, 3]}, "basis": basis(), "n_samples": 64, "seed": 1,
        "progress": False,
    },
    "infocap.ProductBasis": lambda: {"families": basis().families, "indices": basis().indices},
    "infocap.DelayedBasis": lambda: {"families": delayed().families, "indices": delayed().indices},
    "infocap.Recording": lambda: dict(recording_fields()),
    "infocap.basis.DiscreteFamily": lambda: vars(infocap.basis.table([0.0, 1.0, 2.0])),
    "infocap.basis.Family": lambda: vars(infocap.basis.legendre()),
    "infocap.basis.binomial": lambda: {"n": 3},
    "infocap.basis.density": lambda: {
        "function": lambda x: np.ones_like(x), "support": (-1, 1), "max_degree": 4,
    },
    "infocap.basis.jacobi": lambda: {"a": 0.5, "b": 0.5},
    "infocap.basis.recorded": lambda: {"nodes": (-1.0, 0.0, 1.0), "mass": (0.3, 0.4, 0.3)},
    "infocap.basis.samples": lambda: {"recorded": u()[:, 0]},
    "infocap.basis.table": lambda: {"levels": [0.0, 1.0, 2.0], "weights": [1, 2, 1]},
    "infocap.systems.check_fading": lambda: {
        "system": infocap.systems.EchoState(4), "drive": delayed(), "n_steps": 500,
    },
    "infocap.systems.find": lambda: {"name": "EchoState"},
    "infocap.systems.find_period": lambda: {"x": np.sin(np.arange(256.0))[:, None]},
    "infocap.systems.RandomFeatures": lambda: {"n_inputs": 2, "n_readouts": 4},
    "infocap.systems.FeedForward": lambda: {"n_inputs": 2, "widths": (4, 4)},
    "infocap.photonics.Encoder": lambda: {"n_inputs": 2},
    "infocap.photonics.FibreSystem": lambda: {"n_inputs": 2, "tolerance": 1e-2},
    "infocap.photonics.plot.stages": lambda: {
        "system": fibre_system(), "u": [[0.9, 0.5]], "seed": 1,
    },
    "infocap.estimators.conclude": lambda: {
        "evidence": infocap.estimators.gather_evidence(u(), x(), basis()),
    },
    "infocap.estimators.gather_evidence": lambda: {"u": u(), "x": x(), "basis": basis()},
    "infocap.diagnostics.finding": lambda: {
        "sentence": "the readouts are late.", "cause": "slip", "next_step": "Shift them.",
    },
    "infocap.diagnostics.run_checks": lambda: {"case": case()},
    "infocap.diagnostics.level": lambda: {"excerpt": some_excerpt()},
    "infocap.theory.efficiency_bound": lambda: {
        "source": features(), "basis": basis(), "n_samples": 64, "seed": 1, "draws": 64,
    },
    "infocap.theory.finite_sample_bias": lambda: quadrature_arrays(),
    "infocap.theory.forecast": lambda: {"basis": basis(), "n_readouts": 4},
    "infocap.theory.forecast_from": lambda: {"pilot": result()},
    "infocap.theory.linear_memory": lambda: {
        "a": 0.5 * np.eye(2), "b": np.ones((2, 1)), "max_delay": 5,
    },
    "infocap.theory.noisy_capacities": lambda: {
        "weights": np.eye(2), "noise_covariance": np.eye(2),
    },
    "infocap.theory.random_mixture": lambda: {
        "basis": basis(), "n_active": 3, "n_readouts": 2, "seed": 1,
    },
    "infocap.theory.zero_capacity_bound": lambda: {
        "fourth_moments": basis().fourth_moments, "leverage_power": 10.0, "n_samples": 64,
    },
    "infocap.dimension.from_repeats": lambda: {"x1": x(), "x2": features()(u(), seed=2)},
    "infocap.dimension.indicator": lambda: {"x": x()},
    "infocap.dimension.noise_scale": lambda: {"repeats": x()},
    "infocap.tasks.Task": lambda: {"inputs": u(), "labels": u()[:, 0] > 0},
    "infocap.tasks.SystemFeatures": lambda: {"system": features()},
    "infocap.tasks.accuracy": lambda: {"system": features(), "task": task()},
    "infocap.tasks.capacity_accuracy": lambda: dict(devices_and_scores()),
    "infocap.tasks.channel_equalisation": lambda: {"n_steps": 100},
    "infocap.tasks.demand": lambda: {"task": task(), "basis": basis()},
    "infocap.tasks.digits": lambda: {"n_samples": 50, "n_inputs": 2},
    "infocap.tasks.mackey_glass": lambda: {"horizon": 10, "n_steps": 100},
    "infocap.tasks.narma": lambda: {"order": 10, "n_steps": 100},
    "infocap.tasks.parity": lambda: {"n": 2, "n_steps": 100},
    "infocap.tasks.two_spirals": lambda: {"n_points": 100},
    "infocap.tasks.named_task": lambda: {"name": "narma10", "basis": delayed()},
    "infocap.tasks.predict_score": lambda: {
        "task": infocap.tasks.named_task("narma2", delayed()), "result": sequence_result(),
    },
    "infocap.tasks.plot.capacity_accuracy": lambda: {"relation": relation()},
    "infocap.tasks.plot.demand_supply": lambda: {
        "demand": infocap.tasks.demand(task(), basis()), "result": result(),
    },
    "infocap.lab.Plan": lambda: {"n_inputs": 2, "max_degree": 2, "n_samples": 16, "seed": 1},
    "infocap.lab.SimulatedBench": lambda: {"system": features()},
    "infocap.lab.Store": lambda: {"path": "new.db", "plan": plan()},
    "infocap.lab.Schedule": lambda: {
        "codes": plan().schedule.codes, "inputs": plan().schedule.inputs,
    },
    "infocap.lab.acquire": lambda: {
        "plan": plan(), "instrument": infocap.lab.SimulatedBench(features()), "path": "new.db",
        "progress": False, "wait_s": 0.0, "retries": 1,
    },
    "infocap.lab.acquire_sweep": lambda: {
        "plan": sweep_plan(), "instrument": Tuned(), "folder": "night", "progress": False,
        "wait_s": 0.0, "retries": 1,
    },
    "infocap.lab.estimate_sweep": lambda: {"folder": measured_sweep()},
    "infocap.lab.extend_sweep": lambda: {"folder": measured_sweep(), "n_samples": 32},
    "infocap.lab.sweep_status": lambda: {"folder": measured_sweep()},
    "infocap.lab.extend": lambda: {"path": store(), "n_samples": 32},
    "infocap.lab.status": lambda: {"path": store()},
    "infocap.lab.read": lambda: {"path": table_file(), "u": "u1,u2"},
    "infocap.lab.adapters.SetAndRead": lambda: {
        "inputs": [lambda value: None], "readouts": [lambda: 1.0],
    },
    "infocap.lab.adapters.pymeasure": lambda: {
        "instruments": {"source": Wire()}, "inputs": ["source.volts"], "readouts": ["source.volts"],
    },
    "infocap.lab.adapters.qcodes": lambda: {
        "station": station(), "inputs": [lambda *value: None], "readouts": [lambda: 1.0],
    },
    "infocap.plot.capacity_bars": lambda: {"result": result()},
    "infocap.plot.capacity_by_delay": lambda: {"result": sequence_result()},
    "infocap.plot.capacity_matrix": lambda: {"result": result()},
    "infocap.plot.channels": lambda: {"ranking": infocap.rank_channels(u(), x(), basis())},
    "infocap.plot.input_matrix": lambda: {"result": result()},
    "infocap.plot.compare": lambda: {"results": two_results(), "names": ["a", "b"]},
    "infocap.plot.convergence": lambda: {
        "curve": infocap.convergence(u(), x(), basis()), "terms": ["P1(u1)"],
    },
    "infocap.plot.degree_bars": lambda: {"results": {"a": result(), "b": result()}},
    "infocap.plot.delay_matrix": lambda: {"result": sequence_result()},
    "infocap.plot.drift": lambda: {"result": drifting_result()},
    "infocap.plot.extra_value": lambda: {"recording": recording()},
    "infocap.plot.finding": lambda: {"check": mistake()},
    "infocap.plot.growth": lambda: {"result": result()},
    "infocap.plot.indicator": lambda: {"source": infocap.dimension.indicator(x())},
    "infocap.plot.memory_function": lambda: {"result": sequence_result()},
    "infocap.plot.save": lambda: {
        "ax": infocap.plot.capacity_bars(result()), "path": "figure.png",
    },
    "infocap.plot.width": lambda: {"width_mm": 60.0},
    "infocap.report.card": lambda: {"result": result(), "path": "card.html"},
    "infocap.report.gallery": lambda: {"folder": folder_of_results(), "path": "gallery.html"},
    "infocap.report.live": lambda: {"path": store()},
    "infocap.report.page": lambda: {"result": result()},
    "infocap.report.save": lambda: {"result": result(), "path": "report.html"},
    "infocap.diagnostics.Check": lambda: {"text": "a sentence."},
}  # fmt: skip

# What the methods of each class belong to, and the right arguments of each method.
INSTANCES = {
    "CapacityResult": result,
    "DelayedBasis": delayed,
    "ProductBasis": basis,
    "Recording": recording,
    "Family": infocap.basis.legendre,
    "DiscreteFamily": lambda: infocap.basis.table([0.0, 1.0, 2.0]),
    "Detector": infocap.photonics.Detector,
    "Encoder": lambda: infocap.photonics.Encoder(n_inputs=2),
    "Fibre": infocap.photonics.Fibre,
    "FibreSystem": fibre_system,
    "Pulse": infocap.photonics.Pulse,
    "Bound": lambda: infocap.theory.efficiency_bound(
        features(), basis(), n_samples=64, seed=1, draws=64
    ),
    "Forecast": lambda: infocap.theory.forecast(basis(), 4),
    "RandomMixture": lambda: infocap.theory.random_mixture(
        basis(), n_active=3, n_readouts=2, seed=1
    ),
    "Repeats": lambda: infocap.dimension.from_repeats(x(), features()(u(), seed=2)),
    "CapacityAccuracy": relation,
    "Demand": lambda: infocap.tasks.demand(task(), basis()),
    "SystemFeatures": lambda: infocap.tasks.SystemFeatures(features()).fit(u()),
    "Task": task,
    "Instrument": Wire,
    "Plan": plan,
    "Schedule": lambda: plan().schedule,
    "SimulatedBench": lambda: infocap.lab.SimulatedBench(features()),
    "Status": lambda: infocap.lab.status(store()),
    "Store": lambda: infocap.lab.Store("new.db", plan()),
    "SetAndRead": lambda: infocap.lab.adapters.SetAndRead([lambda value: None], [lambda: 1.0]),
    "Check": lambda: infocap.errors.Check("a sentence."),
    "Comparison": lambda: infocap.compare(two_results()),
    "Diagnosis": lambda: infocap.diagnose(u(), x(), basis()),
    "Exploration": lambda: infocap.explore(u()[:, :1], x(), max_degree=2, most_tested=100),
    "Sweep": swept,
    "SweepStatus": lambda: infocap.lab.sweep_status(measured_sweep()),
    "ChannelRanking": lambda: infocap.rank_channels(u(), x(), basis()),
}
METHOD_ARGUMENTS = {
    "CapacityResult.capacity_of": lambda: {"target": lambda u: u[:, 0]},
    "CapacityResult.capacity_of_term": lambda: {"term": 1},
    "CapacityResult.claim": lambda: {"total": "total"},
    "CapacityResult.short_claim": lambda: {"total": "total"},
    "CapacityResult.by_delay": lambda: {"self": sequence_result()},
    "CapacityResult.delay_matrix": lambda: {"self": sequence_result()},
    "CapacityResult.memory_function": lambda: {"self": sequence_result()},
    "CapacityResult.innovation_label": lambda: {"term": 1},
    "CapacityResult.of_functions": lambda: {"rows": [0, 1]},
    "CapacityResult.readout_weights": lambda: {"target": "P1(p)"},
    "CapacityResult.reconstruct": lambda: {"x": x(), "target": "P1(p)"},
    "CapacityResult.save": lambda: {"path": "result.nc"},
    "ProductBasis.combine": lambda: {"u": u(), "coefficients": np.ones(len(basis()))},
    "DelayedBasis.combine": lambda: {"u": u()[:, :1], "coefficients": np.ones(len(delayed()))},
    "Recording.save": lambda: {"path": "recording.nc"},
    "Basis.extended": lambda: {"max_functions": 20},
    "ProductBasis.from_dict": lambda: {"data": basis().to_dict(), "indices": basis().indices},
    "DelayedBasis.from_dict": lambda: {"data": delayed().to_dict(), "indices": delayed().indices},
    "Basis.label": lambda: {"term": 1},
    "ProductBasis.named": lambda: {"names": ["a", "b"]},
    "DelayedBasis.named": lambda: {"names": ["a"]},
    "Basis.positions_in": lambda: {"other": basis()},
    "ProductBasis.project": lambda: {"pieces": [(u(), x())]},
    "DelayedBasis.project": lambda: {"pieces": [(u()[:, :1], x()[3:])]},
    "Basis.subset": lambda: {"rows": [0, 1]},
    "ProductBasis.sum_over_samples": lambda: {"u": u()},
    "DelayedBasis.sum_over_samples": lambda: {"u": u()[:, :1]},
    "ProductBasis.value_blocks": lambda: {"u": u()},
    "DelayedBasis.value_blocks": lambda: {"u": u()[:, :1]},
    "ProductBasis.values": lambda: {"u": u()},
    "DelayedBasis.values": lambda: {"u": u()[:, :1]},
    "Family.count": lambda: {"degree": 2},
    "Family.degrees": lambda: {"count": 2},
    "Family.degrees_up_to": lambda: {"limit": 2},
    "Family.fourth_moments": lambda: {"count": 2},
    "Family.label": lambda: {"index": 1, "variable": "u1"},
    "Family.named": lambda: {"variable": "a"},
    "Family.natural": lambda: {"x": np.zeros(3)},
    "Family.nearest": lambda: {"x": np.zeros(3)},
    "Family.on": lambda: {"domain": (0.0, 1.0)},
    "Family.quadrature": lambda: {"count": 2},
    "Family.quantile": lambda: {"p": np.full(3, 0.5)},
    "Family.standard": lambda: {"u": np.zeros(3)},
    "Family.values": lambda: {"x": np.zeros(3), "count": 2},
    "Detector.disturb": lambda: {"readings": np.ones((2, 3)), "noise": np.ones((2, 2, 3))},
    "Detector.read": lambda: {
        "density": np.ones((1, grid().n_points)), "wavelength_nm": 1550.0,
    },
    "Encoder.bin_of_cell": lambda: {"wavelength_nm": 1550.0},
    "Encoder.cells": lambda: {
        "u": np.full((1, 2), 0.5), "noise": None, "wavelength_nm": 1550.0,
    },
    "Encoder.filtered": lambda: {
        "cells": infocap.photonics.Encoder(n_inputs=2).cells(
            np.full((1, 2), 0.5), None
        ),
        "grid": grid(),
        "offsets": [0.0, 0.0],
    },
    "Fibre.exponent": lambda: {"frequency_thz": grid().frequency_thz},
    "Fibre.propagate": lambda: {
        "field": 1e-3 * np.exp(-((grid().frequency_thz / 0.1) ** 2))[None, :] + 0j,
        "grid": grid(), "lengths_m": [0.0, 1.0],
    },
    "FibreSystem.published": lambda: {"member": 0, "settings": {"n_inputs": 2}},
    "FibreSystem.readouts": lambda: {"u": [[0.9, 0.5]], "lengths_m": [5.0], "seed": 1},
    "FibreSystem.stages": lambda: {"u": [[0.9, 0.5]], "seed": 1},
    "Pulse.amplitude": lambda: {"frequency_thz": grid().frequency_thz},
    "Bound.at": lambda: {"n_samples": 128},
    "Bound.samples_needed": lambda: {"error": 0.1},
    "Forecast.at": lambda: {"n_samples": 128},
    "Forecast.samples_needed": lambda: {"error": 0.1},
    "Forecast.range_needed": lambda: {"error": 0.1},
    "Repeats.capacity_at": lambda: {"shots": 4},
    "CapacityAccuracy.interval": dict,
    "Demand.reachable": lambda: {"result": result()},
    "Demand.target": lambda: {"label": True},
    "SystemFeatures.fit": lambda: {"X": u()},
    "SystemFeatures.fit_transform": lambda: {"X": u()},
    "SystemFeatures.transform": lambda: {"X": u()},
    "Task.reduced": lambda: {
        "features": np.random.default_rng(0).normal(size=(50, 20)),
        "labels": np.arange(50) % 3, "n_inputs": 2,
    },
    "Task.splits": lambda: {"folds": 3},
    "Instrument.measure": lambda: {"u": np.zeros(2)},
    "Plan.extended": lambda: {"n_samples": 32},
    "Plan.from_dict": lambda: {"entries": plan().to_dict()},
    "Plan.is_extension_of": lambda: {"other": plan()},
    "Plan.load": lambda: {"path": saved_plan()},
    "Plan.save": lambda: {"path": "plan.toml"},
    "Plan.write_inputs": lambda: {"path": "inputs.csv"},
    "Schedule.count": lambda: {"kind": next(iter(plan().schedule)).kind},
    "SimulatedBench.measure": lambda: {"u": np.zeros(2)},
    "SimulatedBench.measure_many": lambda: {"u": np.zeros((3, 2)), "seed": [1, 2, 3]},
    "Store.checked": lambda: {"measurements": measurements()},
    "Store.extend": lambda: {"n_samples": 32},
    "Store.note": lambda: {"what": "started", "details": {"a": 1}},
    "Store.record": lambda: {"index": 3, "readouts": np.ones(4)},
    "Store.record_many": lambda: {"measurements": measurements()},
    "Store.rescue": lambda: {"damaged": damaged_store(), "path": "rescued.db"},
    "SetAndRead.measure": lambda: {"u": [0.5]},
    "Check.from_dict": lambda: {"data": infocap.errors.Check("a sentence.").to_dict()},
    "Sweep.at": lambda: {"point": {"n": 2}},
    "Sweep.save": lambda: {"folder": "sweep"},
    "SweepStatus.is_complete_at": lambda: {"current": None},
    "SweepStatus.planned_at": lambda: {"current": None},
    "SweepStatus.path_at": lambda: {"setting": {"gain": 1}},
    "Plan.at": lambda: {"self": sweep_plan(), "setting": {"gain": 1}},
    "SimulatedBench.set": lambda: {
        "self": infocap.lab.SimulatedBench(make_system=lambda gain: lambda u: gain * u),
        "setting": {"gain": 1},
    },
    "Basis.joined": lambda: {"other": basis()},
    "DelayedBasis.joined": lambda: {"other": delayed()},
    "ProductBasis.joined": lambda: {"other": basis()},
    "CapacityResult.capacity_of_coefficients": lambda: {"coefficients": np.ones(len(result().basis))},
}  # fmt: skip
# Parameters that are not given one by one: those of Python, and those that scikit-learn's base class has.
NOT_OURS = {"self", "cls"}
# Methods that are another package's, and those whose arguments are names of anything.
FOREIGN_METHODS = {
    "SystemFeatures.get_metadata_routing", "SystemFeatures.get_params", "SystemFeatures.set_output",
    "SystemFeatures.set_params", "SystemFeatures.fit_transform",
    "SystemFeatures.get_feature_names_out", "Instrument.measure", "Method.extra_bytes",
    "Method.extra_work",
}  # fmt: skip


def case():
    evidence = infocap.estimators.gather_evidence(u(), x(), basis())
    method = infocap.estimators.METHODS["raw"]
    return infocap.diagnostics.Case(evidence, method, method(evidence), total=2.0)


def some_excerpt():
    """The excerpt of the rows that a test of the data is given."""
    seen = []
    infocap.diagnostics.DATA["of wrong calls"] = lambda excerpt: seen.append(excerpt) or []
    try:
        infocap.diagnose(u(), x(), basis())
    finally:
        del infocap.diagnostics.DATA["of wrong calls"]
    return seen[0]


def quadrature_arrays():
    nodes, weights = basis().quadrature(6)
    return {"x": basis()(nodes)[:, :2], "y": basis()(nodes), "weights": weights}


def station():
    return SimpleNamespace(components={"source": None})


def folder_of_results():
    folder = Path("results")
    folder.mkdir(exist_ok=True)
    result().save(folder / "device.nc")
    return folder


class Tuned:
    """An instrument with one setting."""

    gain = 1

    def set(self, gain):
        self.gain = gain

    def measure(self, u):
        return self.gain * np.concatenate([u, u**2])


def sweep_plan():
    return infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=16, seed=1, sweep={"gain": [1, 2]})


def measured_sweep():
    folder = Path("measured")
    if not folder.exists():
        infocap.lab.acquire_sweep(sweep_plan(), Tuned(), folder, progress=False)
    return folder


def saved_sweep():
    return swept().save("saved")


def saved_plan():
    plan().save("plan.toml")
    return "plan.toml"


# Wrong values


class Stranger:
    """An object of which infocap knows nothing."""

    def __repr__(self):
        return "<a stranger>"


class BadLength:
    """A table that says that it has rows, and has none."""

    shape = (100, 2)

    def __getitem__(self, rows):
        return np.zeros((0, 2))


def fifo():
    path = Path("pipe.csv")
    if not path.exists():
        os.mkfifo(path)
    return path


def folder():
    path = Path("folder.nc")
    path.mkdir(exist_ok=True)
    return path


def text_file():
    path = Path("text.nc")
    path.write_text("this is no data")
    return path


def tensor():
    import torch

    return torch.ones((128, 2), requires_grad=True)


WRONG_VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "-1": lambda: -1,
    "3": lambda: 3,
    "-0.5": lambda: -0.5,
    "1.5": lambda: 1.5,
    "1e-300": lambda: 1e-300,
    "1e300": lambda: 1e300,
    "NaN": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "10**30": lambda: 10**30,
    "-10**30": lambda: -(10**30),
    "10**400": lambda: 10**400,
    "complex": lambda: 1 + 2j,
    "decimal": lambda: decimal.Decimal("1.5"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "numpy NaN": lambda: np.float32("nan"),
    "numpy integer": lambda: np.int8(-100),
    "empty text": lambda: "",
    "text": lambda: "nonsense",
    "number as text": lambda: "12",
    "huge text": lambda: "name" * 3000,
    "NUL": lambda: "a\0b.nc",
    "two lines": lambda: "a\nb",
    "bytes": lambda: b"bytes",
    "date": lambda: date(2026, 1, 1),
    "datetime": lambda: datetime(2026, 1, 1),
    "numpy date": lambda: np.datetime64("2026-01-01"),
    "object": Stranger,
    "class": lambda: ValueError,
    "module": lambda: np,
    "function": lambda: lambda: None,
    "function of one": lambda: lambda value: value,
    "generator": lambda: (number for number in range(3)),
    "range": lambda: range(3),
    "empty list": list,
    "empty dict": dict,
    "empty tuple": tuple,
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1},
    "dict of objects": lambda: {1: Stranger(), None: []},
    "ragged list": lambda: [[1.0, 2.0], [3.0]],
    "list of None": lambda: [None, None],
    "list of texts": lambda: ["a", "b"],
    "list of objects": lambda: [Stranger(), Stranger()],
    "nested list": lambda: [[[[1.0]]]],
    "list of NaN": lambda: [float("nan")] * 3,
    "list of huge": lambda: [10**30, 10**400],
    "array of NaN": lambda: np.full((128, 2), np.nan),
    "array of inf": lambda: np.full((128, 2), np.inf),
    "array of huge": lambda: np.full((128, 2), 1e300),
    "array of zeros": lambda: np.zeros((128, 2)),
    "array of texts": lambda: np.full((128, 2), "a"),
    "array of objects": lambda: np.full((128, 2), None),
    "array of dates": lambda: np.full((128, 2), np.datetime64("2026-01-01")),
    "array of durations": lambda: np.full((128, 2), np.timedelta64(5, "s")),
    "complex array": lambda: np.full((128, 2), 1j),
    "boolean array": lambda: np.ones((128, 2), dtype=bool),
    "structured array": lambda: np.zeros(128, dtype=[("a", float), ("b", int)]),
    "masked array": lambda: np.ma.masked_all((128, 2)),
    "small integers": lambda: np.full((128, 2), -100, dtype=np.int8),
    "empty array": lambda: np.zeros((0, 2)),
    "array without columns": lambda: np.zeros((128, 0)),
    "number in an array": lambda: np.array(1.0),
    "vector": lambda: np.zeros(128),
    "short vector": lambda: np.zeros(5),
    "three dimensions": lambda: np.zeros((4, 3, 2)),
    "wide array": lambda: np.zeros((2, 128)),
    "endless array": lambda: np.broadcast_to(0.0, (10**9, 10**6)),
    "negative indices": lambda: np.full((6, 2), -3),
    "table of texts": lambda: pd.DataFrame({"a": ["x"] * 128, "b": ["y"] * 128}),
    "series": lambda: pd.Series([1.0, 2.0]),
    "sparse": lambda: scipy.sparse.eye_array(128),
    "table without rows": BadLength,
    "tensor with gradient": tensor,
    "result": result,
    "result of a sequence": sequence_result,
    "basis": basis,
    "basis of a sequence": delayed,
    "recording": recording,
    "plan": plan,
    "task": task,
    "family": infocap.basis.legendre,
    "random generator": lambda: np.random.default_rng(1),
    "folder": folder,
    "file of another kind": text_file,
    "no such file": lambda: Path("nowhere") / "file.nc",
    "pipe": fifo,
    "open file": lambda: io.StringIO("text"),
}  # fmt: skip


# Which calls there are


def public_functions():
    """Return every public function and method by name, and the class of each method."""
    functions = {}
    seen = set()
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in _public_names(module):
            member = getattr(module, name)
            if inspect.isfunction(member) and member not in seen:
                seen.add(member)
                functions[f"{module_name}.{name}"] = None
            elif inspect.isclass(member) and member not in seen:
                seen.add(member)
                if issubclass(member, Exception):
                    continue
                if _has_a_constructor(member):
                    functions[f"{module_name}.{name}"] = None
                for method, function in inspect.getmembers(member):
                    is_method = inspect.isfunction(function) or inspect.ismethod(function)
                    full_name = f"{name}.{method}"
                    is_ours = method[0] != "_" and full_name not in FOREIGN_METHODS
                    if is_method and is_ours and function not in seen:
                        seen.add(function)
                        functions[f"{module_name}.{full_name}"] = name
    return functions


def _public_names(module):
    """Return the names that a module lists, or those of the functions that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name for name, member in vars(module).items()
        if name[0] != "_" and getattr(member, "__module__", "") == module.__name__
    ]  # fmt: skip


def _has_a_constructor(member):
    """Whether a class does anything with what it is made of: plain records accept everything."""
    if getattr(member, "_is_protocol", False):
        return False
    code = getattr(inspect.unwrap(member.__init__), "__code__", None)
    was_written_by_dataclass = code is not None and code.co_filename == "<string>"
    return not was_written_by_dataclass or hasattr(member, "__post_init__")


def target_of(name):
    """Return what is called, a function that makes right arguments, and the names of parameters."""
    module, class_name, method = _split(name)
    if class_name is None:
        function = getattr(module, method)
        make = ARGUMENTS.get(name) or ARGUMENTS.get(f"infocap.{method}") or dict
        owner = None
    else:
        owner = INSTANCES[class_name]
        function = getattr(getattr(module, class_name), method)
        known = METHOD_ARGUMENTS.get(f"{class_name}.{method}")
        for base in ("Basis", "Family"):
            if known is None and class_name.endswith(base):
                known = METHOD_ARGUMENTS.get(f"{base}.{method}")
        make = known or dict
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in NOT_OURS
    ]
    return function, owner, make, parameters


def _split(name):
    """Return the module, the class or None, and the name of a function."""
    parts = name.split(".")
    for n_parts in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:n_parts])
        if module_name in PUBLIC_MODULES:
            rest = parts[n_parts:]
            break
    module = importlib.import_module(module_name)
    return (module, None, rest[0]) if len(rest) == 1 else (module, rest[0], rest[1])


def all_calls():
    """Return every call as (function, parameter, name of the wrong value), in a fixed order."""
    calls = []
    for name in sorted(public_functions()):
        *_, parameters = target_of(name)
        for parameter in parameters:
            for value in WRONG_VALUES:
                calls.append((name, parameter.name, value))
    return calls


def some_calls(n_calls, seed=0):
    """Return a random part of all calls, always the same."""
    calls = all_calls()
    return random.Random(seed).sample(calls, min(n_calls, len(calls)))


# Making calls


def make_call(name, parameter, value):
    """Make one call; with `value` None all arguments are right."""
    function, owner, make, parameters = target_of(name)
    arguments = make()
    if value is not None:
        arguments[parameter] = WRONG_VALUES[value]()
    positional = []
    instance = None
    if owner is not None:
        instance = arguments.pop("self", None) or owner()
    if owner is not None and not inspect.ismethod(function):
        is_static = isinstance(
            inspect.getattr_static(type(instance), function.__name__, None), staticmethod
        )
        positional = [] if is_static else [instance]
    keywords = {}
    takes_any_number = any(entry.kind == entry.VAR_POSITIONAL for entry in parameters)
    for entry in parameters:
        if entry.name not in arguments:
            continue
        argument = arguments[entry.name]
        if entry.kind == entry.VAR_POSITIONAL:
            positional += argument if isinstance(argument, list) else [argument]
        elif entry.kind == entry.VAR_KEYWORD:
            are_keywords = isinstance(argument, dict) and all(
                isinstance(key, str) for key in argument
            )
            keywords.update(argument if are_keywords else {entry.name: argument})
        elif takes_any_number and entry.kind == entry.POSITIONAL_OR_KEYWORD:
            positional.append(argument)
        else:
            keywords[entry.name] = argument
    answer = function(*positional, **keywords)
    if hasattr(answer, "__enter__") and not isinstance(answer, io.IOBase):
        with answer:
            pass
    elif inspect.isgenerator(answer):
        list(itertools.islice(answer, 100))
    repr(answer)


def outcome_of(name, parameter, value):
    """Make one call in a folder of its own, and say what became of it."""
    outcome = partial(Outcome, name, parameter, str(value))
    before = Path.cwd()
    started = time.process_time()
    kind, error, place, warned = "fine", "", "", []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.chdir(folder)
        try:
            make_call(name, parameter, value)
        except InfocapError as problem:
            kind = "refused"
            error = str(problem)
            if len(error) > MAX_MESSAGE or "\n" in error:
                kind = "unreadable"
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            kind = "raw"
            error = f"{type(problem).__name__}: {problem}"[:300]
            place = _place_of(problem)
            if isinstance(problem, TypeError) and "unexpected keyword argument" in error:
                kind = "refused"  # by Python itself
        finally:
            os.chdir(before)
        for warning in caught:
            if not issubclass(
                warning.category, infocap.errors.DataWarning | DeprecationWarning | ResourceWarning
            ):
                warned.append(f"{warning.category.__name__}: {warning.message}"[:200])
    with contextlib.suppress(Exception):
        import matplotlib.pyplot as plt

        plt.close("all")
    seconds = time.process_time() - started
    if seconds > MAX_PROCESSOR_S:
        kind = "slow"
    return outcome(kind, seconds, error, place, "; ".join(warned[:1]))


def _place_of(problem):
    """Return where in infocap an error came from."""
    places = [
        f"{Path(frame.filename).as_posix().rpartition('/infocap/')[2]}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        if "/infocap/" in frame.filename
    ]
    return " < ".join(reversed(places[-3:]))


def work():
    """Make the calls that come in, one line each, and print one line on each."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    sys.setrecursionlimit(1000)
    answers = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    calls = [json.loads(line) for line in sys.stdin]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    result(), sequence_result(), task(), plan(), fibre_system()
    importlib.import_module("matplotlib.pyplot")
    importlib.import_module("sklearn.linear_model")
    os.dup2(silence, 2)
    print("ready", file=answers, flush=True)
    for call in calls:
        print(json.dumps(asdict(outcome_of(*call))), file=answers, flush=True)


def make_calls(calls):
    """Make calls in other processes, and yield what became of each."""
    left = list(calls)
    while left:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        worker.stdin.write("".join(json.dumps(call) + "\n" for call in left).encode())
        worker.stdin.close()
        if worker.stdout.readline() != b"ready\n":
            raise RuntimeError("a process that makes calls could not begin; see above")
        while left:
            ready, _, _ = select.select([worker.stdout], [], [], MAX_WALL_S)
            line = worker.stdout.readline() if ready else b""
            call = left.pop(0)
            if line:
                yield Outcome(**json.loads(line))
                continue
            worker.kill()
            code = worker.wait()
            kind = "raw" if ready else "hang"
            yield Outcome(*map(str, call), kind, MAX_WALL_S, f"the process ended ({code})")
            break
        worker.stdout.close()
        worker.wait()


def main():
    """Be a process that makes calls, or make all calls and print what became of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", action="store_true")
    parser.add_argument("--some", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--right", action="store_true", help="make right calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output")
    options = parser.parse_args()
    if options.work:
        work()
        return
    calls = all_calls() if options.some is None else some_calls(options.some, options.seed)
    if options.right:
        calls = [(name, "", None) for name in sorted(public_functions())]
    calls = [call for call in calls if options.only in call[0]]
    counts = Counter()
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(options.output, "w")) if options.output else None
        for outcome in make_calls(calls):
            kind = outcome.kind
            counts[kind] += 1
            if outcome.warned:
                counts["foreign warning"] += 1
            if file:
                print(json.dumps(asdict(outcome)), file=file, flush=True)
            if kind not in ("fine", "refused") or (options.right and kind != "fine"):
                print(
                    kind,
                    outcome.function,
                    outcome.parameter,
                    outcome.value,
                    textwrap.shorten(outcome.error, 200),
                    outcome.place,
                    f"{outcome.seconds:.1f} s",
                    sep=" | ",
                    flush=True,
                )
    print(len(calls), dict(counts))


if __name__ == "__main__":
    main()
