"""What the data say of a trained policy: played in the recorded transitions, or beside nearest neighbours."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from aetdice.data import Episodes, accrue
from aetdice.data.neighbours import misses, near_steps
from aetdice.data.noise import chance_share
from aetdice.data.successors import frames_before
from aetdice.estimation.acting import acting_of
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.models import model_of
from aetdice.evaluation import Policy
from aetdice.objectives import Objective, in_float64

FEW, MANY = 1_000, 40_000
"""Episodes of every policy in the model: many where settings are told apart, and may differ by little."""
FEW_NEAREST, MANY_NEAREST = 300, 500
"""The same where each step looks for its nearest neighbours."""
SURE = 1e-3
"""With less noise, what follows a step is known."""
SEED = 0


class Evidence:
    """A dataset as a witness: the same for all members of a population."""

    def __init__(
        self,
        dataset: Episodes,
        horizon: int,
        pooled: bool,
        settings: int,
        possible: Mapping[str, float] | None = None,
    ) -> None:
        self.dataset, self.pooled, self.possible = dataset, pooled, possible or {}
        self.model = model_of(dataset, horizon)
        few, many = (FEW, MANY) if isinstance(self.model, CountedModel) else (FEW_NEAREST, MANY_NEAREST)
        self.episodes = many if settings > 1 else few
        self.neighbours = near_steps(dataset) if self.model is None else None
        self.noise = 0.0 if pooled else chance_share(dataset)
        self.chance = pooled or self.noise > SURE

    def of_twin(self, twin: Policy) -> dict[str, float]:
        """How much further cloning's actions are from those taken than neighbours' are, relatively."""
        if self.neighbours is None:
            return {}
        asked, near = self.neighbours
        time = np.arange(self.dataset.steps) - np.repeat(self.dataset.starts, self.dataset.lengths)
        frames = self.dataset.observations.reshape(len(self.dataset.observations), -1)
        drawn = twin.sample(
            frames[frames_before(self.dataset)[asked]],
            accrue(self.dataset)[0][asked].astype(np.float32),
            time[asked],
            jax.random.key(SEED),
        )
        taken = self.dataset.actions
        plain = misses(taken[asked], taken[near])
        return {"cloning_shortfall": misses(taken[asked], np.asarray(drawn)) / max(plain, 1e-6) - 1}

    def of_policy(
        self, policy: Policy, objective: Objective, diagnostics: Mapping[str, Any], horizon: bool
    ) -> dict[str, float]:
        """J of data and policy in the model, the share of what is possible that is lost, and the doubt.

        Where there is chance, the model is off by about as much as the data's own J is uncertain. Possible is
        what recorded and joined episodes hold, or else what the weights claim, which is in the units of J for
        flows with a horizon only.
        """
        known = {"noise": self.noise, "episodes": len(self.dataset)}
        if self.model is None:
            return known
        data = objective.score(self.dataset.returns, jax.random.key(SEED))
        played = self.model.play(acting_of(policy), self.episodes, SEED)
        value = float(in_float64(objective)(played.returns))
        gain = max(value - float(data.value), 1e-12)
        claimed = diagnostics.get("claimed_value") if horizon else None
        possible = self.possible.get(objective.name, claimed)
        open_ = 0.0 if possible is None else possible - float(data.value)
        return known | {
            "data_value": float(data.value),
            "model_value": value,
            "model_unknown": played.unknown,
            "model_uncertainty": float(data.high - data.low) / 2 / gain if self.chance else 0.0,
            "possible_value": value if possible is None else possible,
            "lost_share": 0.0 if open_ <= 0 else 1 - gain / open_,
        }
