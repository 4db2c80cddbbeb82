"""Two tiny runs, their pages, and one browser per file of this folder."""

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.training import TINY, tiny_episodes

from aetdice import Episodes, bsr, esr, load_dataset, make_env, train, write_report
from aetdice.datasets import space_of
from aetdice.learning.run import summarise

TAXI = {
    "size": 3,
    "origins": ((0, 0), (2, 2)),
    "destinations": ((0, 1), (2, 1)),
    "start": (1, 1),
    "horizon": 6,
}
HOSTILE = ("</script><img src=x onerror=window.hacked=1>", "<b>{{data}}</b> & 'more' \" \u2028")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUICK = TINY.without(("iql",)).adapted({"dual.refit": "none"})


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A population over α and the seed in a small taxi, evaluated as the command line does it."""
    folder = tmp_path_factory.mktemp("runs") / "taxi"
    data = load_dataset("fair-taxi", episodes=30, **TAXI)
    given = {"beta": 0.1, "seed": (0, 1), "config": QUICK, "progress": False, "out": folder}
    run = train(
        data, [bsr(a) for a in (0.0, 0.5, 1.0)], notes={"episodes": 80, "command": ["aetdice"]}, **given
    )
    env = make_env("fair-taxi", **TAXI)
    run.save(folder, summarise(run, env, space_of(env), 80))
    return folder


@pytest.fixture(scope="session")
def hostile_log() -> Episodes:
    """A log from nowhere, whose objectives try to become a part of the page."""
    return dataclasses.replace(tiny_episodes(), objectives=HOSTILE)


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory, hostile_log: Episodes) -> Path:
    """A run without an environment, some of its episodes kept for an estimate."""
    folder = tmp_path_factory.mktemp("runs") / "log"
    config = QUICK.adapted({"trainer.report": 0.2})
    train(hostile_log, esr(), beta=0.1, config=config, progress=False, out=folder)
    return folder


@pytest.fixture(scope="session")
def swept_page(swept: Path) -> Path:
    return write_report(swept, swept.parent / "swept.html")


@pytest.fixture(scope="session")
def logged_page(logged: Path) -> Path:
    return write_report(str(logged), logged.parent / "logged.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Chromium, as the machine has it; closed with the module, since its event loop is in others' way."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"pages are tested in a browser, and none of {', '.join(BROWSERS)} is installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()
