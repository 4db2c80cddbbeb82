"""Training from data that stays on disk: the rows of a few hundred updates at a time, read ahead of them.

Rows are drawn as they are from data in memory, gathered from the mapped files while the
device works on the updates before, and handed to the same update. Passes over all steps go block by block.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped, UInt32

from aetdice.algorithms import Algorithm
from aetdice.algorithms.cloning import CloningState
from aetdice.algorithms.sampling import Shown, rows_of_bits
from aetdice.algorithms.streamed import check_streams
from aetdice.config import ExtractionConfig, TrainingConfig
from aetdice.data import Episodes
from aetdice.data.device import DeviceData
from aetdice.data.mapping import release, return_freed_memory
from aetdice.data.stored import STREAMED_BYTES, StoredSteps, bytes_of, is_mapped
from aetdice.data.successors import pooled_outcomes
from aetdice.errors import InputError
from aetdice.learning.draws import Draws, Sample, sample_of
from aetdice.learning.population import draw_values, train_policies, update_values

READ_BYTES = 1 << 24
"""Of rows that are read ahead."""


def may_stay(dataset: Episodes, config: TrainingConfig) -> bool:
    """Whether a dataset is to stay on disk if it can: as told, or because it is a large store."""
    wanted = config.trainer.streaming
    return is_mapped(dataset) and bytes_of(dataset) > STREAMED_BYTES if wanted is None else wanted


def check_wanted(algorithm: Algorithm, config: TrainingConfig) -> None:
    """`InputError` if data has to stay on disk for an algorithm that needs it in memory."""
    try:
        check_streams(algorithm)
    except InputError as error:
        if config.trainer.streaming:
            raise InputError(f"trainer.streaming: {error}") from error


def streams(
    dataset: Episodes, some: Episodes, algorithm: Algorithm, config: TrainingConfig, held: float
) -> tuple[bool, str]:
    """Whether a dataset stays on disk, and what to say about it.

    `some` are its episodes to look for chance in, and `held` is the share held out.
    """
    if not may_stay(dataset, config):
        return False, ""
    shown = f"{bytes_of(dataset) / 2**30:.2g} GiB of data"
    try:
        check_streams(algorithm)
        if held:
            raise InputError("episodes cannot be held out of data that stays on disk; say trainer.holdout=0")
        if config.ablation.weighted_loss:
            raise InputError("ablation.weighted_loss needs all data in memory")
        if algorithm.pools and pooled_outcomes(some, some) is not None:
            raise InputError("outcomes of stochastic transitions are pooled over all data in memory")
    except InputError as error:
        if config.trainer.streaming is None:
            return False, f"{shown} into memory ({error})"
        raise InputError(f"trainer.streaming: {error}") from error
    return_freed_memory()
    return True, f"{shown} on disk, read ahead of the updates"


class Reader:
    """Rows for updates, gathered in a thread while the updates before them run."""

    def __init__(self, stored: StoredSteps) -> None:
        self.stored, self.index = stored, stored.index()
        self.thread = ThreadPoolExecutor(1)
        self.coming: dict[tuple[Any, ...], Future[Any]] = {}
        row = sum(
            leaf.dtype.itemsize * int(np.prod(leaf.shape[1:]))
            for leaf in jax.tree.leaves(jax.eval_shape(self.index.steps.everything))
        )
        self.most_rows = max(1, READ_BYTES // row)

    def close(self) -> None:
        self.thread.shutdown(cancel_futures=True)

    def train_values(
        self,
        states: Any,
        algorithm: Algorithm,
        hypers: Any,
        seeds: Int[Array, " members"],
        steps: Int[Array, " chunk"],
        total: int,
    ) -> Any:
        """`train_values`, with rows from the disk."""
        distinct, which = np.unique(np.asarray(seeds), return_inverse=True)
        each = jnp.asarray(distinct)

        def read(now: Int[Array, " updates"]) -> tuple[DeviceData, Any]:
            drawn = jax.tree.map(np.asarray, draw_values(algorithm, each, self.index, now))
            leaves, structure = jax.tree.flatten(drawn)
            data, found = self._gathered(leaves)
            # Members of one seed look at the same rows: they are read once.
            return data, jax.tree.unflatten(structure, [jnp.asarray(leaf[:, which]) for leaf in found])

        def update(states: Any, ready: tuple[DeviceData, Any], now: Int[Array, " updates"]) -> Any:
            return update_values(states, algorithm, hypers, ready[0], ready[1], now)

        rows = jax.eval_shape(lambda: draw_values(algorithm, each, self.index, steps[:1]))
        size = self.most_rows // max(1, sum(leaf.size for leaf in jax.tree.leaves(rows)))
        return self._run(("values",), read, update, states, steps, size, total)

    def train_policies(
        self,
        states: CloningState,
        draws: Draws,
        rates: Float[Array, " policies"],
        seeds: Int[Array, " policies"],
        steps: Int[Array, " chunk"],
        config: ExtractionConfig,
    ) -> CloningState:
        """`train_policies`, with rows from the disk."""

        def read(now: Int[Array, " updates"]) -> tuple[DeviceData, Shown]:
            shown = draws.of(int(now[0]), int(now[-1]) + 1)
            data, (rows,) = self._gathered([np.asarray(shown.rows)])
            return data, shown._replace(rows=jnp.asarray(rows))

        def update(states: Any, ready: tuple[DeviceData, Shown], now: Int[Array, " updates"]) -> Any:
            return train_policies(states, ready[1], rates, seeds, ready[0], now, config)

        size = self.most_rows // (config.batch * draws.policies)
        found: CloningState = self._run(("policies",), read, update, states, steps, size, config.steps)
        return found

    def sample(self, shown: Shown) -> Sample:
        """The steps that a policy is shown."""
        data, (rows,) = self._gathered([np.asarray(shown.rows)])
        return sample_of(data.steps, shown._replace(rows=jnp.asarray(rows)))

    def _run(
        self,
        name: tuple[Any, ...],
        read: Callable[[Any], Any],
        update: Callable[[Any, Any, Any], Any],
        states: Any,
        steps: Int[Array, " chunk"],
        size: int,
        total: int,
    ) -> Any:
        """The updates of a chunk in pieces; while one runs, the next is read, be it of the next chunk."""
        first, after = int(steps[0]), int(steps[-1]) + 1
        size = -(-len(steps) // -(-len(steps) // max(1, size)))  # pieces of one size: each is compiled for

        def piece(begin: int, end: int) -> Future[Any]:
            coming = self.coming.pop((*name, begin, end), None)
            return coming or self.thread.submit(read, jnp.arange(begin, end))

        begin = first
        while begin < after:
            end = min(begin + size, after)
            ready = piece(begin, end).result()
            onward = min(end + size, after) if end < after else min(end + size, end + len(steps), total)
            if onward > end:
                self.coming[(*name, end, onward)] = piece(end, onward)
            states = update(states, ready, jnp.arange(begin, end))
            begin = end
        return_freed_memory()
        return states

    def _gathered(
        self, drawn: Sequence[Shaped[np.ndarray, "..."]]
    ) -> tuple[DeviceData, list[Shaped[np.ndarray, "..."]]]:
        """The steps of all rows drawn, in the order of the file, and where each row drawn is in it."""
        flat = np.concatenate([rows.ravel() for rows in drawn])
        order = np.argsort(flat, kind="stable")
        place = np.empty(len(flat), np.int32)
        place[order] = np.arange(len(flat), dtype=np.int32)
        edges = np.cumsum([rows.size for rows in drawn])[:-1]
        places = [part.reshape(rows.shape) for part, rows in zip(np.split(place, edges), drawn, strict=True)]
        stored = self.stored
        steps = stored.take(flat[order].astype(np.int64))
        none = jnp.zeros(0, jnp.int32)
        return DeviceData(steps, none, stored.actions, stored.breaks, stored.count, stored.count), places


def search(cdf: UInt32[np.ndarray, " rows"], bits: UInt32[np.ndarray, "*n"]) -> Int[np.ndarray, "*n"]:
    """The rows that numbers draw, and the file let go of."""
    rows = rows_of_bits(cdf, bits)
    release(cdf)
    return rows
