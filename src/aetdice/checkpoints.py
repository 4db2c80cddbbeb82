"""Checkpoints: the arrays of a tree in one NPZ file, written whole, read without unpickling."""

from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from aetdice.errors import InputError
from aetdice.results import write_arrays

T = TypeVar("T")


def save_tree(path: Path, tree: Any) -> None:
    """Every array leaf, in order."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    write_arrays(path, {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})


def load_tree(path: Path, like: T) -> T:
    """The leaves of a saved tree in the structure of `like`, which must fit in every shape."""
    arrays, rest = eqx.partition(like, eqx.is_array)
    expected, structure = jax.tree.flatten(arrays)
    try:
        with np.load(path, allow_pickle=False) as archive:
            leaves = [archive[f"leaf{i}"] for i in range(len(archive.files))]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a checkpoint: {error}") from error
    shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if shapes != [(leaf.shape, leaf.dtype) for leaf in expected]:
        raise InputError(f"{path} was written by a run with another configuration")
    return eqx.combine(jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves]), rest)
