"""Fair-Taxi: one taxi, several groups of passengers, never enough time."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from aetdice.envs.environment import FiniteEnvironment, Outcomes
from aetdice.envs.fair_taxi.picture import Cell, draw_taxi
from aetdice.errors import InputError

MOVES = ((-1, 0), (1, 0), (0, 1), (0, -1))
PICK_UP, DROP_OFF = 4, 5


class FairTaxi(FiniteEnvironment):
    """
    ## Description
    A taxi on a grid serves groups of passengers. Each group waits at its origin, always with
    one more passenger, and wants to go to its destination; the taxi carries one passenger at a
    time. Time spent on one group is lost to the others, and each group is an objective.

    ## Observation Space
    Three integers: the taxi's row and column, counted from the top left, and the passenger on
    board (0 for none, 1 + i for group i).

    ## Action Space
    Six actions: 0 north, 1 south, 2 east, 3 west (clipped at the border), 4 pick up, 5 drop off.
    With probability `slip` a move goes in one of the other three directions, each as likely.

    ## Reward Space
    One objective per group, all divided by `scale`:
    - a delivery gives its group `deliveries[i]` and the others 0;
    - a pick-up with a passenger on board or away from every origin, and a drop-off without a
      passenger or away from their destination, give every group `penalties[i]`;
    - anything else gives 0.

    ## Starting State
    At `start`, empty.

    ## Episode Termination
    Never by itself; an episode is truncated after `horizon` steps.

    ## Arguments
    - size: cells per side
    - origins, destinations: one (row, column) per group
    - start: the taxi's first cell
    - horizon: steps per episode
    - deliveries, penalties: rewards per group before scaling; by default group 0 counts double
    - scale: what every reward is divided by
    - slip: probability that a move goes in another direction; pick-up and drop-off never fail

    ## Credits
    After the finite Fair-Taxi of the AETDICE paper, itself after Fan et al., Welfare and
    Fairness in Multi-objective Reinforcement Learning.
    """

    size: int = eqx.field(static=True)
    origins: tuple[Cell, ...] = eqx.field(static=True)
    destinations: tuple[Cell, ...] = eqx.field(static=True)
    start: Cell = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    deliveries: tuple[float, ...] = eqx.field(static=True)
    penalties: tuple[float, ...] = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    slip: float = eqx.field(static=True)

    def __init__(
        self,
        size: int = 9,
        origins: Sequence[Sequence[int]] = ((0, 0), (8, 8)),
        destinations: Sequence[Sequence[int]] = ((0, 2), (8, 6)),
        start: Sequence[int] = (4, 4),
        horizon: int = 50,
        deliveries: tuple[float, ...] | None = None,
        penalties: tuple[float, ...] | None = None,
        scale: float = 60.0,
        slip: float | int = 0.0,
    ) -> None:
        self.size, self.steps, self.scale = _whole("size", size), _whole("horizon", horizon), scale
        self.start, self.slip = _cell("start", start), float(slip)
        self.origins = tuple(_cell("origin", cell) for cell in origins)
        self.destinations = tuple(_cell("destination", cell) for cell in destinations)
        others = max(0, len(self.origins) - 1)
        self.deliveries = (60.0, *[30.0] * others) if deliveries is None else tuple(deliveries)
        self.penalties = (-20.0, *[-10.0] * others) if penalties is None else tuple(penalties)

    def __check_init__(self) -> None:
        groups = len(self.origins)
        if self.size < 1:
            raise InputError(f"size must be at least 1, not {self.size}")
        if self.steps < 1:
            raise InputError(f"the horizon must be at least 1, not {self.steps}")
        if groups == 0 or len(self.destinations) != groups:
            raise InputError(f"{groups} origins need as many destinations, not {len(self.destinations)}")
        if len(set(self.origins)) != groups:
            raise InputError("two groups share an origin, so a pick-up there would be ambiguous")
        for name, cell in (
            *(("origin", cell) for cell in self.origins),
            *(("destination", cell) for cell in self.destinations),
            ("start", self.start),
        ):
            if not (0 <= cell[0] < self.size and 0 <= cell[1] < self.size):
                raise InputError(
                    f"the {name} {cell[0]},{cell[1]} lies outside the {self.size}x{self.size} grid "
                    f"(rows and columns 0 to {self.size - 1})"
                )
        for name, rewards in (("deliveries", self.deliveries), ("penalties", self.penalties)):
            if len(rewards) != groups or not np.all(np.isfinite(rewards)):
                raise InputError(f"{name} needs {groups} finite numbers, one per group, not {rewards}")
        if not np.isfinite(self.scale) or self.scale <= 0:
            raise InputError(f"scale must be positive, not {self.scale}")
        if not 0 <= self.slip < 1:
            raise InputError(f"slip must be at least 0 and below 1, not {self.slip}")

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def objectives(self) -> tuple[str, ...]:
        return tuple(f"group{i}" for i in range(len(self.origins)))

    @property
    def actions(self) -> int:
        return 6

    @property
    def states(self) -> int:
        return self.size * self.size * (len(self.origins) + 1)

    @property
    def initial_state(self) -> int:
        return (self.start[0] * self.size + self.start[1]) * (len(self.origins) + 1)

    @property
    def observation_sizes(self) -> tuple[int, ...]:
        return (self.size, self.size, len(self.origins) + 1)

    @property
    def reward_bounds(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        extremes = np.array([self.deliveries, self.penalties, np.zeros(len(self.origins))]) / self.scale
        return extremes.min(axis=0), extremes.max(axis=0)

    def state_of(self, row: int, column: int, passenger: int) -> int:
        """The number of a state; passenger 0 is nobody, 1 + i group i."""
        return (row * self.size + column) * (len(self.origins) + 1) + passenger

    def observe(self, state: Int[Array, ""]) -> Int[Array, " o"]:
        cell, passenger = jnp.divmod(state, len(self.origins) + 1)
        row, column = jnp.divmod(cell, self.size)
        return jnp.stack([row, column, passenger]).astype(jnp.int32)

    def transition(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        groups = len(self.origins)
        row, column, passenger = self.observe(state)
        here = jnp.stack([row, column])
        move = jnp.asarray((*MOVES, (0, 0), (0, 0)), jnp.int32)[action]
        cell = jnp.clip(here + move, 0, self.size - 1)

        waiting = jnp.all(jnp.asarray(self.origins, jnp.int32) == here[None], axis=1)
        wanted = jnp.all(jnp.asarray(self.destinations, jnp.int32) == here[None], axis=1)
        aboard = jnp.arange(1, groups + 1, dtype=jnp.int32) == passenger
        picks, drops = action == PICK_UP, action == DROP_OFF
        picked = picks & (passenger == 0) & jnp.any(waiting)
        delivered = drops & jnp.any(aboard & wanted)
        invalid = (picks & ~picked) | (drops & ~delivered)

        next_passenger = jnp.where(
            picked, 1 + jnp.argmax(waiting).astype(jnp.int32), jnp.where(delivered, 0, passenger)
        )
        gain = jnp.asarray(np.divide(self.deliveries, self.scale), dtype=float)
        loss = jnp.asarray(np.divide(self.penalties, self.scale), dtype=float)
        reward = jnp.where(delivered & aboard, gain, 0) + jnp.where(invalid, loss, 0)
        following = (cell[0] * self.size + cell[1]) * (groups + 1) + next_passenger
        return following.astype(state.dtype), reward, jnp.zeros((), dtype=bool)

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""]) -> Outcomes:
        """The action's own, and for a move on slippery ground those of the other directions."""
        turns, moves = jnp.arange(len(MOVES) if self.slip else 1, dtype=action.dtype), action < len(MOVES)
        taken = jnp.where(moves, (action + turns) % len(MOVES), action)
        slip = jnp.where(moves, self.slip, 0.0)
        probability = jnp.where(turns == 0, 1 - slip, slip / (len(MOVES) - 1))
        return Outcomes(probability, *jax.vmap(self.transition, (None, 0))(state, taken))

    def text(self, state: Int[Array, ""]) -> str:
        row, column, passenger = (int(entry) for entry in self.observe(jnp.asarray(state)))
        grid = [["." for _ in range(self.size)] for _ in range(self.size)]
        for group, (origin, destination) in enumerate(zip(self.origins, self.destinations, strict=True)):
            grid[destination[0]][destination[1]] = chr(ord("a") + group % 26)
            grid[origin[0]][origin[1]] = chr(ord("A") + group % 26)
        grid[row][column] = "T" if passenger == 0 else str(passenger - 1)
        return "\n".join(" ".join(line) for line in grid) + "\n"

    def picture(self, state: Int[Array, ""], path: Sequence[Any] = ()) -> np.ndarray:
        way = [np.unravel_index(int(there), self.observation_sizes) for there in (*path, state)]
        cells = [(int(row), int(column)) for row, column, _ in way]
        return draw_taxi(self.size, self.origins, self.destinations, cells, int(way[-1][2]))


def _whole(name: str, value: Any) -> int:
    if int(value) != value:
        raise InputError(f"{name} must be a whole number, not {value}")
    return int(value)


def _cell(name: str, cell: Any) -> Cell:
    if len(cell) != 2:
        raise InputError(f"the {name} must be a row and a column, not {cell}")
    return _whole(name, cell[0]), _whole(name, cell[1])
