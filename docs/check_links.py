"""Every link of the built site leads somewhere: python docs/check_links.py build/docs. Needs no network.

Sphinx has looked at the links in the text. This looks at what a browser gets: menus, pictures, places within pages.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup


@cache
def parsed(page: Path) -> BeautifulSoup:
    """The page, read once."""
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def places(page: Path) -> set[str]:
    """What a link to this page may name after the #."""
    return {
        str(tag.get(name))
        for tag in parsed(page).find_all(True)
        for name in ("id", "name")
        if tag.get(name)
    }


def links(page: Path) -> Iterator[str]:
    """Where the page leads, other sites left out."""
    for tag in parsed(page).find_all(["a", "img", "link", "script", "source"]):
        link = tag.get("href") or tag.get("src")
        if link and not urlsplit(link).scheme and not link.startswith("//"):
            yield link


def broken(site: Path) -> Iterator[str]:
    """One line for every link that leads nowhere."""
    for page in sorted(set(site.rglob("*.html")) - set((site / "_static").rglob("*"))):
        for link in dict.fromkeys(links(page)):
            parts = urlsplit(link)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{page.relative_to(site)}: {link}: there is no such file"
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in places(target)
            ):
                yield f"{page.relative_to(site)}: {link}: there is no such place in the page"


if __name__ == "__main__":
    found = list(broken(Path(sys.argv[1])))
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(bool(found))
