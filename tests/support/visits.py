"""Pages in a real browser: what they show, complain about and ask for."""

from axe_core_python.sync_playwright import Axe

DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}


class Visit:
    """A page that is open, and what it complained about or asked for."""

    def __init__(self, browser, path, viewport=DESKTOP, scheme="light", awaited="#returns svg"):
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(awaited)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def text(self, selector):
        return self.page.inner_text(selector)

    def drawn(self, section):
        """Where the marks of a section's pictures are."""
        return self.page.eval_on_selector_all(
            f"#{section} svg", "found => found.map(one => one.outerHTML).join('')"
        )

    def rows(self):
        return self.page.eval_on_selector_all("#scores tbody tr", "found => found.map(one => one.className)")

    def barriers(self):
        """What the accessibility checker calls serious or critical."""
        found = Axe().run(self.page)["violations"]
        return [(each["id"], each["impact"]) for each in found if each["impact"] in ("serious", "critical")]
