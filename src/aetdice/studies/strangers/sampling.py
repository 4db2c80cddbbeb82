"""J of policies by sampled episodes, where no exact evaluation is at hand."""

from collections.abc import Callable

from aetdice.evaluation import AnyEnvironment, Policy, sample_returns
from aetdice.objectives import Objective, in_float64

EPISODES, SEED = 1_000, 2026


def sampled_score(env: AnyEnvironment, episodes: int = EPISODES) -> Callable[[Policy, Objective], float]:
    def score(policy: Policy, objective: Objective) -> float:
        return float(in_float64(objective)(sample_returns(policy, env, episodes, SEED)))

    return score
