"""`python -m aetdice.engines.worker`: a process that does one task after another.

It reads a JSON object per line from stdin and answers each with one on stdout. When stdin ends, whoever
started it is gone, and so is it, in the middle of a task if need be.
"""

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from aetdice.engines.task import Ended, attempt, task_from

READY = "ready"


def main() -> None:
    """Work until nobody asks."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print is for the log
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    import jax

    say({"state": READY, "device": jax.default_backend()})
    while True:
        say(answer_to(json.loads(requests.get())))


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """What came of a task: done, or why not."""
    try:
        ended = attempt(task_from(request["task"]), Path(request["folder"]), request["host"])
    except Exception as error:
        traceback.print_exc()
        ended = Ended("failed", f"{type(error).__name__}: {error}")
    return ended._asdict()


def _listen(requests: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
