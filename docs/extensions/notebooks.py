"""Notebooks as pages: their text, their code, and the text that they printed."""

import json

from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx


class NotebookParser(MystParser):
    """A notebook is the Markdown of its cells."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: object) -> None:
        super().parse(as_markdown(json.loads(inputstring)), document)


def as_markdown(notebook: dict) -> str:
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed = "".join(line for output in cell["outputs"] for line in output.get("text", []))
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
