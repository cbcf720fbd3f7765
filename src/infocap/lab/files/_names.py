"""Names in other people's files: usual names, names that the user means, and units."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from ..._formatting import join_names
from ..._validation import MAX_NAMES_IN_MESSAGE
from ...errors import DataError

INPUT_NAMES = ("u", "inputs", "input")
READOUT_NAMES = ("x", "readouts", "readout", "outputs", "output")
# Our own name first, then that of other people's files.
INDEX_NAMES = ("design_index", "index")
# Names of a column that numbers the samples.
SAMPLE_NAMES = ("shot", "sample", "measurement", "trial", "scan", "frame")
# Names that do so where a sample has several rows; elsewhere they may be readouts.
SAMPLE_NAMES_OF_LONG_TABLES = (
    *SAMPLE_NAMES,
    *INDEX_NAMES,
    "step",
    "row",
    "point",
    "run",
    "n",
    "id",
)
# Names under which instruments and programs write the time of a row.
TIME_NAMES = (
    "time",
    "timestamp",
    "time stamp",
    "datetime",
    "date/time",
    "uhrzeit",
    "zeit",
    "x_value",  # LabVIEW
)
# Names that may stand for a time, and do where the values only grow: t, t_s, time_ms, elapsed_s,
# sampling_time.
SHORT_TIME_NAME = re.compile(
    r"(?:t|time|elapsed|elapsed[ _]time|sampling[ _]time|run[ _]?time|uptime|clock|seconds)"
    r"(?:[ _](?:s|sec|secs|seconds|ms|us|µs|ns|min|h))?"
)
# Names of a column that holds the day, where another one holds the time of day.
DATE_NAMES = ("date", "datum")
SECONDS = ("s", "sec", "second", "seconds")

# Inputs with numbers: u1, u_1, u[0], input 1, u1 [V], and u1: Voltage A [V] in our own tables.
NUMBERED_INPUT = re.compile(
    r"(?:u|inputs?)[ _]*"  # the word
    r"[\[(]?(?P<number>\d{1,6})[\])]?"  # its number, perhaps in brackets
    r"(?::\s*(?P<name>.+)|(?P<unit>\s+[\[(].+))?",  # a name after a colon, or a unit in brackets
    re.IGNORECASE,
)
# The unit in the last brackets of a name, such as Voltage A [V].
UNIT_IN_NAME = re.compile(r"[\[(]([^\[\]()]*)[\])]\s*$")
# The unit behind a slash or a comma, such as U / V.
UNIT_BEHIND_SIGN = re.compile(r"\s*[/,]\s*([A-Za-zµμΩ°%][^/,\s]*)\s*$")
PREFIXED = r"V|A|W|Hz|s|m|K|J|F|H|T|Pa|N|g|eV|rad|Ohm|Ω|bar"
SYMBOL = rf"[fpnuµμmcdkMGT]?(?:{PREFIXED})(?:\^?-?\d)?"
# A unit of one symbol, with its prefix apart.
SYMBOL_WITH_PREFIX = re.compile(rf"(?P<prefix>[fpnuµμmcdkMGT]?)(?P<symbol>{PREFIXED})")
SI_PREFIXES = {
    "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "c": 1e-2,
    "d": 1e-1, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
}  # fmt: skip
# What looks like a unit, in brackets or not: symbols with powers and fractions, and a few words.
UNIT = re.compile(
    rf"[\[(]?\s*(?:{SYMBOL}(?:[/·* ]{SYMBOL})*|%|°C?|dBm?|(?i:deg(?:rees?)?|a\.?\s?u\.?|arb\.?|"
    r"counts?|cts|volts?|amps?|amperes?|sec(?:onds?)?|kelvin|hertz|watts?|bits?|-|1))\s*[\])]?"
)

# How alike two names must be for the second to be proposed in place of the first (difflib's ratio).
MIN_NAME_SIMILARITY = 0.5


class NotInFileError(DataError):
    """What is looked for is not in this file; another file may hold it."""


def plain_name(name: str) -> str:
    """Return a name in small letters, without the unit behind it.

    >>> plain_name("Time [s]"), plain_name("Time / s")
    ('time', 'time')
    """
    match = UNIT_BEHIND_SIGN.search(name)
    if match and UNIT.fullmatch(match[1].strip()):
        name = name[: match.start()]
    return UNIT_IN_NAME.sub("", name).strip().lower()


def is_name_of_time(name: str) -> bool:
    """Return whether a name may stand for a time.

    >>> is_name_of_time("Time [s]"), is_name_of_time("elapsed_ms"), is_name_of_time("trigger")
    (True, True, False)
    """
    plain = plain_name(name)
    return plain in TIME_NAMES or SHORT_TIME_NAME.fullmatch(plain) is not None


def unit_of(name: str) -> str:
    """Return the unit in the last brackets of a name, or behind a slash or a comma.

    >>> unit_of("Voltage A [V]"), unit_of("power (µW)"), unit_of("sensor (left)"), unit_of("I / mA")
    ('V', 'µW', '', 'mA')
    """
    match = UNIT_IN_NAME.search(name) or UNIT_BEHIND_SIGN.search(name)
    text = match[1].strip() if match else ""
    return text if UNIT.fullmatch(text) else ""


def with_unit(name: str, unit: str) -> str:
    """Return a name with its unit in brackets, unless the unit is none or the name has one.

    >>> with_unit("Voltage A", "V"), with_unit("power (µW)", "W"), with_unit("operator", "Ada")
    ('Voltage A [V]', 'power (µW)', 'operator')
    """
    is_unit = unit and UNIT.fullmatch(unit)
    if not is_unit or UNIT_IN_NAME.search(name) or unit_of(name):
        return name
    return f"{name} [{unit.strip('[]() ')}]"


def common_unit(units: Sequence[str]) -> str:
    """Return the unit that all columns have, or an empty text where they differ."""
    different = set(units)
    return different.pop() if len(different) == 1 else ""


def find_usual(names: Sequence[str], usual: Sequence[str]) -> list[int]:
    """Find the first usual name that is there: its position, as a list of at most one.

    >>> find_usual(["Spectra", "Outputs"], READOUT_NAMES)
    [1]
    """
    plain = [plain_name(name) for name in names]
    for name in usual:
        if name in plain:
            return [plain.index(name)]
    return []


def find_numbered_inputs(names: Sequence[str]) -> list[int]:
    """Find the positions of names such as u1, u2, ..., in the order of their numbers.

    >>> find_numbered_inputs(["x", "u2", "u1 [V]"])
    [2, 1]
    """
    numbers = {}
    for position, name in enumerate(names):
        match = NUMBERED_INPUT.fullmatch(name.strip())
        if match:
            numbers[position] = int(match["number"])
    return sorted(numbers, key=lambda position: (numbers[position], position))


def find_requested(
    path: Path,
    names: Sequence[str],
    requested: str,
    *,
    role: str,
    content: str | None = None,
) -> list[int]:
    """Find the positions of the names that the user asked for by ``u=`` or ``x=``, the `role`.

    These are one name, or names and patterns such as ``u*`` with commas between. A name that is not
    there is answered with what the file holds and the nearest name.
    """
    words = [requested] if requested in names else [word.strip() for word in requested.split(",")]
    positions: dict[int, None] = {}  # in the order of the words, each once
    for word in words:
        matches = _find_word(names, word)
        is_column_number = content is None and word.isdecimal()
        if not matches and is_column_number and 1 <= int(word) <= len(names):
            matches = [int(word) - 1]  # names in letters that cannot be typed, for example
        if not matches:
            content = content or join_names(list(names), MAX_NAMES_IN_MESSAGE)
            raise NotInFileError(
                f"{role}={word!r} is not in {path}; it holds {content}{_nearest(word, names)}."
            )
        positions |= dict.fromkeys(matches)
    return list(positions)


def _find_word(names: Sequence[str], word: str) -> list[int]:
    """Find a name as written, with dots for slashes, as a pattern, or without its unit."""
    dotted = word.replace("/", ".")
    lower = word.lower()
    # Brackets mostly are those of units, as in '*_V[V]'; else of characters, as in 'u[12]'.
    with_units = word.replace("[", "[[]")
    rules = (
        lambda name: name == word,
        lambda name: name.replace("/", ".") == dotted,
        lambda name: fnmatchcase(name, with_units),
        lambda name: fnmatchcase(name, word),
        lambda name: lower in (name.lower(), plain_name(name)),
    )
    for rule in rules:
        matches = [position for position, name in enumerate(names) if rule(name)]
        if matches:
            return matches
    return _find_in_one_group(names, word)


def _find_in_one_group(names: Sequence[str], word: str) -> list[int]:
    """Find a name or a pattern among names without their groups, such as run1/spectra.

    Where it is in several groups, the user has to say which.
    """
    matches = []
    groups = set()
    for position, name in enumerate(names):
        group, _, last = name.rpartition("/")
        if group and fnmatchcase(last, word):
            matches.append(position)
            groups.add(group)
    return matches if len(groups) == 1 else []


def _nearest(word: str, names: Sequence[str]) -> str:
    """Propose the name that is most like a word, if any is."""
    by_plain_name = {plain_name(name): name for name in names}
    by_plain_name |= {name.lower(): name for name in names}
    similar = get_close_matches(word.lower(), by_plain_name, n=1, cutoff=MIN_NAME_SIMILARITY)
    return f"; the nearest name is {by_plain_name[similar[0]]!r}" if similar else ""


def names_of_inputs(columns: Sequence[str]) -> tuple[str, ...]:
    """Return what inputs are called, from their columns; nothing for u1, u2, ....

    >>> names_of_inputs(["u1: Voltage A [V]", "u2"]), names_of_inputs(["u1", "u2"])
    (('Voltage A [V]', 'u2'), ())
    """
    names = []
    for column in columns:
        match = NUMBERED_INPUT.fullmatch(column.strip())
        if match is None or match["unit"]:
            names.append(column)
        else:
            names.append(match["name"] or "")
    if not any(names):
        return ()
    return tuple(name or f"u{number}" for number, name in enumerate(names, start=1))
