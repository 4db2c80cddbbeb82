"""Dispatch: one van, three districts, calls that come by chance, and a shift that ends by the clock."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from aetdice.envs.dispatch.picture import draw_dispatch
from aetdice.envs.environment import FiniteEnvironment, Outcomes
from aetdice.errors import InputError

DISTRICTS = ("centre", "north", "south")
CONDITIONS = ("broken", "ok")
ACTIONS = ("go-centre", "go-north", "go-south", "repair")
"""All in alphabetical order, as readers number the words of a log."""
REPAIR = 3
CENTRE, BROKEN, OK = 0, 0, 1
STREET = (1, 0, 2)
"""The districts from one end of the street to the other."""
ROOM = 2
"""Calls that wait in a district; further ones are lost."""


class Dispatch(FiniteEnvironment):
    """
    ## Description
    One van serves the calls of three districts, which lie along one street: north, centre, south.
    Calls come by chance, driving takes time and may break the van, and a shift ends by the clock.
    Time spent on one district is lost to the others, and each district is an objective.

    ## Observation Space
    Six integers: the calls that wait in centre, north and south (0 to 2 each), the van's district
    (0 centre, 1 north, 2 south), its condition (0 broken, 1 ok), and the steps left of the shift.

    ## Action Space
    Four actions: 0 go-centre, 1 go-north, 2 go-south, 3 repair. A van that is sent to where it is
    serves one of the calls there. Sent elsewhere it drives to the next district on the way, and
    breaks with probability `breakdown`. A broken van stands still until a repair succeeds, with
    probability `repair` each; a repair of a sound van is a step lost.

    ## Reward Space
    Three objectives, centre, north and south: 1 for each call served there.

    ## Starting State
    One call waits in each district, the van stands in the centre and is ok. The length of the
    shift is drawn uniformly from `shortest` to `horizon` steps.

    ## Episode Termination
    When no steps are left.

    ## Arguments
    - horizon: steps of the longest shift
    - shortest: steps of the shortest one
    - calls: probabilities of a call in centre, north and south after a step; at most one comes, and
      is lost where 2 wait already
    - breakdown: probability that driving to the next district breaks the van
    - repair: probability that a repair succeeds

    ## Credits
    Our own, as an example of a log from practice.
    """

    steps: int = eqx.field(static=True)
    shortest: int = eqx.field(static=True)
    calls: tuple[float, ...] = eqx.field(static=True)
    breakdown: float = eqx.field(static=True)
    repair: float = eqx.field(static=True)

    def __init__(
        self,
        horizon: int = 12,
        shortest: int = 8,
        calls: Sequence[float] = (0.4, 0.25, 0.25),
        breakdown: float | int = 0.08,
        repair: float | int = 0.6,
    ) -> None:
        self.steps, self.shortest, self.calls = int(horizon), int(shortest), tuple(map(float, calls))
        self.breakdown, self.repair = float(breakdown), float(repair)

    def __check_init__(self) -> None:
        if not 1 <= self.shortest <= self.steps:
            raise InputError(
                f"shifts of {self.shortest} to {self.steps} steps: shortest must be at least 1, and the "
                "horizon no less than it"
            )
        if len(self.calls) != len(DISTRICTS) or min(self.calls) < 0 or not sum(self.calls) <= 1:
            raise InputError(f"calls needs {len(DISTRICTS)} probabilities that sum to at most 1")
        for name in ("breakdown", "repair"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is a probability, not {getattr(self, name)}")

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def objectives(self) -> tuple[str, ...]:
        return DISTRICTS

    @property
    def actions(self) -> int:
        return len(ACTIONS)

    @property
    def observation_sizes(self) -> tuple[int, ...]:
        return (*[ROOM + 1] * len(DISTRICTS), len(DISTRICTS), len(CONDITIONS), self.steps + 1)

    @property
    def states(self) -> int:
        return int(np.prod(self.observation_sizes))

    @property
    def initial_state(self) -> int:
        return int(self.start(self.steps))

    @property
    def initial(self) -> Float[np.ndarray, " s"]:
        lengths = np.arange(self.shortest, self.steps + 1)
        probabilities = np.zeros(self.states)
        probabilities[self.start(lengths)] = 1 / len(lengths)
        return probabilities

    @property
    def reward_bounds(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        return np.zeros(len(DISTRICTS)), np.ones(len(DISTRICTS))

    def start(self, length: Any) -> Any:
        """The first state of a shift of so many steps."""
        return np.ravel_multi_index((1, 1, 1, CENTRE, OK, length), self.observation_sizes)

    def reset(self, key: PRNGKeyArray) -> Int[Array, ""]:
        length = jax.random.randint(key, (), self.shortest, self.steps + 1)
        return jnp.asarray(self.start(0)) + length  # the steps left are the last digit

    def observe(self, state: Int[Array, ""]) -> Int[Array, " o"]:
        return jnp.stack(jnp.unravel_index(state, self.observation_sizes)).astype(jnp.int32)

    def transition(
        self, state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        return self._follow(state, action, jnp.ones((), bool), jnp.asarray(len(DISTRICTS), jnp.int32))

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""]) -> Outcomes:
        """A call in one of the districts or none, each with good luck and with bad luck."""
        van, condition = self.observe(state)[3:5]
        drives = (condition == OK) & (action.astype(jnp.int32) != van) & (action != REPAIR)
        mends = (condition == BROKEN) & (action == REPAIR)
        lucky = jnp.where(drives, 1 - self.breakdown, jnp.where(mends, self.repair, 1.0))
        comes = jnp.asarray([*self.calls, 1 - sum(self.calls)], dtype=float)
        where, luck = jnp.meshgrid(
            jnp.arange(len(comes), dtype=jnp.int32), jnp.array([True, False]), indexing="ij"
        )
        probability = comes[where.ravel()] * jnp.where(luck.ravel(), lucky, 1 - lucky)
        follow = jax.vmap(self._follow, (None, None, 0, 0))
        return Outcomes(probability, *follow(state, action, luck.ravel(), where.ravel()))

    def _follow(
        self, state: Int[Array, ""], action: Int[Array, ""], lucky: Bool[Array, ""], call: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Float[Array, " m"], Bool[Array, ""]]:
        """What comes of an action, with luck or without it, and of a call in a district (3 for none)."""
        seen = self.observe(state)
        waiting, van, condition, left = seen[:3], seen[3], seen[4], seen[5]
        action, sound, sent = action.astype(jnp.int32), condition == OK, action != REPAIR
        districts = jnp.arange(len(DISTRICTS), dtype=jnp.int32)
        served = sound & (left > 0) & (districts == van) & (action == van) & (waiting > 0)
        drives = sound & sent & (action != van)
        place, street = jnp.asarray(np.argsort(STREET), jnp.int32), jnp.asarray(STREET, jnp.int32)
        target = place[jnp.where(sent, action, van)]
        there = street[place[van] + jnp.sign(target - place[van])]
        mended = ~sound & ~sent & lucky
        next_condition = jnp.where((sound & ~(drives & ~lucky)) | mended, OK, BROKEN)
        change = (districts == call).astype(jnp.int32) - served.astype(jnp.int32)
        next_waiting = jnp.minimum(waiting + change, ROOM)
        following = (*next_waiting, jnp.where(drives, there, van), next_condition, jnp.maximum(left - 1, 0))
        number = jnp.ravel_multi_index(following, self.observation_sizes, mode="clip")
        return number.astype(state.dtype), served.astype(float), left <= 1

    def text(self, state: Int[Array, ""]) -> str:
        *waiting, van, condition, left = (int(entry) for entry in self.observe(jnp.asarray(state)))
        marks = {True: "[van]" if condition == OK else "[van!]", False: ""}
        places = (f"{DISTRICTS[d]} {waiting[d]} {marks[d == van]}".rstrip() for d in STREET)
        return f"{' - '.join(places)}; {left} steps left\n"

    def picture(self, state: Int[Array, ""], path: Sequence[Any] = ()) -> np.ndarray:
        del path
        *waiting, van, condition, left = map(int, np.unravel_index(int(state), self.observation_sizes))
        return draw_dispatch(waiting, ROOM, STREET, van, condition == OK, left / self.steps)
