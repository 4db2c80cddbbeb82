"""Enumerate the augmented states (s, R_acc, t) that a MOMDP can reach."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from aetdice.errors import InputError
from aetdice.exact.grouping import TOLERANCE, number_integers, number_vectors
from aetdice.exact.momdp import TabularMOMDP

MAX_STATES = 20_000_000


@dataclass(frozen=True, eq=False)
class Layer:
    """The augmented states of one time step, and where the live ones lead."""

    state: Int[np.ndarray, " nodes"]
    accrued: Float[np.ndarray, "nodes m"]
    final: Bool[np.ndarray, " nodes"]
    live: Int[np.ndarray, " live"]
    successor: Int[np.ndarray, "live a k"]
    """Positions in the next layer; meaningless where the probability is 0."""

    def probability(self, momdp: TabularMOMDP) -> Float[np.ndarray, "live a k"]:
        return momdp.probability[self.state[self.live]]


@dataclass(frozen=True, eq=False)
class AugmentedSpace:
    """Layers t = 0 … H of reachable augmented states; an episode ends in a `final` one."""

    momdp: TabularMOMDP
    layers: tuple[Layer, ...]
    initial: Float[np.ndarray, " nodes"]

    @property
    def size(self) -> int:
        """How many augmented states a policy acts in or ends in."""
        return sum(layer.state.size for layer in self.layers)


def enumerate_space(momdp: TabularMOMDP, max_states: int = MAX_STATES) -> AugmentedSpace:
    """Every augmented state of positive probability under some policy."""
    rewards, reward_index = _distinct_rewards(momdp)
    state = np.flatnonzero(momdp.initial)
    table, accrued_index = np.zeros((1, momdp.reward.shape[3])), np.zeros(state.size, dtype=np.int64)
    layers: list[Layer] = []
    total = 0
    for t in range(momdp.horizon + 1):
        final = momdp.terminal[state] if t < momdp.horizon else np.ones(state.size, dtype=bool)
        live = np.flatnonzero(~final)
        total += state.size
        if total > max_states:
            raise InputError(
                f"more than {max_states:,} augmented states by step {t} of {momdp.horizon}; "
                "shorten the horizon, round the rewards, or raise max_states"
            )
        nodes = (state, table[accrued_index], final, live)
        if live.size == 0:
            layers.append(Layer(*nodes, np.zeros((0, momdp.actions, 1), dtype=np.int32)))
            break
        origin = state[live]
        possible = momdp.probability[origin] > 0
        pair = accrued_index[live, None, None] * len(rewards) + reward_index[origin]
        pairs, pair_index = number_integers(pair[possible])
        vectors = table[pairs // len(rewards)] + rewards[pairs % len(rewards)]
        vectors[np.abs(vectors) <= TOLERANCE * np.abs(vectors).max()] = 0
        first, vector_index = number_vectors(np.zeros(pairs.size, dtype=np.int64), vectors)
        node = momdp.next_state[origin][possible] * first.size + vector_index[pair_index]
        reached, node_index = number_integers(node)
        successor = np.zeros(possible.shape, dtype=np.int32)
        successor[possible] = node_index
        layers.append(Layer(*nodes, successor))
        state, accrued_index, table = reached // first.size, reached % first.size, vectors[first]
    return AugmentedSpace(momdp, tuple(layers), momdp.initial[layers[0].state])


def _distinct_rewards(
    momdp: TabularMOMDP,
) -> tuple[Float[np.ndarray, "rewards m"], Int[np.ndarray, "s a k"]]:
    flat = momdp.reward.reshape(-1, momdp.reward.shape[3])
    rewards, index = np.unique(flat, axis=0, return_inverse=True)
    return rewards, index.reshape(momdp.reward.shape[:3])
