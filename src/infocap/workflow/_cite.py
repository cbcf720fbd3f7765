"""cite: the methods section of a paper for one result, and what it refers to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from .._formatting import CANNOT_BE_TOLD, counted, decimals, with_error
from .._version import __version__
from ..errors import ParameterError
from ..estimators import DEFAULT_METHOD, METHODS
from ..result import CapacityResult

PAPER = "ramachandran2026ipc"
SOFTWARE = "infocap"
# What a design of the inputs refers to. SciPy scrambles Sobol points as Matoušek describes.
REFERENCES_OF_DESIGNS = {
    "sobol": ("sobol1967distribution", "matousek1998discrepancy"),
    "halton": ("halton1960efficiency",),
    "lhs": ("mckay1979comparison",),
}
NAMES_OF_DESIGNS = {
    "sobol": "scrambled Sobol points",
    "halton": "scrambled Halton points",
    "lhs": "a Latin hypercube",
    "random": "independent random inputs",
}
# The beginning of an entry in BibTeX.
ENTRY = re.compile(r"^@\w+\{(\w+),", re.MULTILINE)


@dataclass(frozen=True, repr=False)
class Citation:
    """What a paper says about a result, and what it cites.

    Attributes
    ----------
    methods
        A paragraph for the methods section, with the numbers of the result; empty without one.
    keys
        The names of the entries that it refers to.
    bibtex
        These entries, for a file that ends in ``.bib``.
    """

    methods: str
    keys: tuple[str, ...]
    bibtex: str

    def __repr__(self) -> str:
        if not self.methods:
            return self.bibtex
        return f"{self.methods}\n\n{self.bibtex}"


def cite(result: CapacityResult | None = None) -> Citation:
    """Return the methods paragraph of a paper for a result, and all that it cites as BibTeX.

    Parameters
    ----------
    result
        The result; without one there are the entries of the paper, the software and every method.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> citation = infocap.cite(infocap.probe(lambda u: u, basis, 64, seed=1))
    >>> citation.methods[:59]
    'Information processing capacities [ramachandran2026ipc] wer'
    >>> "ramachandran2026ipc" in citation.keys
    True
    """
    entries = _entries()
    if result is None:
        return Citation("", tuple(entries), "\n\n".join(entries.values()))
    if not isinstance(result, CapacityResult):
        raise ParameterError(
            f"{result!r} is not a CapacityResult; load_result(path) reads one from a file."
        )
    methods = " ".join(_sentences(result))
    cited = [key for key in entries if f"[{key}" in methods or f", {key}]" in methods]
    return Citation(methods, tuple(cited), "\n\n".join(entries[key] for key in cited))


@cache
def _entries() -> dict[str, str]:
    """Return every entry in BibTeX by its key."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    text = Template(text.strip()).safe_substitute(version=__version__)
    entries = {}
    for entry in text.split("\n\n"):
        match = ENTRY.match(entry)
        assert match is not None
        entries[match[1]] = entry
    return entries


def _sentences(result: CapacityResult) -> list[str]:
    """Return the sentences of the methods paragraph."""
    basis = result.basis
    # That of the recorded law is not in the table, and is told from zero in the same way.
    name = DEFAULT_METHOD if result.law == "recorded" else result.method
    references = ", ".join(METHODS[name].cites) if name in METHODS else ""
    refers_to = f" [{references}]" if references else ""
    delays = f" with delays up to {basis.memory}" if basis.memory else ""
    sentences = [
        f"Information processing capacities [{PAPER}] were estimated with infocap "
        f"{_version_of(result)} [{SOFTWARE}], method {result.method!r}{refers_to}, for "
        f"{len(basis)} {basis.family_name} functions of {counted(basis.n_inputs, 'input')}"
        f"{delays} up to degree {basis.max_degree}.",
        _samples(result),
    ]
    if result.recorded_law is not None:
        sentences.append(
            "Capacities are those under the law that the recorded inputs had, which need not be "
            "independent."
        )
    sentences.append(_total(result))
    if result.nothing_to_show:
        return sentences
    if basis.of_sequences and basis.memory and result.recorded_law is None:
        sentences.append(
            f"The memory capacity [jaeger2002short] is {result.memory_capacity_in_words}."
        )
    if result.noise_limited_total is not None:
        limit = with_error(
            result.noise_limited_total, result.noise_limited_standard_error, result.maximum
        )
        if limit != CANNOT_BE_TOLD:
            sentences.append(
                f"Repeated measurements show that noise allows {limit} over a complete basis "
                "[hu2023tackling]."
            )
    if result.factors is not None and result.factors.n_factors is not None:
        sentences.append(
            f"Factor analysis [malinowski1977determination] finds "
            f"{counted(result.factors.n_factors, 'factor')} above the noise."
        )
    return sentences


def _version_of(result: CapacityResult) -> str:
    """Return the version that estimated the result."""
    provenance = result.metadata.get("provenance")
    if isinstance(provenance, dict) and "infocap" in provenance:
        return str(provenance["infocap"])
    return __version__


def _samples(result: CapacityResult) -> str:
    """Return how many samples there are, how they were drawn, and of which readouts they are."""
    what = "steps of a sequence" if result.basis.of_sequences else "samples"
    sentence = f"They rest on {result.n_samples} {what} of {result.readouts_in_words}"
    design, seed = _design(result)
    if design in NAMES_OF_DESIGNS and not result.basis.of_sequences:
        sentence += f", at {NAMES_OF_DESIGNS[design]}"
        references = ", ".join(REFERENCES_OF_DESIGNS.get(design, ()))
        if references:
            sentence += f" [{references}]"
    if seed is not None:
        sentence += f" (seed {seed})"
    return f"{sentence}."


def _design(result: CapacityResult) -> tuple[str, Any]:
    """Return the design and the seed of the inputs, as far as the metadata know them."""
    provenance = result.metadata.get("provenance")
    if not isinstance(provenance, dict):
        return "", None
    plan = provenance.get("plan")
    if isinstance(plan, dict):
        return str(plan.get("design", "")), plan.get("seed")
    return str(provenance.get("design_name") or ""), provenance.get("seed")


def _total(result: CapacityResult) -> str:
    """Return the sentence about the total."""
    if result.nothing_to_show:
        return result.nothing_to_show
    claim = result.claim(result.total_in_words)
    if result.components is None:
        claim = claim.replace("total ", "The total capacity is ", 1)
    sentence = f"{claim[:1].upper()}{claim[1:]}"
    if result.unreliable:
        return f"{sentence}."
    error = result.total_standard_error
    if error is None:
        return f"{sentence}; this method gives no error."
    digits = decimals(error)
    low, high = result.total_interval()
    return (
        f"{sentence}, where ± is one standard error; {low:.{digits}f} to {high:.{digits}f} (95 %)."
    )
