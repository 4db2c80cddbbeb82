"""`python -m aetdice.behaviours BODY OUT`: train where only NumPy, JAX and MuJoCo are installed."""

import argparse
import sys
import time

import numpy as np
from jaxtyping import Float

from aetdice.behaviours.pace import Pace
from aetdice.behaviours.ppo_training import train_behaviour
from aetdice.behaviours.recipe import RECIPES, quick_recipe
from aetdice.envs.mujoco import find_body
from aetdice.errors import InputError

EVERY = 10.0
"""Seconds between two lines."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m aetdice.behaviours", description=__doc__)
    parser.add_argument("body", choices=sorted(RECIPES))
    parser.add_argument("out", help="file for the policy")
    parser.add_argument("--steps", type=int, help="environment steps (default: the body's own)")
    parser.add_argument("--seed", type=int, help="(default: that of the shipped policy)")
    parser.add_argument("--threads", type=int, help="of the simulation (default: all cores)")
    parser.add_argument("--quick", action="store_true", help="a few minutes on two cores")
    given = parser.parse_args(arguments)
    recipe = quick_recipe(given.body) if given.quick else RECIPES[given.body]
    pace = Pace(find_body(given.body).objectives)
    latest = [time.monotonic()]

    def report(steps: int, total: int, returns: Float[np.ndarray, " m"] | None, upright: float) -> None:
        pace.hear(steps, total, returns, upright)
        if time.monotonic() - latest[0] >= EVERY or steps == total:
            latest[0] = time.monotonic()
            line = f"{given.body}: {steps:,} of {total:,}, {pace.text()}, {pace.clock()} to go"
            print(line, file=sys.stderr, flush=True)

    try:
        recipe = recipe.adapted(given.steps, given.seed)
        behaviour = train_behaviour(given.body, recipe, given.out, report, given.threads)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    print(behaviour.text())


if __name__ == "__main__":
    main()
