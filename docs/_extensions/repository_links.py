"""Links that lead to Markdown files elsewhere in the repository lead to the site's own pages of them."""

import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = {
    "README.md": "/index.md",
    "CONTRIBUTING.md": "/contributing.md",
    "CHANGELOG.md": "/changelog.md",
    "benchmarks/RESULTS.md": "/benchmarks.md",
    "paper/README.md": "/paper.md",
}
OUTSIDE = re.compile(rf"\]\((?:\.\./)*({'|'.join(map(re.escape, PAGES))})(?=[)#])")
INSIDE = re.compile(r"\]\((?:\.\./)*docs/")  # from files above docs/ that are included here


def _rewrite(text: list[str]) -> None:
    text[0] = INSIDE.sub("](/", OUTSIDE.sub(lambda link: f"]({PAGES[link[1]]}", text[0]))


def _on_source(app: Sphinx, page: str, text: list[str]) -> None:
    _rewrite(text)


def _on_include(app: Sphinx, path: Path, page: str, text: list[str]) -> None:
    _rewrite(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at every page as it is read, and at every file that a page includes."""
    app.connect("source-read", _on_source)
    app.connect("include-read", _on_include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
