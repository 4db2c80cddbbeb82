"""`{api} aetdice.objectives` documents every name of a module's `__all__`, where users import it from."""

import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from paper_map import places
from public_names import MODULES, homes, sentence
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CODE = re.compile(r"(`[^`]+`)")


class Api(SphinxDirective):
    """The names of a module: those of a shorter path are listed, the others documented."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        module = importlib.import_module(name)
        elsewhere, lines = [], ["```{eval-rst}", f".. py:module:: {name}", ""]
        for public in MODULES[name]:
            path, found = f"{name}.{public}", getattr(module, public)
            if homes()[path] == path:
                lines += _entry(path, found)
            else:
                elsewhere.append(f"{{py:obj}}`{public} <{homes()[path]}>`")
        lines += ["```", ""]
        if elsewhere:
            lines += [f"Also importable from here: {', '.join(elsewhere)}.", ""]
        return self.parse_text_to_nodes("\n".join(lines))


def _entry(path: str, found: Any) -> list[str]:
    if inspect.isclass(found):
        return [f".. autoclass:: {path}", "   :members:", ""]
    if inspect.isfunction(found):
        return [f".. autofunction:: {path}", ""]
    module, _, name = path.rpartition(".")
    return [f".. py:data:: {name}", "", *(f"   {line}" for line in restructured(sentence(module, name))), ""]


def rewrite(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A docstring as Sphinx wants it, with its places in the paper."""
    del app, what, obj, options
    if "".join(lines).startswith("Alias for field number"):  # what a named tuple says of its fields
        lines.clear()
    lines[:] = restructured(lines)
    if name in places():
        lines += [f"In the paper: {places()[name]}.", ""]


def restructured(lines: list[str]) -> list[str]:
    """From plain text with `code` and indented equations to reStructuredText."""
    return [line for block in _blocks(lines) for line in (*_restructured(block), "")]


def _blocks(lines: list[str]) -> list[list[str]]:
    """Paragraphs, headings and lists, each by itself."""
    found: list[list[str]] = [[]]
    for line in lines:
        begins = line.startswith("## ") or (line.startswith("- ") and not _in_list(found[-1]))
        if begins or not line.strip():
            found.append([])
        if line.strip():
            found[-1].append(line)
        if line.startswith("## "):
            found.append([])
    return [block for block in found if block]


def _in_list(block: list[str]) -> bool:
    return bool(block) and block[0].startswith("- ")


def _restructured(block: list[str]) -> list[str]:
    if all(line.startswith("    ") for line in block):
        return ["::", "", *block]
    if block[0].startswith("## "):
        return [f"**{block[0].removeprefix('## ')}**"]
    return ["".join(_escaped(part) for part in CODE.split(line)) for line in block]


def _escaped(part: str) -> str:
    return f"`{part}`" if CODE.fullmatch(part) else re.sub(r"([*_|\\])", r"\\\1", part)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("api", Api)
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}
