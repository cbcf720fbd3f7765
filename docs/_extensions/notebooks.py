"""Pages to download as executed notebooks: what only this site understands is changed to what Jupyter understands.

A page offers itself by the role `nb-download`. Sphinx writes the notebook when it reads the page, and copies it at the
end; in between, links to other pages become their text, and cells for a terminal become cells for bash.
"""

import json
import re
from pathlib import Path
from typing import Any

# A link to another page of the site, or to a place of this one.
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]+\)")
# A sentence with a role, such as the one that offers the download.
ROLE = re.compile(r"[^.\n]*\{nb-download\}`[^`]*`[^.\n]*\.\n?")


def plain(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook as Jupyter shows and runs it."""
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = LINK.sub(r"\1", ROLE.sub("", text))
        else:
            text = re.sub(r"\A%%console$", "%%bash", text, flags=re.MULTILINE)
        cell["source"] = text
    return notebook


def _convert(app: Any, env: Any) -> None:
    for file in Path(env.mystnb_config.output_folder).rglob("*.ipynb"):
        notebook = plain(json.loads(file.read_text(encoding="utf-8")))
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Convert the notebooks when all pages are read, before they are copied."""
    app.connect("env-updated", _convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
