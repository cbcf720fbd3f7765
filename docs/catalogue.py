"""The catalogue of causes: every check and warning of the code, with its cause and its cure, read from the code itself.

A message is written once, where it is raised, as "what was found: why; what to do.", or by `finding` with the next step
apart. This script finds these places in the syntax tree, puts … in the place of numbers and names, and writes the page
docs/howto/warnings.md.

`python docs/catalogue.py --write` writes it; without `--write` it is printed. `tests/lab/test_catalogue.py` fails where
the page is not that of the code.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "infocap"
PAGE = Path(__file__).with_name("howto") / "warnings.md"
HEAD = """<!-- Written by `python docs/catalogue.py --write`; do not edit. -->

# Every warning, its cause and its cure

infocap tests the data in each estimation and stores the findings in `result.checks`. Each says what was found, what it
costs where this is known, and what to do. Here `…` stands for the numbers and names of your data, and the words in front
are the cause, `check.found["cause"]`.

- A **warning** means that the answer is weaker than it looks. `infocap estimate --strict` then ends with exit code 1,
  and in Python it is a `DataWarning`.
- **The total is unreliable** if the warning concerns the total itself. It is then shown without an error bar, with the
  reason.
- A **note** says what was corrected or chosen, without harm. A finding that costs less than 0.02 of the total is a note,
  too.

