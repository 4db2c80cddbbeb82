"""Draw where episodes begin, for the gallery; run it from anywhere."""

from pathlib import Path

import jax

import aetdice
from aetdice.report.figures import pyplot


def main() -> None:
    for name in ("fair-taxi", "pointmaze-2obj", "pointmaze-3obj"):
        env = aetdice.make_env(name)
        picture = env.picture(env.reset(jax.random.key(0)))
        pyplot().imsave(Path(__file__).with_name(f"{name}-start.png"), picture)


if __name__ == "__main__":
    main()
