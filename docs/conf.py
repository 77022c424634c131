"""The site: Sphinx, offline; every example of the gallery is executed and every warning is an error."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pzos  # noqa: E402

logging.getLogger("pzos").setLevel(logging.ERROR)  # a package of the theme prints every line that is logged

project = "pzos"
author = "the pzos developers"
copyright = "the pzos developers"
version = release = pzos.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "measured.md", "related_table.md", "suite_table.md"]
html_theme = "furo"
html_title = "pzos"
html_static_path = ["_static"]
html_copy_source = False
html_css_files = ["pzos.css"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!pzos\.).*"),  # types of numpy and of the standard library have no pages here
    ("py:.*", r"pzos\..*\.(_\w+(\..*)?|[A-Z])"),  # private modules and bases, type variables
    ("py:.*", r"pzos\.(methods\.(response_model|trust_region)|networks\.equilibrium)\..*"),  # the inside of a method
]

#: The gallery in the order it is best read; what is not named comes last.
_GALLERY = (
    "pzos_against_zos", "memory", "structure", "imperfect_model", "noisy_follower", "failing_follower",
    "goldstein_one", "goldstein_two", "certificate", "cournot", "variational_inequality", "routing_tolls",
    "city_tolls", "simulator", "power_bids", "simulated_city", "intervention_budget", "day_ahead_bids",
    "project_tasks", "bilevel_classic", "bridge_tolls", "sumo_tolls",
)  # fmt: skip
#: Simulators that `make docs` does not install: an example that imports one is shown, and run where it is there.
_SIMULATORS = re.compile(r"^(?:import|from) (pandapower|pypsa|uxsim|unsim|libsumo|simopt|starsim|mesa)\b", re.MULTILINE)


def reading_order(file: str) -> int:
    name = file.removeprefix("plot_").removesuffix(".py")
    return _GALLERY.index(name) if name in _GALLERY else len(_GALLERY)


def runs_here(example: Path) -> bool:
    needed = _SIMULATORS.findall(example.read_text(encoding="utf-8"))
    return all(importlib.util.find_spec(name) for name in needed)


sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "|".join(
        re.escape(example.name) for example in sorted((ROOT / "examples").glob("plot_*.py")) if runs_here(example)
    ),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "within_subsection_order": reading_order,
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 3600,
}
suppress_warnings = ["config.cache", "ref.python"]  # two classes may have one name in different modules

_LITERAL = re.compile(r"(``.*?``)")
_FORMULA = re.compile(r" {4,}\S")


def as_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make reStructuredText of docstrings that read well as text: indented formulas are literal, |g| is a norm."""
    rst: list[str] = []
    literal = False
    for number, line in enumerate(lines):
        before = [other for other in lines[:number] if other.strip()]
        if _FORMULA.match(line) and not literal and number and not lines[number - 1].strip():
            introduced = before and (before[-1].startswith((" ", "*", "-")) or before[-1].endswith("::"))
            literal = True
            if not introduced:
                rst += ["::", ""]
        elif line.strip() and not line.startswith(" "):
            literal = False
        parts = [line] if literal else _LITERAL.split(line)
        rst.append("".join(p if literal or p.startswith("``") else p.replace("|", "\\|") for p in parts))
    lines[:] = rst


def public_name(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Link ``pzos.Study`` and other names of a package to the module that documents them."""
    target = node.get("reftarget", "")
    if not target.startswith("pzos."):
        return None
    try:
        found = attrgetter(target.removeprefix("pzos."))(pzos)
        full = f"{found.__module__}.{found.__qualname__}"
    except AttributeError:
        return None
    python = env.get_domain("py")
    return python.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], full, node, contnode)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("missing-reference", public_name)
