"""The page of all warnings is made from the code: none is missing, each has a cure, and each is what is really said."""

import ast
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from faulty_data import BASIS, MISTAKES, recorded

import infocap
from infocap.diagnostics._ranking import RANKING

ROOT = Path(infocap.__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import catalogue  # noqa: E402 (it is no part of the package)

ENTRIES = catalogue.entries()
# Files with a call of Check or warn that hands on a message made elsewhere, or says what was chosen.
HANDED_ON = {
    "_processes.py",
    "diagnostics/_checks.py",
    "diagnostics/_finding.py",
    "diagnostics/_ranking.py",
    "diagnostics/_references.py",
    "dimension/_repeats.py",
    "dimension/_spectra.py",
    "estimators/_pipeline.py",
    "lab/cli/_terminal.py",
    "lab/files/_saved_recording.py",
    "lab/files/_tables.py",
    "recording/_recording.py",
    "tasks/_demand.py",
    "workflow/_compare.py",
    "workflow/_diagnose.py",
    "workflow/_explore.py",
    "workflow/_from_arrays.py",
    "workflow/_from_recording.py",
}


def entries_for(message):
    return [one for one in ENTRIES if one.matches(message)]


def test_every_warning_says_what_to_do():
    assert len(ENTRIES) > 80
    assert [one.text for one in ENTRIES if one.kind == "warning" and not one.cure] == []


def test_every_message_is_one_sentence_with_words_around_its_gaps():
    for one in ENTRIES:
        assert one.text.endswith("."), one.text
        assert len(re.findall(r"[a-z]{2,}", one.text)) >= 4, one.text
        assert "?" not in one.text, one.text


def test_every_message_has_a_place_in_the_catalogue():
    text = catalogue.written()
    for one in ENTRIES:
        assert catalogue.section_of(one) in catalogue.SECTIONS
        assert catalogue._sentence(one.cure) in text
    assert 80 < text.count("\n- ") <= len(ENTRIES)
    assert {title for title in catalogue.SECTIONS if f"## {title}\n\n## " in text} == set()


def test_the_committed_page_is_that_of_the_code():
    page = catalogue.PAGE.read_text(encoding="utf-8")
    assert page == catalogue.written(), "run python docs/catalogue.py --write"


def test_every_cause_of_the_data_is_in_the_catalogue():
    causes = {cause for one in ENTRIES for cause in one.cause.split(" or ")}
    assert set(RANKING) - causes <= {"units", "wrapped"}  # which only running the code tells


def calls(kind):
    """Every call of a function by its bare name: the file it is in, and the call."""
    for file in sorted(catalogue.SOURCE.rglob("*.py")):
        name = file.relative_to(catalogue.SOURCE).as_posix()
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and name != "errors.py":
                for node in ast.walk(function):
                    if (
                        isinstance(node, ast.Call)
                        and isinstance(node.func, ast.Name)
                        and node.func.id in kind
                    ):
                        yield name, node


def test_a_message_that_is_not_in_the_catalogue_is_one_that_is_handed_on():
    listed = {(one.file, one.line) for one in ENTRIES}
    unlisted = {
        file
        for file, call in calls(("Check", "finding", "warn"))
        if (file, call.lineno) not in listed
    }
    assert unlisted <= HANDED_ON


def test_no_list_of_checks_takes_a_bare_text():
    bare = []
    for file in sorted(catalogue.SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="checks" | "messages"), attr="append"),
                    args=[text],
                ):
                    bare += [file.name] if isinstance(text, ast.JoinedStr | ast.Constant) else []
    assert bare == []


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_said_about_a_mistake_is_in_the_catalogue(mistake):
    for check in infocap.diagnose(recorded(*MISTAKES[mistake]()), basis=BASIS).checks:
        (entry,) = entries_for(check)
        assert (entry.kind, entry.unreliable) == (check.kind, "unreliable" in check.found)


def test_what_estimate_says_is_in_the_catalogue():
    basis = infocap.product_basis("legendre", 2, 8)
    u = infocap.draw(basis, 64, design="random", seed=1)
    x = infocap.systems.RandomFeatures(2, 20, noise=0.1)(u, seed=1)
    x = np.column_stack([x, x[:, 0] + x[:, 1], np.zeros(64)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        found = [
            infocap.estimate(u, x, basis, method=method).checks
            for method in infocap.estimators.METHODS
        ]
    said = {check for checks in found for check in checks}
    assert len(said) > 5
    assert [check for check in said if not entries_for(check)] == []


def test_a_text_is_followed_through_names_and_branches():
    module = ast.parse(
        "def f(n, few):\n"
        "    said = f'only {n} rows'\n"
        "    cure = 'take more of them on another day'\n"
        "    if few:\n"
        "        cure = f'take {2 * n} or more, if there is time'\n"
        "    warn(f'{said}; {cure}.')\n"
        "    said = 'something else altogether'\n"
    )
    (function,) = module.body
    call = next(
        node for node in ast.walk(function) if isinstance(node, ast.Call) and node.func.id == "warn"
    )
    assert sorted(catalogue.Texts(function, module).at(call)) == [
        "only … rows; take more of them on another day.",
        "only … rows; take … or more, if there is time.",
    ]
