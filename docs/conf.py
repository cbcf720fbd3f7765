"""How the site is built: `make docs` runs every page's code and stops at the first error or warning."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import infocap

HERE = Path(__file__).parent
PUBLIC = "basis systems systems.fibre estimators checks theory dimension tasks experiment plot report errors"
MODULES = ["infocap", *(f"infocap.{name}" for name in PUBLIC.split())]
sys.path.insert(0, str(HERE / "_extensions"))

project = "infocap"
author = "The infocap developers"
copyright = "the infocap developers"  # noqa: A001 (Sphinx's name for it)
version = release = infocap.__version__

extensions = [
    "myst_nb",
    "catalogue",
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
nb_execution_mode = "force"  # a cache would not notice that infocap's code has changed
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "warn"  # a page that means to show a warning says so in the cell

# Cells call `infocap` as a reader would, whether or not the environment of the build is activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def _homes() -> dict[str, dict[str, str]]:
    """For each public module the names that are documented in another one, nearer to the top."""
    homes: dict[str, dict[str, str]] = {}
    for module in MODULES:
        found = import_module(module)
        above = [other for other in MODULES if module.startswith(f"{other}.")]
        homes[module] = {
            name: f"{other}.{name}"
            for other in reversed(above)
            for name in getattr(found, "__all__", ())
            if getattr(import_module(other), name, None) is getattr(found, name)
        }
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
default_role = "autolink"  # a link where the name can be imported, otherwise just emphasis
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = True
smartquotes = False  # a prime is a prime
nitpick_ignore_regex = [
    (r"py:.*", r"(?!infocap).*"),
    (r"py:.*", r"infocap\.(typing|kernels|result\._target)\..*"),
]  # inner and others' names


def _public_bases(app: Any, name: str, thing: Any, options: Any, bases: list[type]) -> None:
    """Leave private classes, and those of modules for inner use, out of what a class is said to be based on."""
    inner = [
        base
        for base in bases
        if base.__name__.startswith("_") or base.__module__.startswith("infocap._")
    ]
    bases[:] = [base for base in bases if base not in inner] or [object]


def setup(app: Any) -> None:
    """Connect what this site does beside its extensions."""
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
