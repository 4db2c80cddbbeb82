"""Networks on augmented states: an encoder, a multilayer perceptron, ν, and policies."""

from aetdice.networks.encoder import JOINT_LIMIT, Encoder
from aetdice.networks.heads import Categorical, GaussianMixture, PolicyHead
from aetdice.networks.nu import Nu
from aetdice.networks.perceptron import Kept, Perceptron, products_are_rounded
from aetdice.networks.policy import PolicyNetwork

__all__ = [
    "JOINT_LIMIT",
    "Categorical",
    "Encoder",
    "GaussianMixture",
    "Kept",
    "Nu",
    "Perceptron",
    "PolicyHead",
    "PolicyNetwork",
    "products_are_rounded",
]
