"""The site: Sphinx, offline; every example of the gallery is executed and every warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pzos  # noqa: E402

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
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
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
nitpick_ignore_regex = [("py:.*", ".*")]  # types of numpy and of the standard library have no pages here

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 3600,
}
suppress_warnings = ["config.cache"]
