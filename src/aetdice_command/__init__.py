"""The command `aetdice`: Ctrl-C is one word from the first moment on, before anything large is imported."""

import _thread
import itertools
import os
import signal
import sys
import threading
import time
from typing import Any

from aetdice_command.cache import keep_programs

MOMENT = 0.2
"""Seconds in which a callback has returned."""


def main() -> None:
    """Run the command line."""
    stop_at_once()
    keep_programs()
    from aetdice.cli import main as run

    run()


def is_run_as(module: str) -> bool:
    """Whether `python -m module` is about to run: the package is imported first, and `main` called later."""
    return sys.argv[:1] == ["-m"] and ("-m", module) in itertools.pairwise(sys.orig_argv)


def stop_at_once() -> None:
    """Ctrl-C ends the process, until `unwind_from_now_on`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell has it ignored
        signal.signal(signal.SIGINT, stop)


def stop(*_: Any) -> None:
    """End at once: an import cannot be unwound half-way, and nothing has been begun."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def unwind_from_now_on() -> None:
    """Interrupts raise `KeyboardInterrupt` again, so that what was begun is ended in order."""
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _again


def _again(lost: Any) -> None:
    """An interrupt that hit a callback, of the garbage collector for instance, comes again a moment later."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt, ())  # from elsewhere: this callback would swallow it, too
    else:
        sys.__unraisablehook__(lost)


def _interrupt() -> None:
    time.sleep(MOMENT)
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):  # a real signal also wakes what waits
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
