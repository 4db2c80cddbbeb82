"""A policy to act with: it keeps accrued reward and time itself, and travels as one file."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from aetdice.checkpoints import read_arrays
from aetdice.data import Transform, transform_from
from aetdice.errors import InputError
from aetdice.networks import (
    FREQUENCIES,
    Categorical,
    Encoder,
    GaussianMixture,
    Perceptron,
    Policy,
    PolicyHead,
)
from aetdice.results import write_arrays

FORMAT = 1


@dataclass(eq=False)
class ActingPolicy:
    """π(a | s, R_acc, t) with its memory: reset(observation), act(observation), observe(reward, …).

    Acts on raw observations and rewards; every transform it needs is inside. `details` names the
    objective it was trained for, its parameters and versions.
    """

    policy: Policy
    details: dict[str, Any] = field(default_factory=dict)
    transform: Transform | None = None
    """What makes the rewards it is told those that it was trained with."""
    accrued: Float[np.ndarray, " m"] = field(init=False)
    time: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.reset()

    @property
    def horizon(self) -> int:
        return self.policy.encoder.horizon

    def reset(self, observation: Any = None, seed: int = 0) -> None:
        """Begin an episode."""
        del observation
        self.accrued = np.zeros(len(self.policy.encoder.accrued_range))
        self.time, self._key = 0, jax.random.key(seed)

    def act(self, observation: Any) -> Any:
        """A sampled action; SER and AET optima are stochastic, so there is no greedy choice."""
        if self.time >= self.horizon:
            raise InputError(
                f"the episode is over: the policy was trained for {self.horizon} steps; call reset"
            )
        self._key, key = jax.random.split(self._key)
        flat = jnp.asarray(np.asarray(observation).reshape(-1))
        expected = len(self.policy.encoder.centre)
        if flat.size != expected:
            raise InputError(f"an observation has {expected} entries, not {flat.size}")
        accrued = jnp.asarray(self.accrued, jnp.float32)
        action = _act(self.policy, flat, accrued, jnp.asarray(self.time, jnp.int32), key)
        return int(action) if isinstance(self.policy.head, Categorical) else np.asarray(action)

    def observe(self, reward: Any, next_observation: Any = None) -> None:
        """Remember what the last action brought; a policy with a transform is told the raw reward."""
        reward = np.asarray(reward, np.float64)
        if self.transform is not None:
            if next_observation is None:
                raise InputError("this policy transforms rewards: give observe the next observation, too")
            reward = self.transform(reward, np.asarray(next_observation, np.float64).reshape(-1))
        if reward.shape != self.accrued.shape or not np.all(np.isfinite(reward)):
            raise InputError(
                f"a reward has {self.accrued.size} finite entries, one per objective, not {reward}"
            )
        self.accrued = self.accrued + reward
        self.time += 1

    def save(self, path: Path | str) -> None:
        """Write one .npz file with everything needed to act."""
        policy = self.policy
        arrays = {f"net{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(policy.net))}
        encoder, head = policy.encoder, policy.head
        arrays |= {"centre": encoder.centre, "spread": encoder.spread, "accrued_range": encoder.accrued_range}
        description: dict[str, Any] = {
            "format": FORMAT,
            "layers": len(policy.net.weights),
            "encoder": {
                "sizes": encoder.sizes,
                "horizon": encoder.horizon,
                "use_accrued": encoder.use_accrued,
                "use_time": encoder.use_time,
                "waves": encoder.waves,
                "frequencies": encoder.frequencies,
            },
            "details": self.details,
            "transform": None if self.transform is None else self.transform.record(),
        }
        if isinstance(head, GaussianMixture):
            arrays |= {"low": head.low, "high": head.high}
            description["head"] = {"components": head.components, "smallest": head.smallest}
        elif isinstance(head, Categorical):
            description["head"] = {"actions": head.actions}
        text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        plain = {name: np.asarray(array) for name, array in arrays.items()}
        write_arrays(Path(path), {**plain, "description": text})

    @classmethod
    def load(cls, path: Path | str) -> "ActingPolicy":
        """Read a file that `save` wrote; nothing in it is executed."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"no such policy file: {path}")
        try:
            arrays = read_arrays(path)
            description = json.loads(arrays.pop("description").tobytes())
            if description["format"] != FORMAT:
                raise ValueError(f"format {description['format']}, not {FORMAT}")
            record = description.get("transform")
            transform = None if record is None else transform_from(record)
            return cls(_rebuild(arrays, description), description["details"], transform)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path.name} is not a policy that this version can read: {error}") from error


def _rebuild(arrays: dict[str, Shaped[np.ndarray, "..."]], description: dict[str, Any]) -> Policy:
    facts = description["encoder"]
    encoder = Encoder(
        sizes=None if facts["sizes"] is None else tuple(facts["sizes"]),
        horizon=facts["horizon"],
        use_accrued=facts["use_accrued"],
        use_time=facts["use_time"],
        centre=arrays["centre"],
        spread=arrays["spread"],
        accrued_range=arrays["accrued_range"],
        waves=facts.get("waves", 0),
        frequencies=facts.get("frequencies", FREQUENCIES),
    )
    head: PolicyHead
    if "actions" in description["head"]:
        head = Categorical(description["head"]["actions"])
    else:
        head = GaussianMixture(arrays["low"], arrays["high"], **description["head"])
    layers = description["layers"]
    weights = tuple(jnp.asarray(arrays[f"net{i}"]) for i in range(layers))
    biases = tuple(jnp.asarray(arrays[f"net{i}"]) for i in range(layers, 2 * layers))
    sizes = (*(w.shape[0] for w in weights), weights[-1].shape[1])
    blank = eqx.filter_eval_shape(Policy, encoder, head, sizes[1:-1], jax.random.key(0))
    if [leaf.shape for leaf in jax.tree.leaves(blank.net)] != [leaf.shape for leaf in (*weights, *biases)]:
        raise ValueError("its layers do not fit its encoder")
    net = eqx.tree_at(
        lambda p: (p.weights, p.biases), Perceptron(sizes, jax.random.key(0)), (weights, biases)
    )
    return eqx.tree_at(lambda p: p.net, Policy(encoder, head, sizes[1:-1], jax.random.key(0)), net)


@eqx.filter_jit
def _act(policy: Policy, observation: Any, accrued: Any, time: Any, key: Any) -> Any:
    return policy.sample(observation, accrued, time, key)
