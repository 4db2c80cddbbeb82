"""What the theme leaves out: where long names may break, and the level of the menu's headings."""

import re
from typing import Any

from sphinx.application import Sphinx

NAME = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
INNER = re.compile(r"(?<=\w[_./])(?=\w)")
CAPTION = 'class="caption" role="heading"'


def broken(found: re.Match[str]) -> str:
    """May break after an underscore, a dot or a slash; copied, it is what it was."""
    return INNER.sub("<wbr>", found[0])


def readable(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    del app, page, template, tree
    if "body" in context:
        context["body"] = NAME.sub(broken, context["body"])
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
            CAPTION, f'{CAPTION} aria-level="2"'
        )


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", readable, priority=900)  # after the theme's own
    return {"parallel_read_safe": True}
