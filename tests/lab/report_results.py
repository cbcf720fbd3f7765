"""Results of every kind that the report must show, small enough to be made in a moment, and what a page says."""

import re
import warnings
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np

import infocap

HOSTILE = '</script><script>alert(1)</script ><!--<script><img src=x onerror="alert(2)"> & \' \u2028 \ud800 \x00 <!-- ]]>'
PLAN = {"n_samples": 512, "order": "random", "operator": HOSTILE}


def full(n_inputs=2, metadata=None):
    """A result with everything measured: repeats, noise, a reference that drifts, and a plan."""
    basis = infocap.product_basis("legendre", n_inputs, 6 if n_inputs < 4 else 3)
    system = infocap.systems.RandomFeatures(n_inputs, 12, noise=0.05, seed=5)
    u = infocap.draw(basis, 512, seed=1)
    reference = system(np.zeros((32, n_inputs)), seed=4)
    recording = infocap.Recording(
        u,
        system(u, seed=1),
        np.arange(512),
        metadata={"plan": PLAN, "seed": 2**70, "fingerprint": "9f2c41d0"}
        if metadata is None
        else metadata,
        repeats=system(u, seed=2),
        noise=system(np.full((60, n_inputs), 0.3), seed=3),
        reference=reference + np.linspace(0, 1, 32)[:, None],
        reference_time=np.linspace(0, 20_000.5, 32),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        return infocap.estimate(recording, basis=basis)


def simple(n_inputs, method="control-variate", constant=True, degree=3):
    """A result without metadata."""
    basis = infocap.product_basis("legendre", n_inputs, degree)
    system = infocap.systems.RandomFeatures(n_inputs, 12, noise=0.05, seed=5)
    return infocap.probe(system, basis, 512, seed=1, method=method, constant=constant)


def nothing():
    """No function above zero."""
    result = simple(2, "raw")
    return replace(result, capacity=np.zeros(len(result.basis)), total=0.0)


def many():
    """As many functions as ten inputs have at degree 8, with every column there is."""
    basis = infocap.product_basis("legendre", 10, 8)
    rng = np.random.default_rng(0)
    columns = {
        name: rng.random(len(basis)) for name in ("raw", "standard_error", "p_value", "unbiased")
    }
    capacity = np.where(columns["p_value"] < 0.03, columns["raw"] ** 8, 0.0)
    return infocap.CapacityResult(
        capacity=capacity,
        threshold=None,
        total=float(capacity.sum()),
        total_standard_error=1.3,
        n_samples=8192,
        n_readouts=599,
        maximum=600,
        rank=590,
        basis=basis,
        method="control-variate",
        **columns,
    )


def slipped():
    """Readouts that belong to the inputs of the row before, for a while: the page shows where."""
    basis = infocap.product_basis("legendre", 2, 6)
    u = infocap.draw(basis, 1024, seed=3)
    x = infocap.systems.RandomFeatures(2, 12, noise=1e-3, seed=5)(u, seed=7)
    x[400:700] = x[399:699].copy()
    with warnings.catch_warnings(action="ignore", category=infocap.errors.DataWarning):
        return infocap.estimate(u, x, basis)


def sequence():
    """A device with memory, each run of which was played twice."""
    basis = infocap.delayed_basis("legendre", max_delay={1: 12, 2: 4, 3: 2})
    network = infocap.systems.EchoState(12, radius=0.8, input_scale=0.4, bias=0.2, noise=1e-3)
    u = infocap.draw(basis, 1500, seed=1)
    with warnings.catch_warnings(action="ignore", category=infocap.errors.DataWarning):
        return infocap.estimate(
            u, network(u, seed=1), basis, washout=100, repeats=network(u, seed=2)
        )


KINDS = {
    "two inputs, everything measured": cache(full),
    "five inputs, everything measured": cache(lambda: full(5)),
    "one input": cache(lambda: simple(1)),
    "ten inputs": cache(lambda: simple(10, "threshold-richardson", degree=2)),
    "raw": cache(lambda: simple(2, "raw")),
    "algorithm 1": cache(lambda: simple(3, "threshold-richardson")),
    "no constant": cache(lambda: simple(2, constant=False)),
    "nothing found": cache(nothing),
    "43758 functions": cache(many),
    "a slip": cache(slipped),
    "a sequence": cache(sequence),
}


@cache
def page_of(kind):
    """The page of each of them, made once."""
    return infocap.report.page(KINDS[kind]())


class Elements(HTMLParser):
    """Every element that a page has, its attributes, and its texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def words(page):
    """What a reader reads."""
    return re.sub(r"\s+", " ", " ".join(Elements(page).texts).replace("\xa0", " "))
