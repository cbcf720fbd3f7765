"""The gallery of simulated devices, made by its example while the pages are read, beside them in the site."""

import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SCRIPT = Path(__file__).parents[2] / "examples" / "gallery.py"
running: list[subprocess.Popen] = []


def _begin(app: Sphinx) -> None:
    """Begin to measure; it takes half a minute, in which the pages are read."""
    if app.builder.format == "html":
        command = [sys.executable, SCRIPT, "--output", Path(app.outdir) / "gallery"]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))


def _end(app: Sphinx, problem: Exception | None) -> None:
    if any(one.wait() for one in running) and problem is None:
        raise ExtensionError(f"{SCRIPT.name} failed; its last lines say why.")


def setup(app: Sphinx) -> dict[str, bool]:
    """Before the pages are read, and after all are written."""
    app.connect("builder-inited", _begin)
    app.connect("build-finished", _end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
