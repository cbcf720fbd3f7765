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
