"""Cells that begin with %%console run in a shell when the site is built, and read as a terminal session there."""

import os
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

MAGIC = "%%console\n"
SETTINGS = """
c.InlineBackend.figure_formats = ["svg"]
c.HistoryManager.enabled = False
c.IPKernelApp.log_level = "ERROR"
"""
STARTUP = """
import subprocess

from IPython.core.magic import register_cell_magic


@register_cell_magic
def console(line, cell):
    done = subprocess.run(["bash", "-ec", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}")
"""


def _profile(app: Sphinx) -> None:
    """Give the kernels a profile of their own: the magic, figures as SVG, nothing of the builder's settings."""
    folder = Path(tempfile.mkdtemp(prefix="infocap-docs-"))
    startup = folder / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "console.py").write_text(STARTUP, encoding="utf-8")
    (startup.parent / "ipython_kernel_config.py").write_text(SETTINGS, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(folder)


def _as_terminal(app: Sphinx, page: nodes.document) -> None:
    """Show the commands without the magic that ran them."""
    for block in page.findall(nodes.literal_block):
        text = block.astext()
        if text.startswith(MAGIC):
            text = text.removeprefix(MAGIC)
            shown = nodes.literal_block(text, text, language="bash", classes=["terminal"])
            block.replace_self(shown)


def setup(app: Sphinx) -> dict[str, bool]:
    """Before the pages are read, and after each has been."""
    app.connect("builder-inited", _profile)
    app.connect("doctree-read", _as_terminal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
