"""How Sphinx makes the site of these pages: `make docs`."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "aetdice"
author = "the aetdice developers"
release = version = installed("aetdice")
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "api_pages",
    "repository_links",
    "mathml",
    "notebooks",
    "alpha_slider",
    "enlarge",
    "readable",
]
exclude_patterns = ["figures", "extensions"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_show_copyright = False
html_title = f"aetdice {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": "https://github.com/aetdice/aetdice/",
    "source_branch": "main",
    "source_directory": "docs/",
}
