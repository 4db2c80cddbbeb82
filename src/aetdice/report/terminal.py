"""The terminal: at most 100 columns, and neither colours nor cursor movements where nobody sees them."""

import os
import sys
import textwrap
from io import StringIO, TextIOWrapper
from typing import TextIO

from rich.console import Console

Stream = TextIO | TextIOWrapper | StringIO
"""What can be printed to; some that tests put in the place of stdout lack what the former has."""
WIDTH = 100
"""Columns that every table fits into."""


def is_plain(stream: Stream) -> bool:
    """Whether only text may be written: to files and pipes, and to everything where NO_COLOR is set."""
    return not stream.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def console(stream: Stream | None = None) -> Console:
    """Where tables are printed: stdout, unless another stream is given."""
    stream = stream or sys.stdout
    known = stream.isatty() or "COLUMNS" in os.environ
    width = min(WIDTH, Console(file=stream).width) if known else WIDTH
    if is_plain(stream):
        return Console(file=stream, width=width, force_terminal=False, color_system=None)
    return Console(file=stream, width=width)


def say(sentence: str, stream: Stream | None = None) -> None:
    """On a terminal wrapped between words, elsewhere one line that tools can search."""
    stream = stream or sys.stdout
    if stream.isatty():
        sentence = textwrap.fill(
            sentence, console(stream).width, subsequent_indent="    ", break_on_hyphens=False
        )
    print(sentence, file=stream)
