"""Every episode that can happen, with its probability: data without sampling error."""

import numpy as np

from aetdice import Episode, Episodes
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
