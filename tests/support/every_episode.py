"""Every episode that can happen, with its probability: data without sampling error."""

import numpy as np

from aetdice import Episode, Episodes
from aetdice.estimation.acting import DiscreteActing
from aetdice.exact import AugmentedSpace, TabularPolicy


def every_episode(policy: TabularPolicy) -> tuple[Episodes, np.ndarray]:
    """All episodes of positive probability, and how likely each is."""
    momdp, space = policy.space.momdp, policy.space
    done: list[tuple[Episode, float]] = []

    def go_on(states, actions, rewards, node, chance):
        time = len(actions)
        layer = space.layers[time]
        if layer.final[node]:
            over = bool(momdp.terminal[states[-1]])
            frames = momdp.observations[states]
            done.append((Episode(frames, np.array(actions), np.array(rewards), over, not over), chance))
            return
        row = int(np.searchsorted(layer.live, node))
        for action, likely in enumerate(policy.probabilities[time][row]):
            for branch, share in enumerate(momdp.probability[states[-1], action]):
                if likely * share > 0:
                    there = momdp.next_state[states[-1], action, branch]
                    reward = momdp.reward[states[-1], action, branch]
                    after = int(layer.successor[row, action, branch])
                    go_on(
                        [*states, there],
                        [*actions, action],
                        [*rewards, reward],
                        after,
                        chance * likely * share,
                    )

    for node, chance in enumerate(space.initial):
        if chance > 0:
            go_on([space.layers[0].state[node]], [], [], node, chance)
    return Episodes.from_list([episode for episode, _ in done]), np.array([chance for _, chance in done])


def random_policy(space: AugmentedSpace, seed: int, least: float = 0.1) -> TabularPolicy:
    """Random probabilities in every augmented state, none of them small."""
    rng, actions = np.random.default_rng(seed), space.momdp.actions
    shares = [rng.dirichlet(np.ones(actions), layer.live.size) for layer in space.layers[:-1]]
    return TabularPolicy(space, [least / actions + (1 - least) * rows for rows in shares])


class TableActing(DiscreteActing):
    """A tabular policy as estimators ask it; anything goes where it is never."""

    def __init__(self, policy: TabularPolicy) -> None:
        space, rows, chances = policy.space, [], []
        for time, layer in enumerate(space.layers[:-1]):
            seen = space.momdp.observations[layer.state[layer.live]]
            now = np.full(len(seen), time)
            rows.append(np.column_stack([seen, layer.accrued[layer.live], now]))
            chances.append(policy.probabilities[time])
        table = np.concatenate(rows)
        self.mark = np.random.default_rng(0).uniform(1, 2, table.shape[1])
        order = np.argsort(table @ self.mark)
        self.marks, self.chances = (table @ self.mark)[order], np.concatenate(chances)[order]

    def probabilities(self, states):
        wanted = np.column_stack(states) @ self.mark
        place = np.clip(np.searchsorted(self.marks, wanted - 1e-7), 0, len(self.marks) - 1)
        found = np.abs(self.marks[place] - wanted) < 2e-7
        return np.where(found[:, None], self.chances[place], 1 / self.chances.shape[1])
