"""What recorded steps brought, by where they led: by those of its numbers that rewards depend on."""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import cKDTree

FAR = 3.0
"""A step is far if its nearest neighbour is so many median moves away, or so many times as far as
neighbours in the data are."""
NEIGHBOURS = 6
LOOKED_AT = 30
"""Nearest steps, of which those of the same episode do not count."""
ASKED, KNOWN = 2_000, 20_000
"""Steps whose rewards are foretold, and steps that foretell them, where numbers are chosen."""


class Arrivals:
    """The rewards of a dataset's steps by the states after them.

    A number of the state is left out if without it the nearest step of another episode foretells rewards
    no worse: what they do not depend on only keeps neighbours apart.
    """

    def __init__(
        self,
        arrival: Float[np.ndarray, "steps d"],
        reward: Float[np.ndarray, "steps m"],
        episode: Int[np.ndarray, " steps"],
    ) -> None:
        rng = np.random.default_rng(0)
        asked, known = (rng.permutation(len(arrival))[:count] for count in (ASKED, KNOWN))

        def foretold(numbers: list[int]) -> tuple[float, float]:
            return _foretold(arrival[:, numbers], reward, episode, asked, known)

        self.numbers = list(range(arrival.shape[1]))
        self.miss, usual = foretold(self.numbers)
        while len(self.numbers) > 1:
            fewer = [[n for n in self.numbers if n != out] for out in self.numbers]
            found = [foretold(numbers) for numbers in fewer]
            best = int(np.argmin([miss for miss, _ in found]))
            if found[best][0] > self.miss:
                break
            self.numbers, (self.miss, usual) = fewer[best], found[best]
        self.places = arrival[:, self.numbers]
        self.radius = FAR * usual
        self.tree = tree_of(self.places)

    def near(
        self, there: Float[np.ndarray, "n d"]
    ) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"], Float[np.ndarray, "n k p"]]:
        """The steps that led nearest there, how far they are, and in which direction."""
        wanted = there[:, self.numbers]
        far, rows = self.tree.query(wanted, k=np.arange(1, min(NEIGHBOURS, len(self.places)) + 1))
        return rows, far, self.places[rows] - wanted[:, None]


def _foretold(
    places: Float[np.ndarray, "steps p"],
    reward: Float[np.ndarray, "steps m"],
    episode: Int[np.ndarray, " steps"],
    asked: Int[np.ndarray, " n"],
    known: Int[np.ndarray, " k"],
) -> tuple[float, float]:
    """By how much the nearest step of another episode misses rewards, and how far most of them are.

    Infinitely much, where hardly any other episode comes near.
    """
    far, near = tree_of(places[known]).query(places[asked], k=np.arange(1, min(LOOKED_AT, len(known)) + 1))
    rows, far = nearest_of_another(known[near], far, episode, asked)
    there = np.isfinite(far)
    if 2 * there.sum() < len(asked):
        return np.inf, 0.0
    misses = (reward[rows] - reward[asked])[there] ** 2
    return float(misses.sum(axis=1).mean()), float(np.quantile(far[there], 0.9))


def nearest_of_another(
    near: Int[np.ndarray, "n k"],
    distance: Float[np.ndarray, "n k"],
    episode: Int[np.ndarray, " steps"],
    rows: Int[np.ndarray, " n"],
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The nearest step of another episode, and how far it is."""
    apart = np.where(episode[near] != episode[rows][:, None], distance, np.inf)
    best = apart.argmin(axis=1)
    return near[np.arange(len(near)), best], apart.min(axis=1)


def tree_of(points: Float[np.ndarray, "n d"]) -> cKDTree:
    """Split in the middle, not at the median: twice as fast where many steps are from one place."""
    return cKDTree(points, balanced_tree=False, compact_nodes=False)
