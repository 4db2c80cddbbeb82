"""How episodes end, what they cover, and whether the same step leads to different places."""

import numpy as np
from scipy.spatial import cKDTree

from aetdice.data.doctor.findings import Finding, Level
from aetdice.data.ends import HEAVIEST, heaviest
from aetdice.data.episodes import Episodes
from aetdice.data.successors import distinct_outcomes

FEWEST = 20
QUERIES, POINTS, NEIGHBOURS = 1_000, 20_000, 8
NEAR, APART = 0.1, 0.3
"""Of standard deviations: how near two steps are to count as the same, and how far apart their outcomes."""


def dynamics_findings(episodes: Episodes, said: bool = True) -> list[Finding]:
    """`said` is whether the meaning of truncated ends was, or only guessed."""
    return [*_ends(episodes, said), *_coverage(episodes), *_stochastic(episodes)]


def _ends(episodes: Episodes, said: bool) -> list[Finding]:
    found = []
    lengths, over = episodes.lengths, episodes.terminated
    longest = int(lengths.max())
    at_limit = over & (lengths == longest)
    if at_limit.sum() >= 5 and at_limit.sum() > 0.5 * over.sum() and longest > 1:
        words = (
            f"{int(at_limit.sum()):,} of {int(over.sum()):,} terminated episodes end exactly at the longest "
            f"length, {longest}: a time-out flagged as the end? Then they are truncated"
        )
        found.append(Finding("time-out", "warning", "terminated", words, int(at_limit.sum())))
    early = episodes.truncated & ~over & (lengths < longest)
    if not early.any():
        return found
    common, counts = np.unique(lengths[early], return_counts=True)
    count, weight = int(early.sum()), heaviest(lengths, early, longest)
    if counts.max() >= 5 and counts.max() > 0.9 * count:
        words = (
            f"{int(counts.max()):,} episodes are truncated at {common[counts.argmax()]} steps, others last "
            f"to {longest}: two time limits in one log?"
        )
        found.append(Finding("time-out", "note", "truncated", words, count))
    level: Level = "note" if said and (episodes.ends == "shift" or weight <= HEAVIEST) else "warning"
    meaning = (
        "nothing follows them" if episodes.ends == "shift"
        else f"what follows is made up for by other episodes, whose steps count up to {weight:.3g}-fold"
    )  # fmt: skip
    taken, ask = ("", "") if said else ("taken for ", "; --ends shift or --ends recording says which")
    words = f"{count:,} episodes are truncated before step {longest}, {taken}ends by {_by(episodes)}: "
    words += meaning + ask
    found.append(Finding("ends", level, "truncated", words, count))
    return found


def _by(episodes: Episodes) -> str:
    return "design (shift)" if episodes.ends == "shift" else "the recording (recording)"


def _coverage(episodes: Episodes) -> list[Finding]:
    """How many episodes tell of late steps, and how much of accrued reward by time was visited."""
    found = []
    longest = int(episodes.lengths.max())
    late = int(np.sum(episodes.lengths > 0.75 * longest))
    if late < FEWEST or late < 0.02 * len(episodes):
        words = (
            f"{late:,} of {len(episodes):,} episodes last beyond three quarters of the longest ({longest} "
            "steps): little is known of late steps"
        )
        found.append(Finding("coverage", "warning", "time", words, late))
    time = np.arange(episodes.steps) - np.repeat(episodes.starts, episodes.lengths)
    shares = []
    for index in range(episodes.rewards.shape[1]):
        total = np.cumsum(episodes.rewards[:, index])
        before = total - episodes.rewards[:, index]
        accrued = before - np.repeat(before[episodes.starts], episodes.lengths)
        low, high = float(accrued.min()), float(accrued.max())
        rows = np.minimum(10 * time // longest, 9)
        bins = np.minimum((10 * (accrued - low) / max(high - low, 1e-12)).astype(np.int64), 9)
        counts = np.bincount(rows * 10 + bins, minlength=100)
        shares.append(f"{episodes.objectives[index]} {np.mean(counts >= FEWEST):.0%}")
    words = f"cells of accrued reward by time (10 × 10) with {FEWEST} steps or more: {', '.join(shares)}"
    found.append(Finding("coverage", "note", "accrued reward and time", words))
    return found


def _stochastic(episodes: Episodes) -> list[Finding]:
    discrete = distinct_outcomes(episodes)
    if discrete is not None:
        repeated, differing = discrete
        if repeated == 0:
            return []
        share = differing / repeated
        words = (
            f"of {repeated:,} states and actions seen more than once, {share:.0%} led to different outcomes"
        )
        verdict = "transitions are stochastic" if share > 0.01 else "transitions look deterministic"
        return [Finding("stochastic", "note", "transitions", f"{verdict}: {words}")]
    return _stochastic_nearby(episodes)


def _stochastic_nearby(episodes: Episodes) -> list[Finding]:
    """Where continuous steps nearly meet, do their outcomes?"""
    rows = np.unique(np.linspace(0, episodes.steps - 1, POINTS).astype(np.int64))
    episode = np.searchsorted(episodes.starts, rows, side="right") - 1
    last = rows == episodes.starts[episode] + episodes.lengths[episode] - 1
    rows, episode = rows[~last], episode[~last]
    if len(rows) < 100:
        return []
    frames = rows + episode
    seen = episodes.observations[frames].reshape(len(rows), -1).astype(np.float64)
    change = episodes.observations[frames + 1].reshape(len(rows), -1) - seen
    acted = episodes.actions[rows].reshape(len(rows), -1).astype(np.float64)
    acted = acted if episodes.actions.dtype.kind == "f" else 1e3 * acted  # other classes are never near
    points = np.concatenate(
        [_scaled(seen), _scaled(acted) if episodes.actions.dtype.kind == "f" else acted], axis=1
    )
    queries = np.linspace(0, len(rows) - 1, min(QUERIES, len(rows))).astype(np.int64)
    reach = NEAR * np.sqrt(points.shape[1])
    distance, nearest = cKDTree(points).query(points[queries], k=NEIGHBOURS, distance_upper_bound=reach)
    there = distance < reach
    # Steps of one episode are near each other without telling anything.
    there &= episode[np.minimum(nearest, len(rows) - 1)] != episode[queries][:, None]
    near, other = there.any(axis=1), nearest[np.arange(len(queries)), there.argmax(axis=1)]
    if near.sum() < 50:
        return []
    moved = _scaled(change)
    apart = np.sqrt(np.mean((moved[queries[near]] - moved[other[near]]) ** 2, axis=1))
    verdict = "look stochastic" if np.median(apart) > APART else "look deterministic"
    words = (
        f"transitions {verdict}: where two steps nearly meet ({int(near.sum()):,} pairs), what follows "
        f"differs by {np.median(apart):.2g} standard deviations of a step's change"
    )
    return [Finding("stochastic", "note", "transitions", words)]


def _scaled(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