This page is generated from the code. [Mistakes in data](mistakes.md) says how to go on from a warning, and
[the principle](../explained/principle.md) what lies behind the tests of the data.
"""
GAP = "…"
# Alternatives with fewer words, such as "delay 1" and "delays 1 to 3", are not worth an entry each.
FEW_WORDS = 5
# A message that was made elsewhere, as it is or with a word before it.
HANDED_ON = re.compile(rf"([a-z ]+: )?{GAP}|")
# Files that hand on messages of others, with a sentence more.
WITHOUT_MESSAGES = ("errors.py", "diagnostics/_finding.py", "diagnostics/_ranking.py")
# The order of the sections; a folder or file of the package that is not named here stops the build.
SECTIONS = {
    "Inputs and readouts": (
        "diagnostics/_inputs.py",
        "diagnostics/_holds.py",
        "diagnostics/_rounding.py",
        "diagnostics/_values.py",
        "diagnostics/_outliers.py",
        "diagnostics/_branches.py",
        "diagnostics/_exact.py",
    ),
    "Order and time": (
        "diagnostics/_order.py",
        "diagnostics/_slips.py",
        "diagnostics/_time.py",
        "diagnostics/_rows.py",
        "diagnostics/_alike.py",
        "diagnostics/_references.py",
    ),
    "Samples, readouts and repeats": (
        "diagnostics/_answer.py",
        "diagnostics/_checks.py",
        "dimension",
    ),
    "The estimate": (
        "estimators/_control_variate.py",
        "estimators/_rules.py",
        "estimators/_pipeline.py",
        "workflow/_calibrate.py",
        "workflow/_choose.py",
        "workflow/_diagnose.py",
        "workflow/_estimate.py",
        "workflow/_from_recording.py",
    ),
    "The law of the recorded inputs": ("diagnostics/_recorded_law.py",),
    "Sequences": (
        "diagnostics/_sequences.py",
        "estimators/_sequence.py",
        "workflow/_explore.py",
        "samples/_trace.py",
    ),
    "Plans, instruments and files": (
        "designs.py",
        "lab",
        "recording",
    ),
    "Comparisons and targets": ("workflow/_compare.py", "result"),
    "Learning tasks": ("tasks",),
    "The simulated fibre": ("photonics",),
}


@dataclass(frozen=True)
class Entry:
    """One message: where it is raised, its text with … for what varies, its kind, and what becomes of the total.

    One that is a note where it costs little counts as a warning.
    """

    file: str
    line: int
    text: str
    kind: str
    unreliable: bool
    next_step: str = ""
    cause: str = ""

    @property
    def found(self) -> str:
        """The part that says what was found."""
        if self.next_step:
            return self.text
        return self.text.rpartition("; ")[0] or self.text

    @property
    def cure(self) -> str:
        """The part that says what to do: the next step, or what comes after the last semicolon."""
        if self.next_step:
            return f"{self.next_step}."
        said, _, cure = self.text.rpartition("; ")
        return cure if said else ""

    def matches(self, message: str) -> bool:
        """Whether a message that was raised is this one."""
        pattern = _pattern(self.text)
        if self.next_step:
            step = self.next_step[0].upper() + self.next_step[1:]
            pattern += rf"( This costs .* of the total\.)? {_pattern(step)}\."
        pattern += "( The same is seen in .*)?( Also seen, .*)?"
        return re.fullmatch(pattern, message, flags=re.DOTALL) is not None


def _pattern(text: str) -> str:
    return ".*".join(map(re.escape, text.split(GAP)))


@dataclass(frozen=True)
class Place:
    """A place in a function: its line, and the blocks (body of an `if`, ...) that it lies in, the outermost first."""

    line: int
    blocks: tuple[tuple[int, str], ...]
    left: bool = False  # whether its block ends by leaving the function or the loop

    def always_after(self, other: "Place") -> bool:
        """Whether the other place was passed in any case before this one is reached."""
        return self.blocks[: len(other.blocks)] == other.blocks


class Texts:
    """What text expressions inside one function can be, with … for everything that only running the code tells."""

    def __init__(self, function: ast.FunctionDef, module: ast.Module) -> None:
        self.places: dict[int, Place] = {}
        self.assigned: dict[str, list[tuple[Place, ast.expr]]] = {}
        self._walk(function, ())
        self.methods = {
            node.name: node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)
        }
        self.module = module

    def _walk(self, parent: Any, blocks: tuple[tuple[int, str], ...]) -> None:
        for field in ("body", "orelse", "finalbody", "handlers"):
            here = (*blocks, (id(parent), field))
            statements = getattr(parent, field, [])
            left = bool(statements) and isinstance(
                statements[-1], ast.Raise | ast.Return | ast.Continue
            )
            for one in statements:
                place = Place(one.lineno, here, left)
                self.places.update((id(node), place) for node in ast.walk(one))
                if isinstance(one, ast.Assign):
                    for target in one.targets:
                        self._assign(target, one.value, place)
                elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                    longer = ast.BinOp(ast.Name(one.target.id), ast.Add(), one.value)
                    self._assign(one.target, longer, place)
                self._walk(one, here)

    def _assign(self, target: ast.expr, value: ast.expr, place: Place) -> None:
        if isinstance(target, ast.Name):
            self.assigned.setdefault(target.id, []).append((place, value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=True):
                self._assign(one, its, place)

    def at(self, call: ast.Call) -> list[str]:
        """Every text that the first argument of a call can be."""
        return self.of(call.args[0], self.places[id(call)])

    def of(self, node: ast.expr, place: Place) -> list[str]:
        """Every text that an expression can be."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(one) for one in product(*(self.of(part, place) for part in parts))]
            case ast.FormattedValue(value=inner, format_spec=None):
                return self.of(inner, place)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [
                    "".join(one) for one in product(self.of(left, place), self.of(right, place))
                ]
            case ast.IfExp(body=yes, orelse=no):
                return _or_gap([*self.of(yes, place), *self.of(no, place)])
            case ast.Dict(values=values):
                return [text for value in values for text in self.of(value, place)]
            case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
                return self._named(name, place)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if (
                name in self.methods
            ):
                method = self.methods[name]
                inside = Texts(method, self.module)
                ends = [
                    one
                    for one in ast.walk(method)
                    if isinstance(one, ast.Return) and one.value is not None
                ]
                return [
                    text
                    for end in ends
                    if end.value
                    for text in inside.of(end.value, inside.places[id(end)])
                ]
        return [GAP]

    def _named(self, name: str, place: Place) -> list[str]:
        """What a name can stand for: its last assignment that is passed in any case, and those in between."""
        texts: list[str] = []
        passed: set[tuple[tuple[int, str], ...]] = set()
        for there, value in sorted(self.assigned.get(name, ()), key=lambda one: -one[0].line):
            reaches = there.line < place.line and (place.always_after(there) or not there.left)
            if reaches and there.blocks not in passed:
                passed.add(there.blocks)
                texts += self.of(value, there)
                if place.always_after(there):
                    break
        return _or_gap(texts)


def _or_gap(texts: list[str]) -> list[str]:
    """Texts among which one is chosen when the code runs; a gap where they are only a few words, or not known."""
    words = max((len(re.findall(r"[A-Za-z]+", text)) for text in texts), default=0)
    return [GAP] if GAP in texts or (words < FEW_WORDS and len(texts) != 1) else texts


