"""How the command line speaks: warnings shown once, sentences wrapped, arguments named as options."""

from __future__ import annotations

import re
import shutil
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from ..errors import DataWarning, InfocapError

WIDEST = 100  # characters; longer lines are hard to read
NUMBERS = {"2*np.pi": "6.283185307179586", "-np.pi": "-3.141592653589793", "np.pi": "3.141592653589793"}
WORDS = (
    (r"pass its true interval as domain= to product_basis", "give its true interval with --domain LOW HIGH"),
    (r"use the family of the true distribution, or basis\.samples\(.*?\)", "name the true one with --family"),
    (r"max_interactions= or", "--max-interactions or"),
    (r"lower max_degree", "lower --degree"),
    (r", or pass bound='data' for the bound mean\(leverage·y²\)/N", ""),
    (r"\b(nan|complex_as|index_set|method)='([\w-]+)'", r"--\1 \2"),
    (r"^(error|unexplained|u|x|memory|rows)=", r"--\1 "),
    (r"^n_(readouts|inputs|samples)=", r"--\1 "),
    (r"^max_degree=", "--degree "),
    (r"^output suffix=", "--output with the suffix "),
    (r"the family '(\w+)'", r"--family \1"),
    (r"--complex_as", "--complex-as"),
    (r"--index_set", "--index-set"),
    (r"\btotal=(\d+)", r"--total \1"),
    (r"\bstart=", "--start"),
)  # fmt: skip


@contextmanager
def in_options(absent: str = "") -> Iterator[None]:
    """Errors name the options of the command line in place of the arguments of Python, but not what it lacks."""
    try:
        yield
    except InfocapError as problem:
        raise type(problem)(as_options(str(problem)).replace(absent, "")) from None


def as_options(message: str) -> str:
    """A sentence of the library, with its arguments named as options."""
    message = re.sub(r"pass domain=\(([^,()]+), ([^,()]+)\) to product_basis", _domain, message)
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return message


def _domain(found: re.Match[str]) -> str:
    low, high = (NUMBERS.get(edge, edge) for edge in found.groups())
    return f"pass --domain {low} {high}"


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """The sentences of the DataWarnings raised meanwhile; nothing is printed by Python itself."""
    kept: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield kept
    for one in caught:
        if not issubclass(one.category, DataWarning):
            click.echo(f"infocap: {one.message}", err=True)
        elif str(one.message) not in kept:
            kept.append(str(one.message))


def say_checks(warned: Sequence[str], notes: Sequence[str]) -> None:
    """Each check as a paragraph of its own, warnings first."""
    for mark, sentences in (("warning", warned), ("note", notes)):
        for sentence in sentences:
            click.echo(wrapped(f"{mark}: {as_options(sentence)}"))


def wrapped(text: str) -> str:
    """A paragraph no wider than the terminal, its later lines indented."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return textwrap.fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
