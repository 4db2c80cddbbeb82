"""`python -m aetdice.envs.dispatch OUT.parquet`: the log that ships with the package, or another one."""

import argparse
import sys
from pathlib import Path

from aetdice.envs.dispatch import Dispatch, collect_dispatch, write_log
from aetdice.envs.dispatch.collection import SHIFTS
from aetdice.errors import InputError


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m aetdice.envs.dispatch", description=__doc__)
    parser.add_argument("out", type=Path, help="the new Parquet file")
    parser.add_argument("--shifts", type=int, default=SHIFTS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    try:
        write_log(given.out, collect_dispatch(Dispatch(), given.shifts, given.seed))
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    print(f"written: {given.out} ({given.shifts:,} shifts, seed {given.seed})")


if __name__ == "__main__":
    main()
