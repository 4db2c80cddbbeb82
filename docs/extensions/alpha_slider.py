"""`{alpha-slider}` is a slider over BSR's α: exact optima, computed once, drawn by a small script."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

STATIC = Path(__file__).parents[1] / "static"


class AlphaSlider(SphinxDirective):
    """Data and script stand in the page itself, so that it also works when opened as a file."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        data = (STATIC / "bsr-alpha.json").read_text(encoding="utf-8")
        script = (STATIC / "bsr-alpha.js").read_text(encoding="utf-8")
        page = (
            f'<div id="bsr-alpha"></div><script type="application/json" id="bsr-alpha-data">{data}</script>'
            f"<script>{script}</script>"
        )
        return [nodes.raw("", page, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("alpha-slider", AlphaSlider)
    return {"parallel_read_safe": True}
