"""Rewards: copies, shifts by a row, lengths that pay, and which objectives they allow."""

import itertools

import numpy as np
from jaxtyping import Float, Int

from aetdice.data.doctor.findings import Finding
from aetdice.data.episodes import Episodes

ROWS = 20_000
MOST_PRODUCTS, INDICATORS = 200, 16
BETTER, EXPLAINED = 4.0, 0.5
"""A shift is reported if the other row's step explains this share, and leaves this much less unexplained."""


def reward_findings(episodes: Episodes) -> list[Finding]:
    return [*_copies(episodes), *_shifted(episodes), *_by_length(episodes), *_feasible(episodes)]


def _copies(episodes: Episodes) -> list[Finding]:
    found = []
    rewards = episodes.rewards[:: max(1, episodes.steps // 1_000_000)]
    spread = rewards.std(axis=0)
    for index in np.flatnonzero(spread <= 1e-12 * (1 + np.abs(rewards).max(axis=0))):
        words = f"always {rewards[0, index]:g}: no action changes it"
        found.append(
            Finding("constant objective", "warning", f"objective {episodes.objectives[index]!r}", words)
        )
    for i, j in itertools.combinations(np.flatnonzero(spread > 0).tolist(), 2):
        a, b = rewards[:, i] - rewards[:, i].mean(), rewards[:, j] - rewards[:, j].mean()
        slope = (a @ b) / (a @ a)
        if np.abs(b - slope * a).max() <= 1e-9 * np.abs(b).max():
            relation = {1.0: "a copy of", -1.0: "the negative of"}.get(
                round(float(slope), 9), f"{slope:.4g} times (and a constant)"
            )
            words = f"is {relation} {episodes.objectives[i]!r}: it adds nothing to choose between"
            found.append(Finding("copy", "warning", f"objective {episodes.objectives[j]!r}", words))
    return found


def _shifted(episodes: Episodes) -> list[Finding]:
    """Is a reward explained by the step of the row before, or after, much better than by its own?

    Least squares on observation, action and their products; a reward that depends on neither, or on
    both rows alike (slowly changing observations), is not reported.
    """
    long = episodes.lengths >= 3
    if not long.any():
        return []
    starts, lengths = episodes.starts[long], episodes.lengths[long]
    inner = np.repeat(starts + 1, lengths - 2) + _within(lengths - 2)
    episode = np.repeat(np.flatnonzero(long), lengths - 2)
    pick = slice(None, None, max(1, len(inner) // ROWS))
    rows, frames = inner[pick], inner[pick] + episode[pick]
    features = {shift: _features(episodes, rows + shift, frames + shift) for shift in (-1, 0, 1)}
    if len(rows) < 10 * features[0].shape[1]:
        return []
    rewards, found = episodes.rewards[rows], []
    unexplained = {shift: _unexplained(each, rewards) for shift, each in features.items()}
    for index, name in enumerate(episodes.objectives):
        total = float(np.var(rewards[:, index]))
        if total <= 1e-12:
            continue
        left = {shift: float(each[index]) / total for shift, each in unexplained.items()}
        for shift, words in (
            (-1, "before: it stands one row too late"),
            (1, "after: it stands one row too early"),
        ):
            if 1 - left[shift] > EXPLAINED and left[0] > BETTER * max(left[shift], 1e-9) and left[0] > 0.05:
                found.append(
                    Finding(
                        "shifted reward",
                        "warning",
                        f"objective {name!r}",
                        f"the row's own step explains {1 - left[0]:.0%} of the reward, but "
                        f"{1 - left[shift]:.0%} does the step of the row {words}, perhaps",
                    )
                )
    return found


def _within(counts: Int[np.ndarray, " n"]) -> Int[np.ndarray, " rows"]:
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _features(
    episodes: Episodes, rows: Int[np.ndarray, " k"], frames: Int[np.ndarray, " k"]
) -> Float[np.ndarray, "k f"]:
    """Observations, their squares, actions, and as many products of the two as can be fitted."""
    observed = episodes.observations[frames].reshape(len(rows), -1)
    acted = episodes.actions[rows].reshape(len(rows), -1)
    wide = max(1, min(INDICATORS, MOST_PRODUCTS // observed.shape[1]))
    seen = np.concatenate([_one_hot(observed[:, i], wide) for i in range(observed.shape[1])], axis=1)
    if observed.dtype.kind == "f":
        seen = np.concatenate([seen, seen**2], axis=1)
    done = np.concatenate([_one_hot(acted[:, i], INDICATORS) for i in range(acted.shape[1])], axis=1)
    most = min(MOST_PRODUCTS, len(rows) // 20) // done.shape[1]
    products = (seen[:, :most, None] * done[:, None, :]).reshape(len(rows), -1)
    return np.concatenate([np.ones((len(rows), 1)), seen, done, products], axis=1)


def _one_hot(values: Float[np.ndarray, " k"] | Int[np.ndarray, " k"], most: int) -> Float[np.ndarray, "k f"]:
    """Whole numbers as indicators of the commonest, others standardised."""
    if values.dtype.kind in "iu":
        common = np.argsort(-np.bincount(values - values.min()))[:most] + values.min()
        return (values[:, None] == common[None]).astype(np.float64)
    spread = float(values.std()) or 1.0
    return ((values - values.mean()) / spread).astype(np.float64)[:, None]


def _unexplained(
    features: Float[np.ndarray, "k f"], rewards: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, " m"]:
    gram = features.T @ features + 1e-9 * len(rewards) * np.eye(features.shape[1])
    weights = np.linalg.solve(gram, features.T @ rewards)
    return np.mean((rewards - features @ weights) ** 2, axis=0)


def _by_length(episodes: Episodes) -> list[Finding]:
    """A reward that every step brings makes a longer episode better or worse by itself."""
    found = []
    lengths = episodes.lengths
    if lengths.std() < 0.05 * lengths.mean():
        return []
    for index, name in enumerate(episodes.objectives):
        column = episodes.rewards[:, index]
        low, high = float(column.min()), float(column.max())
        if low > 0 or high < 0:
            least = low if low > 0 else high
            bound, gain = ("at least", "lasting") if low > 0 else ("at most", "ending early")
            words = (
                f"every step brings {bound} {least:g}, so episodes gain by {gain}; subtracting a constant "
                "changes any nonlinear objective, because lengths differ"
            )
            found.append(Finding("length", "note", f"objective {name!r}", words))
    return found


def _feasible(episodes: Episodes) -> list[Finding]:
    """Logarithms need positive returns; where there are none, J rests on its continuation."""
    found = []
    returns = episodes.returns
    for index, name in enumerate(episodes.objectives):
        column = returns[:, index]
        below, negative = float(np.mean(column < 1)), float(np.mean(column <= 0))
        where = f"objective {name!r}"
        if column.mean() <= 0:
            words = (
                f"mean return {column.mean():.4g}: log E[R] (ser) does not exist, and esr and bsr rest on "
                "their continuation; lsr, or an own F, fits"
            )
            found.append(Finding("feasible", "warning", where, words))
        elif below > 0.05:
            words = (
                f"{below:.0%} of the returns are below 1 ({negative:.0%} not positive), where esr and bsr "
                "continue the logarithm: choose a --threshold, or lsr or ser"
            )
            found.append(Finding("feasible", "note", where, words))
    return found
