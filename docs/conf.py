"""How the site is built: `make docs` runs every page's code and stops at the first error or warning."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import infocap

HERE = Path(__file__).parent
# The public packages, which the reference documents. tests/apps/test_docs.py compares this list with the package.
PUBLIC = (
    "basis",
    "systems",
    "photonics",
    "estimators",
    "diagnostics",
    "theory",
    "dimension",
    "tasks",
    "lab",
    "lab.adapters",
    "plot",
    "report",
    "errors",
)
MODULES = ["infocap", *(f"infocap.{name}" for name in PUBLIC)]
sys.path.insert(0, str(HERE / "_extensions"))

project = "infocap"
author = "The infocap developers"
copyright = "the infocap developers"  # noqa: A001 (Sphinx's name for it)
version = release = infocap.__version__

extensions = [
    "myst_nb",
    "console_cells",
    "gallery",
    "mathml",
    "notebooks",
    "repository_links",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]

# Text: Markdown with formulas between dollars, and cells that are run.
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # a cache would not notice a change of infocap's code
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "warn"  # a cell that shows a warning on purpose sets `output_stderr`

# Cells find the command `infocap` even where the environment of the build is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def _homes() -> dict[str, dict[str, str]]:
    """Return, for each public module, the names that a module above it documents, and where."""
    homes: dict[str, dict[str, str]] = {}
    for module_name in MODULES:
        module = import_module(module_name)
        homes[module_name] = {}
        # The nearest module first, so that the one nearest to the top decides.
        parents = [parent for parent in MODULES if module_name.startswith(f"{parent}.")]
        for parent_name in reversed(parents):
            parent = import_module(parent_name)
            for name in getattr(module, "__all__", ()):
                if getattr(parent, name, None) is getattr(module, name):
                    homes[module_name][name] = f"{parent_name}.{name}"
    return homes


# Reference: from the docstrings.
autosummary_context = {"homes": _homes()}
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
default_role = "autolink"  # a link if the name can be imported, else emphasis
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = True
smartquotes = False  # a prime is a prime
nitpick_ignore_regex = [
    (r"py:.*", r"(?!infocap).*"),
    (
        r"py:.*",
        r"infocap\.(typing|kernels|samples|workflow|result\._(target|analyses|recorded_law))\..*",
    ),
    (r"py:.*", r"infocap\.lab\.experiment\._(measurement|status)\..*"),
    (r"py:.*", r"infocap\.theory\._forecast\..*"),
    (r"py:.*", r"infocap\.diagnostics\._excerpt\..*"),
    (r"py:.*", r"infocap\.estimators\._groups\..*"),
]  # names of inner modules, and of other packages


def _public_bases(app: Any, name: str, thing: Any, options: Any, bases: list[type]) -> None:
    """Leave private classes, and classes of private modules, out of the bases of a documented class."""
    public = [
        base
        for base in bases
        if not base.__name__.startswith("_") and not base.__module__.startswith("infocap._")
    ]
    bases[:] = public or [object]


def setup(app: Any) -> None:
    """Connect the handlers of this site to Sphinx."""
    app.connect("autodoc-process-bases", _public_bases)


# Look.
html_theme = "pydata_sphinx_theme"
html_title = "infocap"
html_static_path = ["_static"]
html_css_files = ["infocap.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "start", "architecture", "paper")}
copybutton_selector = "div.cell_input pre, div.highlight-python pre, div.highlight-console pre"
