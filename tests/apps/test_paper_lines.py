"""The page "The paper, line by line" names things that exist."""

import re
from pathlib import Path

import infocap

ROOT = Path(infocap.__file__).parents[2]
PAGE = (ROOT / "docs" / "paper_lines.md").read_text(encoding="utf-8")


def test_every_test_on_the_page_exists():
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    names = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(names) > 12
    assert [name for name in names if f"def {name}(" not in code] == []
    files = set(re.findall(r"`(\w+/test_\w+\.py)`", PAGE))
    assert len(files) > 10
    assert [name for name in files if not (ROOT / "tests" / name).exists()] == []


def test_the_page_has_every_numbered_equation_proposition_step_and_figure_once():
    """Of the text: 88 equations, eight propositions, 14 and 12 lines of two algorithms, eight figures."""
    numbers = []
    for cell in re.findall(r"^\| ([\d, –]+) \|", PAGE, re.MULTILINE):
        for first, last in re.findall(r"\b(\d+)(?:–(\d+))?\b", cell):
            numbers += range(int(first), int(last or first) + 1)
    assert sorted(numbers) == list(range(1, 89))
    propositions = set(re.findall(r"Prop\. (\d\.\d)", PAGE))
    assert propositions == {"2.1", "2.2", "2.3", "4.1", "4.2", "5.1", "5.2", "5.3"}
    assert {int(number) for number in re.findall(r"\[figure (\d)\]", PAGE)} == set(range(1, 9))
    algorithms = PAGE[PAGE.index("Algorithm 1, step 1") :]
    second = algorithms.index("Algorithm 2, steps 1 to 6")
    for part, n_steps in ((algorithms[:second], 14), (algorithms[second:], 12)):
        steps = []
        for listed in re.findall(r"steps? ([\d, to]+):", part):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed):
                steps += range(int(first), int(last or first) + 1)
        assert sorted(steps) == list(range(1, n_steps + 1))


def test_every_function_on_the_page_exists():
    homes = {
        "result": infocap.CapacityResult,
        "basis": infocap.ProductBasis,
        "systems": infocap.systems,
    }
    homes |= {
        name: getattr(infocap, name)
        for name in ("theory", "tasks", "plot", "dimension", "photonics")
    }
    found = re.findall(
        r"`(result|basis|systems|theory|tasks|plot|dimension|photonics)\.(\w+)", PAGE
    )
    assert len(found) > 20
    fields = infocap.CapacityResult.__dataclass_fields__
    assert [
        name for home, name in found if not hasattr(homes[home], name) and name not in fields
    ] == []
