"""The two-step MOMDP of the paper's Figure 1."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from aetdice.envs.environment import FiniteEnvironment
from aetdice.envs.pixels import GROUPS, INK, LINE, canvas, draw_line, fill_disc
from aetdice.errors import InputError

REWARDS = ((9.0, 1.0), (4.0, 4.0), (1.0, 9.0))
"""Of a1, a2 and a3 in s1."""


class TwoStep(FiniteEnvironment):
    """
    ## Description
    The smallest problem on which linear, SER and ESR objectives disagree (Figure 1 of the
    AETDICE paper). In s0 every action leads to s1; in s1 the action chooses a reward vector
    and ends the episode.

    ## Observation Space
    The state's number: 0 for s0, 1 for s1, 2 once the episode has ended.

    ## Action Space
    Three actions, a1, a2 and a3, numbered 0, 1 and 2. In s0 they do the same.

    ## Reward Space
    Two objectives: (0, 0) in s0; in s1 (9, 1), (4, 4) or (1, 9).

    ## Starting State
    s0.

    ## Episode Termination
    After the second step.

    ## Arguments
    - first_reward: the reward in s0. With (2, 0) the best action for ESR moves from a2 to a3:
      it depends on what has been received already.

    ## Credits
    Kim, Suh, Lee, Lee and Lee: AETDICE, Figure 1.
    """

    first_reward: tuple[float, float] = eqx.field(static=True, default=(0.0, 0.0))

    def __check_init__(self) -> None:
        if len(self.first_reward) != 2 or not np.all(np.isfinite(self.first_reward)):
            raise InputError(f"first_reward needs 2 finite numbers, not {self.first_reward}")

    @property
    def horizon(self) -> int:
        return 2

    @property
    def objectives(self) -> tuple[str, ...]:
        return ("first", "second")

    @property
    def actions(self) -> int:
        return 3

    @property
    def states(self) -> int:
        return 3

    @property
    def initial_state(self) -> int:
        return 0

    @property
    def observation_sizes(self) -> tuple[int, ...]:
        return (3,)

    @property
    def reward_bounds(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        table = np.array([self.first_reward, *REWARDS, (0.0, 0.0)])
        return table.min(axis=0), table.max(axis=0)

    def transition(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        by_state = jnp.asarray([[self.first_reward] * 3, REWARDS, [(0.0, 0.0)] * 3], dtype=float)
        return jnp.minimum(state + 1, 2), by_state[state, action], state >= 1

    def observe(self, state: Int[Array, ""]) -> Int[Array, " o"]:
        return jnp.asarray(state, jnp.int32)[None]

    def text(self, state: Int[Array, ""]) -> str:
        names = [
            f"[{name}]" if index == int(state) else f" {name} "
            for index, name in enumerate(("s0", "s1", "end"))
        ]
        choices = " | ".join(f"a{i + 1} {reward}" for i, reward in enumerate(REWARDS))
        return f"{names[0]} --{self.first_reward}--> {names[1]} --{choices}--> {names[2]}\n"

    def picture(self, state: Int[Array, ""], path: Sequence[Any] = ()) -> np.ndarray:
        del path
        image = canvas(120, 360)
        centres = [(60, 50), (60, 180), (60, 310)]
        draw_line(image, centres[0], centres[1], LINE, 4)
        for bend, colour in zip((25, 60, 95), GROUPS, strict=False):
            draw_line(image, centres[1], (bend, 245), colour, 4)
            draw_line(image, (bend, 245), centres[2], colour, 4)
        for index, (row, column) in enumerate(centres):
            fill_disc(image, row, column, 22, INK)
            fill_disc(image, row, column, 18, GROUPS[1] if index == int(state) else (255, 255, 255))
        return image
