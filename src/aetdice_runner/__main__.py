"""`python -m aetdice_runner policy.onnx`: an exported policy over HTTP, without JAX."""

from __future__ import annotations

import argparse
import sys

from aetdice_runner.errors import InputError
from aetdice_runner.runner import Runner
from aetdice_runner.service import IDLE, SESSIONS


def main(arguments: list[str] | None = None) -> None:
    """Serve; a user's mistake is one line on stderr and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m aetdice_runner", description=__doc__)
    parser.add_argument("policy", help="a file of aetdice export")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="episodes open at once")
    parser.add_argument("--idle", type=float, default=IDLE, help="seconds until one is forgotten")
    options = vars(parser.parse_args(arguments))
    try:
        from aetdice_runner.server import serve

        serve(Runner.load(options.pop("policy")), **options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
