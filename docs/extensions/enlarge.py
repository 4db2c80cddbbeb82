"""A picture leads to itself in full size: figures with several panels are small on a phone."""

import posixpath

from docutils import nodes
from sphinx.application import Sphinx


def enlarge(app: Sphinx, tree: nodes.document, page: str) -> None:
    if app.builder.format != "html":
        return
    folder = posixpath.relpath("_images", posixpath.dirname(page) or ".")
    for image in list(tree.findall(nodes.image)):
        if image["uri"] in app.env.images and not isinstance(image.parent, nodes.reference):
            target = posixpath.join(folder, app.env.images[image["uri"]][1])
            link = nodes.reference("", "", refuri=target, classes=["enlarge"])
            image.replace_self(link)
            link += image


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", enlarge)
    return {"parallel_read_safe": True}
