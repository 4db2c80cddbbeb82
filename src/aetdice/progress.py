"""How far something has come, told to whoever listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Progress = Callable[[str, int, int, dict[str, Any]], None]
"""Called after each chunk with the stage, the step, the total and the metrics."""
_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Within it, `tell` reaches this function."""
    before = _LISTENER.set(progress)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(stage: str, step: int, total: int) -> None:
    """After a piece of work that may take a while; nothing happens where nobody listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(stage, step, total, {})
