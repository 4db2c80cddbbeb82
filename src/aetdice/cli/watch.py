"""`aetdice watch`: follow a run that trains in another process."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.errors import InputError
from aetdice.learning.watching import RunState, watch_run
from aetdice.report.progress import PATIENCE
from aetdice.report.terminal import console, is_plain
from aetdice.report.watching import state_line, state_page


@dataclass(frozen=True)
class Watch:
    """Show how far a run has come until it has ended: stages, curves, remaining time, then the verdict."""

    folder: tyro.conf.Positional[Path]
    once: bool = False
    """Show the present state and end."""
    every: float = 1.0
    """Seconds between two looks."""
    shown: Shown = Shown()

    def run(self) -> None:
        if not self.every > 0:
            raise InputError(f"the seconds between two looks must be positive, not {self.every}")
        state = watch_run(self.folder)
        if not (self.once or state.ended):
            state = self.follow(state)
        self.shown.answer(state.record(), lambda: state_page(state.record()))

    def follow(self, state: RunState) -> RunState:
        """Look until the run has ended; on a terminal the page is drawn anew each time."""
        if self.shown.quiet or self.shown.json:
            while not state.ended:
                state = self.next()
            return state
        if is_plain(sys.stdout):
            return self.tell(state)
        from rich.live import Live

        page = state_page(state.record())
        with Live(page, console=console(), auto_refresh=False, transient=True) as live:
            while not state.ended:
                state = self.next()
                live.update(state_page(state.record()), refresh=True)
        return state

    def tell(self, state: RunState) -> RunState:
        """A line now and then, where nothing can be drawn anew."""
        said, last = "", 0.0
        while not state.ended:
            line = state_line(state.record())
            if line != said and time.monotonic() - last >= min(PATIENCE, 20 * self.every):
                print(line, flush=True)
                said, last = line, time.monotonic()
            state = self.next()
        return state

    def next(self) -> RunState:
        time.sleep(self.every)
        return watch_run(self.folder)
