"""The augmented state (s, R_acc, t) and the transformed reward r̃: computed here and nowhere else."""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from aetdice.data.episodes import Episodes
from aetdice.errors import InputError
from aetdice.objectives import Utility, in_float64


@dataclass(frozen=True, eq=False)
class Transitions:
    """Every stored step with its augmented states, in float64.

    `bootstraps` is false where ν' = 0: after termination and at the horizon. `weights` sum to
    the mass of each time step: 1/N for whole episodes (see `censoring_weights`).
    """

    observations: Shaped[np.ndarray, "steps *o"]
    accrued: Float[np.ndarray, "steps m"]
    time: Int[np.ndarray, " steps"]
    actions: Shaped[np.ndarray, "steps *a"]
    transformed_rewards: Float[np.ndarray, "steps n"]
    next_observations: Shaped[np.ndarray, "steps *o"]
    next_accrued: Float[np.ndarray, "steps m"]
    terminated: Bool[np.ndarray, " steps"]
    bootstraps: Bool[np.ndarray, " steps"]
    weights: Float[np.ndarray, " steps"]
    initial: Int[np.ndarray, " episodes"]
    zero_utility: Float[np.ndarray, " n"]


def augment(episodes: Episodes, utility: Utility, horizon: int) -> Transitions:
    """The dataset on augmented states, Σ_t r̃_t = F(R) - F(0) for every episode.

    An end by design (`ends="shift"`) is a termination here.
    """
    episodes = episodes.settled()
    check_horizon(episodes, horizon)
    accrued, next_accrued = accrue(episodes)
    frames = np.arange(episodes.steps) + np.repeat(np.arange(len(episodes)), episodes.lengths)
    time = np.arange(episodes.steps) - np.repeat(episodes.starts, episodes.lengths)
    last = episodes.starts + episodes.lengths - 1
    terminated = np.zeros(episodes.steps, dtype=bool)
    terminated[last] = episodes.terminated
    return Transitions(
        observations=episodes.observations[frames],
        accrued=accrued,
        time=time,
        actions=episodes.actions,
        transformed_rewards=in_float64(transformed_rewards)(utility, accrued, next_accrued),
        next_observations=episodes.observations[frames + 1],
        next_accrued=next_accrued,
        terminated=terminated,
        bootstraps=~terminated & (time + 1 < horizon),
        weights=censoring_weights(episodes, horizon)[time],
        initial=episodes.starts,
        zero_utility=np.asarray(in_float64(utility)(np.zeros(episodes.rewards.shape[1]))),
    )


def transformed_rewards(
    utility: Utility, accrued: Float[Array, "steps m"], next_accrued: Float[Array, "steps m"]
) -> Float[Array, "steps n"]:
    """r̃ = F(R_acc + r) - F(R_acc) (paper: def:augmented_reward), at t = 0 too: D10 of docs/paper.md."""
    return jax.vmap(utility)(next_accrued) - jax.vmap(utility)(accrued)


def accrue(episodes: Episodes) -> tuple[Float[np.ndarray, "steps m"], Float[np.ndarray, "steps m"]]:
    """R_acc before and after every step, summed in the order the rewards came."""
    after = _accrued_after(episodes.rewards, episodes.lengths)
    before = np.roll(after, 1, axis=0)
    before[episodes.starts] = 0
    return before, after


def accrued_at_frames(
    rewards: Float[np.ndarray, "steps m"], lengths: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "frames m"]:
    """R_acc at every observation of consecutive episodes, the one after the last step included."""
    first = np.cumsum(lengths) - lengths + np.arange(len(lengths))
    found = np.empty((len(rewards) + len(lengths), rewards.shape[1]))
    found[first] = 0
    after = np.ones(len(found), bool)
    after[first] = False
    found[after] = _accrued_after(rewards, lengths)
    return found


def _accrued_after(
    rewards: Float[np.ndarray, "steps m"], lengths: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "steps m"]:
    ends = np.cumsum(lengths).tolist()
    return np.concatenate(
        [
            np.cumsum(rewards[end - length : end], axis=0)
            for end, length in zip(ends, lengths.tolist(), strict=True)
        ]
    )


def censoring_weights(episodes: Episodes, horizon: int) -> Float[np.ndarray, " horizon"]:
    """The weight of a step at each t: 1/(N Q_t), Q_t the share not yet cut off.

    An episode that stops before the horizon without terminating is censored: what would have
    followed was not recorded. Q_t is the product-limit (Kaplan-Meier) estimate
    Π_{u≤t} (1 - censored at u / could have gone on to u), so that the mass at t,
    c_t = Σ_{steps at t} weight, satisfies c_{t+1} = c_t - (mass that terminates at t) for any
    mix of terminations and cuts. Without terminations N Q_t is the number of episodes not
    censored by t; without cuts it is N. It assumes that cuts do not depend on the behaviour (D14 of
    docs/paper.md).
    """
    episodes = episodes.settled()
    censored = episodes.truncated & ~episodes.terminated & (episodes.lengths < horizon)
    going_on = (
        len(episodes)
        - np.cumsum(np.bincount(episodes.lengths, minlength=horizon + 1))[:horizon]
        + np.bincount(episodes.lengths[censored], minlength=horizon + 1)[:horizon]
    )
    cut = np.bincount(episodes.lengths[censored], minlength=horizon + 1)[:horizon]
    kept = np.cumprod(1 - cut / np.maximum(going_on, 1))
    with np.errstate(divide="ignore"):
        return 1 / (len(episodes) * kept)


def check_horizon(episodes: Episodes, horizon: int) -> None:
    if horizon < 1:
        raise InputError(f"the horizon must be at least 1, not {horizon}")
    longest = int(np.argmax(episodes.lengths))
    if episodes.lengths[longest] > horizon:
        raise InputError(
            f"episode {longest} has {episodes.lengths[longest]} steps, more than the horizon of {horizon}"
        )
