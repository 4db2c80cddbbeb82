"""The command `aetdice`: Ctrl-C is one word from the first moment on, before anything large is imported."""

import _thread
import os
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell has it ignored
        signal.signal(signal.SIGINT, stop)
    from aetdice.cli import main as run

    run()


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
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)
