"""Behaviour policies of the D4MORL bodies: training, and datasets by D4MORL's protocol."""

from aetdice.behaviours.behaviour import Behaviour, load_behaviour
from aetdice.behaviours.collection import collect_body
from aetdice.behaviours.ppo_training import train_behaviour
from aetdice.behaviours.recipe import RECIPES, Recipe, quick_recipe

__all__ = [
    "RECIPES",
    "Behaviour",
    "Recipe",
    "collect_body",
    "load_behaviour",
    "quick_recipe",
    "train_behaviour",
]
