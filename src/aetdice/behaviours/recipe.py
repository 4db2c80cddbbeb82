"""How a behaviour policy is trained: one frozen recipe, and what each body changes in it."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """Preference-conditioned PPO: environments × span steps between updates of epochs × minibatches."""

    steps: int = 8_000_000
    seed: int = 0
    environments: int = 512
    span: int = 32
    epochs: int = 8
    minibatches: int = 16
    hidden: tuple[int, ...] = (256, 256)
    discount: float = 0.99
    trace: float = 0.95
    """λ of the generalised advantage."""
    clip: float = 0.2
    learning_rate: float = 3e-4
    last_rate: float = 0.1
    """The learning rate falls linearly to this share of itself."""
    value_weight: float = 0.5
    largest_gradient: float = 0.5
    first_std: float = 0.6
    smallest_std: float = 0.3
    """Exploration never falls below it, in units of the action limits."""
    first_width: float = 0.1
    widening: float = 0.6
    """Preferences reach the whole simplex after this share of the training."""
    corners: float = 0.2
    """Share of the preferences that are drawn at the ends of the range, where neighbours are few."""
    least_weight: float = 0.02
    """Every objective counts at least this much, so that the ends of the front waste nothing."""
    grid: int = 51
    """Preferences of the card, equally far apart."""
    episodes: int = 8
    """Episodes of the card for each of them."""

    def __post_init__(self) -> None:
        for name in ("environments", "span", "epochs", "minibatches", "episodes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.steps < self.batch:
            raise InputError(f"a training has at least {self.batch} steps (one update), not {self.steps}")
        if self.batch % self.minibatches:
            raise InputError(f"{self.batch} steps cannot be cut into {self.minibatches} equal minibatches")
        if self.grid < 2:
            raise InputError(f"a card has at least both ends of the front, not {self.grid} preferences")

    @property
    def batch(self) -> int:
        """Steps between two updates."""
        return self.environments * self.span

    @property
    def iterations(self) -> int:
        return math.ceil(self.steps / self.batch)

    def width(self, iteration: int) -> float:
        """How much of the simplex preferences come from: near pure speed first, all of it later."""
        progress = min(1.0, iteration / (self.widening * self.iterations))
        return self.first_width + (1 - self.first_width) * progress

    def rate(self, iteration: int) -> float:
        """The learning rate of an iteration."""
        progress = iteration / self.iterations
        return self.learning_rate * (1 - (1 - self.last_rate) * progress)

    def adapted(self, steps: int | None, seed: int | None) -> "Recipe":
        """With other steps or another seed, where they are given."""
        return replace(
            self,
            steps=self.steps if steps is None else steps,
            seed=self.seed if seed is None else seed,
        )

    def record(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}


def draw_preferences(
    rng: np.random.Generator, count: int, objectives: int, width: float, corners: float
) -> Float[np.ndarray, "count m"]:
    """w = (1 - width) e_0 + width u, with u one of the corners or uniform on the simplex."""
    ends = np.eye(objectives)[rng.integers(objectives, size=count)]
    at_end = rng.random(count) < corners
    drawn = width * np.where(at_end[:, None], ends, rng.dirichlet(np.ones(objectives), count))
    drawn[:, 0] += 1 - width
    return drawn


RECIPES: dict[str, Recipe] = {
    "ant": Recipe(steps=8_000_000),
    # Standing still it should not lean back, which a little weight on speed sees to.
    "walker2d": Recipe(steps=12_000_000, seed=1, least_weight=0.05),
    # Beyond 4 m/s speed earns nothing, so at the front's fast end there is energy to save.
    "halfcheetah": Recipe(steps=16_000_000, least_weight=0.2),
    # Its limits are two and four times the others', and its steps are a hundredth of a second.
    "hopper": Recipe(steps=10_000_000, discount=0.995, first_std=0.4, smallest_std=0.12),
    # A stroke pays off later than a hundred steps.
    "swimmer": Recipe(steps=8_000_000, discount=0.998),
}
"""What the shipped policies are trained with, by body."""


def quick_recipe(body: str) -> Recipe:
    """A few minutes on two cores: enough to see learning, not for data."""
    return replace(
        RECIPES[body],
        steps=600_000,
        environments=64,
        epochs=6,
        minibatches=4,
        hidden=(64, 64),
        grid=11,
        episodes=4,
    )