def entries() -> list[Entry]:
    """Every message of the package that is kept as a check or raised as a warning, in the order of the files."""
    return [one for file in sorted(SOURCE.rglob("*.py")) for one in _in_file(file)]


def _in_file(file: Path) -> Iterator[Entry]:
    module = ast.parse(file.read_text(encoding="utf-8"))
    name = file.relative_to(SOURCE).as_posix()
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    for function in functions if name not in WITHOUT_MESSAGES else ():
        texts = Texts(function, module)
        for call in _calls(function):
            yield from _of_call(name, call, texts)


def _of_call(file: str, call: ast.Call, texts: Texts) -> Iterator[Entry]:
    words = {word.arg: word.value for word in call.keywords}
    is_finding = isinstance(call.func, ast.Name) and call.func.id == "finding"
    kind = words.get("kind", call.args[1] if len(call.args) > 1 else ast.Constant("warning"))
    note = isinstance(kind, ast.Constant) and kind.value == "note"
    note |= isinstance(words.get("is_note"), ast.Constant)  # else it is a warning in some cases
    unreliable = "in_short" in words if is_finding else "unreliable" in words
    place = texts.places[id(call)]
    causes = _causes(words["cause"], texts) if "cause" in words else []
    steps = texts.of(words["next_step"], place) if is_finding else [""]
    for text in dict.fromkeys(map(_tidied, texts.at(call))):
        for step in dict.fromkeys(map(_tidied, steps)):
            if not HANDED_ON.fullmatch(text):
                yield Entry(
                    file=file,
                    line=call.lineno,
                    text=text + "." * is_finding,
                    kind="note" if note else "warning",
                    unreliable=unreliable,
                    next_step=step,
                    cause=" or ".join(dict.fromkeys(causes)),
                )


def _causes(node: ast.expr, texts: Texts) -> list[str]:
    """Every cause that an expression can be; none where only running the code tells."""
    match node:
        case ast.Constant(value=str(cause)):
            return [cause]
        case ast.IfExp(body=yes, orelse=no):
            return [*_causes(yes, texts), *_causes(no, texts)]
        case ast.Name(id=name):
            values = [value for _, value in texts.assigned.get(name, ())]
            return [cause for value in values for cause in _causes(value, texts)]
    return []


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Calls of Check, finding and warn in a function, not in the functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("Check", "finding", "warn")
        ):
            yield node
        if not isinstance(node, ast.FunctionDef):
            waiting.extend(ast.iter_child_nodes(node))


def _tidied(text: str) -> str:
    return re.sub(rf"{GAP}[{GAP} ,+%-]*{GAP}", GAP, text)


def section_of(entry: Entry) -> str:
    """The heading under which an entry is listed."""
    for title, places in SECTIONS.items():
        if any(entry.file == place or entry.file.startswith(f"{place}/") for place in places):
            return title
    raise LookupError(f"docs/catalogue.py has no section for src/infocap/{entry.file}.")


def written() -> str:
    """The page in Markdown: a list per section, of causes, of what is said and of what to do."""
    every, lines = entries(), [HEAD]
    for title in SECTIONS:
        lines += [f"## {title}", ""]
        cures: dict[str, list[str]] = {}
        for entry in (one for one in every if section_of(one) == title):
            said = f"- {_cause_in_words(entry)}{_sentence(entry.found.removesuffix('.'))}.{_mark(entry)}"
            cures.setdefault(said, []).extend([entry.cure] if entry.cure else [])
        for said, several in cures.items():
            cure = " Or: ".join(map(_sentence, dict.fromkeys(several)))
            lines += [
                said,
                "",
                f"  **What to do:** {cure}" if cure else "  Nothing has to be done.",
                "",
            ]
    return "\n".join(lines)


def _cause_in_words(entry: Entry) -> str:
    return f"**{entry.cause}:** " if entry.cause else ""


def _mark(entry: Entry) -> str:
    if entry.kind == "note":
        return " *(note)*"
    return " *(the total is unreliable)*" if entry.unreliable else ""


def _sentence(text: str) -> str:
    """A text with a capital letter where it begins with a word, and escaped for Markdown where it is not code."""
    text = text[:1].upper() + text[1:] if re.match(r"[a-z']+[ ,]", text) else text
    parts = text.split("`")
    return "`".join(
        re.sub(r"([<>\[\]_^~*])", r"\\\1", part) if k % 2 == 0 else part
        for k, part in enumerate(parts)
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(), encoding="utf-8")
    else:
        print(written())
