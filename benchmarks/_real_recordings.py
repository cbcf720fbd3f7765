"""Correct recordings that other people made, as a user would read and declare them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import infocap

# Where the recordings lie; they are not part of the repository. The variable names another folder.
DATA_VARIABLE = "INFOCAP_DATA"
DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
# Delays of the functions, by degree.
MAX_DELAY = {1: 20, 2: 6}
# Electrodes of the nanowire network that were read out: all but the driven one, 8, and ground, 17.
NANOWIRE_ELECTRODES = (*range(9, 17), *range(18, 24))
# Volts between which the inputs of the nanowire network were drawn. They were recorded with an
# error of up to 1 mV, so the domain is wider by as much.
NANOWIRE_DOMAIN = (0.399, 1.001)
# Causes that are true of these recordings: two were driven by inputs that depend on each other.
INDEPENDENT_INPUTS: tuple[str, ...] = ()
DEPENDENT_INPUTS = (
    "inputs are not independent",
    "inputs depend",
    "dependent inputs",
    "inputs in order",
    "order of inputs",
)
# The magnet was measured at 500 fields and 1601 frequencies, which is refused, and rightly: with
# fewer rows than readouts every function is fitted exactly.
FEWER_ROWS_THAN_READOUTS = ("refused", "few samples", "dependent")
# Every so many of its frequencies leave 51, for which 500 rows are enough.
FREQUENCY_STEP = 32


@dataclass(frozen=True)
class RealRecording:
    """One correct recording, how to read it, and the causes that are right to name."""

    name: str
    folder: str
    read: Callable[[Path], infocap.Recording]
    declare: Callable[[infocap.Recording], infocap.ProductBasis]
    right_words: tuple[str, ...]


def data_folder(given: str | None) -> Path:
    """Return the folder of the recordings: as given, by the variable, or beside the repository."""
    return Path(given or os.environ.get(DATA_VARIABLE) or DEFAULT_FOLDER)


def read_nanowire(folder: Path) -> infocap.Recording:
    file = next((folder / "nanowire").glob("011_*"))
    electrodes = ",".join(f"{number}_V*" for number in NANOWIRE_ELECTRODES)
    return infocap.read(file, u="8_V*", x=electrodes)


def read_motor(folder: Path) -> infocap.Recording:
    return infocap.read(folder / "motor_drive" / "faster.csv", u="u", x="y")


def read_magnet(folder: Path) -> infocap.Recording:
    """Read the spectra of all scans, in their order; the field of each is in its own file."""
    scans = folder / "magnet_scans" / "skyrmion"
    files = sorted(scans.glob("scan_*.txt"), key=_number_of_scan)
    lines = ["file,Field [mT]"]
    for file in files:
        with file.open(encoding="utf-8") as rows:
            heading = rows.readline().replace('"', "").strip().split(",")
            first_row = rows.readline().strip().split(",")
        lines.append(f"{file.name},{first_row[heading.index('Field')]}")
    with TemporaryDirectory() as temporary:
        table = Path(temporary) / "inputs.csv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return infocap.read(table, scans, u="Field*", x="Spectra")


def read_few_frequencies(folder: Path) -> infocap.Recording:
    """Read the spectra of all scans at every 32nd frequency."""
    recording = read_magnet(folder)
    return replace(
        recording,
        readouts=recording.readouts[:, ::FREQUENCY_STEP],
        channel=recording.channel[::FREQUENCY_STEP],
    )


def _number_of_scan(file: Path) -> int:
    return int(file.name.split("_")[1])


def uniform_volts(recording: infocap.Recording) -> infocap.ProductBasis:
    families = infocap.product_basis("legendre", 1, 1, domain=NANOWIRE_DOMAIN).families
    return infocap.delayed_basis(families, max_delay=MAX_DELAY)


def as_recorded(recording: infocap.Recording) -> infocap.ProductBasis:
    """Return functions that are orthonormal on the inputs that were recorded."""
    family = infocap.basis.samples(np.asarray(recording.inputs)[:, 0])
    return infocap.delayed_basis([family], max_delay=MAX_DELAY)


RECORDINGS = (
    RealRecording("nanowire 011", "nanowire", read_nanowire, uniform_volts, INDEPENDENT_INPUTS),
    RealRecording("motor drive", "motor_drive", read_motor, as_recorded, DEPENDENT_INPUTS),
    RealRecording(
        "magnet scans",
        "magnet_scans",
        read_magnet,
        as_recorded,
        (*DEPENDENT_INPUTS, *FEWER_ROWS_THAN_READOUTS),
    ),
    RealRecording(
        "magnet scans, every 32nd frequency",
        "magnet_scans",
        read_few_frequencies,
        as_recorded,
        DEPENDENT_INPUTS,
    ),
)


def in_cell(text: str) -> str:
    """Return text that stays in one cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())


def cause_of(check: infocap.errors.Check) -> str:
    """Return the cause of a check; of one without, up to four words before the first number."""
    cause = check.found.get("cause")
    if cause:
        return str(cause)
    beginning = re.split(r"\s*\d", str(check), maxsplit=1)[0] or str(check)
    return " ".join(beginning.split()[:4])


def repair_in_words(diagnosis: object) -> str:
    """Return what `repaired` would change, in its own words."""
    repaired = diagnosis.repaired()
    if repaired is None:
        return "nothing"
    return "; ".join(repair["done"] for repair in repaired.metadata["repairs"])


def real_recordings(folder: Path) -> list[str]:
    """Return the table of what is said about correct recordings."""
    lines = [
        "| recording | rows, readouts | kind | cause | a right word | sentence | repair |",
        "|---|---|---|---|---|---|---|",
    ]
    for real in RECORDINGS:
        if not (folder / real.folder).is_dir():
            lines.append(f"| {real.name} | left out: not in {folder} | | | | | |")
            continue
        recording = real.read(folder)
        diagnosis = infocap.diagnose(recording, basis=real.declare(recording))
        n, k = np.shape(recording.readouts)
        repair = in_cell(repair_in_words(diagnosis))
        name_and_size = f"| {real.name} | {n}, {k} |"
        if not diagnosis.checks:
            lines.append(f"{name_and_size} none | | | | {repair} |")
        for check in diagnosis.checks:
            cause = cause_of(check)
            is_right = "yes" if cause in real.right_words else "**no**"
            sentence = in_cell(str(check))
            lines.append(
                f"{name_and_size} {check.kind} | {cause} | {is_right} | {sentence} | {repair} |"
            )
    return lines
