"""Checkpoints: the arrays of a tree in one NPZ file, written whole, read without unpickling."""

from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from aetdice.errors import InputError
from aetdice.results import write_arrays

T = TypeVar("T")


def save_tree(path: Path, tree: Any) -> None:
    """Every array leaf, in order."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    write_arrays(path, {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})


def read_arrays(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The plain arrays of an NPZ file; `ValueError` where it is anything else."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except (EOFError, BadZipFile, TypeError, AttributeError) as error:
        raise ValueError(f"not a whole NPZ file: {error}") from error


def load_tree(path: Path, like: T) -> T:
    """The leaves of a saved tree in the structure of `like`, which must fit in every shape."""
    arrays, rest = eqx.partition(like, eqx.is_array)
    expected, structure = jax.tree.flatten(arrays)
    try:
        found = read_arrays(path)
        leaves = [found[f"leaf{i}"] for i in range(len(found))]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a checkpoint: {error}") from error
    shapes = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if shapes != [(leaf.shape, leaf.dtype) for leaf in expected]:
        raise InputError(f"{path} was written by a run with another configuration")
    return eqx.combine(jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves]), rest)
