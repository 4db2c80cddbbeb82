"""One HTML file of a template, its style, its scripts and the data; it asks nothing of any network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from aetdice.page.numbers import finite

SHARED = ("draw.js", "charts.js", "tables.js", "panels.js")
PLACE = re.compile(r"\{\{(\w+)\}\}")
SECTION = """  <section id="{id}" aria-labelledby="{id}-title">
    <h2 id="{id}-title">{title}</h2>
    <div id="{id}-body"></div>
  </section>"""


class Layout(NamedTuple):
    """What a page has below its answer, and the script that fills it."""

    sections: Mapping[str, str]
    """Titles by id."""
    script: str


RUNS = Layout(
    {
        "asked": "What was asked for",
        "attained": "What it attains",
        "returns": "What an episode brings",
        "population": "The trained population",
        "training": "Training",
        "verdict": "The verdict, and what to do",
        "provenance": "Where this comes from",
    },
    "main.js",
)


def document(title: str, record: Mapping[str, Any], layout: Layout = RUNS) -> str:
    """The page; text reaches it as escaped JSON only, and scripts put it on the page as text."""
    style, script = _template("page.css"), "\n".join(map(_template, (*SHARED, layout.script)))
    sections = (SECTION.format(id=id, title=html.escape(each)) for id, each in layout.sections.items())
    allowed = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:"
    parts = {
        "title": html.escape(title),
        "policy": f"default-src 'none'; {allowed}",
        "style": style,
        "script": script,
        "sections": "\n".join(sections),
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
