"""Links of pages to files of the repository lead to the API, or to the file on GitHub."""

import posixpath
import re

from public_names import documented
from sphinx.application import Sphinx

REPOSITORY = "https://github.com/aetdice/aetdice/blob/main/"
NAMED = re.compile(r"\[`(\w+)`\]\(((?:\.\./)+)src/([\w./-]+\.py)\)")
LINK = re.compile(r"\]\(((?:\.\./)+[\w./-]+)(#[^)]*)?\)")


def rewrite(app: Sphinx, page: str, content: list[str]) -> None:
    """A page is also read on GitHub, where `../src/…` is right; on the site there is no such file."""
    del app

    def named(found: re.Match[str]) -> str:
        home = documented().get((found[3], found[1]))
        return f"{{py:obj}}`{found[1]} <{home}>`" if home else found[0]

    def external(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), found[1]))
        return found[0] if path.startswith("docs/") else f"]({REPOSITORY}{path}{found[2] or ''})"

    content[0] = LINK.sub(external, NAMED.sub(named, content[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True}
