"""One HTML file of a template, its style, its scripts and the data; it asks nothing of any network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from aetdice.page.numbers import finite

SCRIPTS = ("draw.js", "charts.js", "panels.js", "main.js")
PLACE = re.compile(r"\{\{(\w+)\}\}")


def document(title: str, record: Mapping[str, Any]) -> str:
    """The page; text reaches it as escaped JSON only, and scripts put it on the page as text."""
    style, script = _template("page.css"), "\n".join(map(_template, SCRIPTS))
    parts = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        "style": style,
        "script": script,
        "data": embedded(record),
    }
    return PLACE.sub(lambda place: parts[place[1]], _template("page.html"))


def embedded(record: Mapping[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(finite(record), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _template(name: str) -> str:
    return files("aetdice.page").joinpath("template", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Of an inline part: a browser runs no other, whatever a name in a log says."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
