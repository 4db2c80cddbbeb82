"""`python -m aetdice.sweeps.worker`: a process that does one job after another.

It reads a JSON object per line from stdin and answers each with one on stdout. When stdin ends, whoever
started it is gone, and so is it, in the middle of a job if need be.
"""

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from aetdice.errors import InputError

DONE, FAILED, READY = "done", "failed", "ready"


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
    """What came of a job: done, or why not."""
    from aetdice.sweeps.job import run_job
    from aetdice.sweeps.jobs import job_from

    job = job_from(request["job"])
    try:
        run_job(job, Path(request["folder"]), request["host"])
    except (InputError, OSError) as error:
        return {"state": FAILED, "words": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"state": FAILED, "words": f"{type(error).__name__}: {error}"}
    return {"state": DONE}


def _listen(requests: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(1)


if __name__ == "__main__":
    main()
