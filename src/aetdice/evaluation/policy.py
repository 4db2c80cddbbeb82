"""A policy: it acts three ways, and travels as one file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped
from numpy.typing import ArrayLike

from aetdice.data import Coding, Transform, coding_from, transform_from
from aetdice.errors import InputError
from aetdice.evaluation.acting import VectorPolicy, draw_courses, sample_actions
from aetdice.files import read_arrays, write_arrays
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyHead, PolicyNetwork
from aetdice.objectives import Objective, objective_from
from aetdice_runner.checks import numbers

FORMAT = 3
READABLE = (1, 2, 3)
"""Format 1, of version 0.1, called Fourier features `waves` and `frequencies`; 2 knew no mixtures."""
OLD_FOURIER = 8
Observation = ArrayLike | Mapping[str, Any]
"""Numbers; or, of a policy with a coding, numbers and categories, by place or by name."""
Action = int | Float[np.ndarray, " a"] | Any
"""A number, a vector, or what the log calls it: a word, or a tuple of words and numbers."""


@dataclass(eq=False)
class Policy:
    """π(a | s, R_acc, t), on raw observations and rewards; every transform it needs is inside.

    A mixture policy has several `courses` and keeps to one for a whole episode. It acts three ways:
    `sample(observations, accrued, time, key)` is pure and batched; `reset()`, `act(observation)` and
    `observe(reward)` remember one episode; `vectorised(count)` remembers many. `details` names the
    objective it was trained for, its parameters and versions.
    """

    network: PolicyNetwork
    details: dict[str, Any] = field(default_factory=dict)
    transform: Transform | None = None
    """What makes the rewards it is told those that it was trained with."""
    coding: Coding | None = None
    """What categories and actions are called in the data; then it is told and says those names."""
    _episode: VectorPolicy | None = field(init=False, repr=False, default=None)

    @property
    def horizon(self) -> int:
        """After how many steps an episode is over."""
        return self.network.encoder.horizon

    @property
    def discrete(self) -> bool:
        """Whether actions are numbers 0, 1, …; otherwise they are vectors."""
        return isinstance(self.network.head, Categorical)

    @property
    def objective(self) -> Objective | None:
        """What it was trained for, unless that was made of functions that no file can hold."""
        record = self.details.get("objective_record")
        return None if record is None else objective_from(record)

    def sample(
        self,
        observations: Shaped[Array | np.ndarray, "n o"],
        accrued: Float[Array | np.ndarray, "n m"],
        time: Int[Array | np.ndarray, " n"] | Int[Array | np.ndarray, ""] | int,
        key: PRNGKeyArray,
        *,
        greedy: bool = False,
        courses: Int[Array | np.ndarray, " n"] | None = None,
    ) -> Shaped[Array, "n *a"]:
        """An action per row, from states, accrued (transformed) rewards and times; pure, so traceable.

        A mixture policy is told the `courses` that `draw_courses` drew for the rows' episodes.
        """
        if self.network.is_mixture and courses is None:
            raise InputError("this is a mixture policy: give sample the courses that draw_courses has drawn")
        shown = jnp.asarray(observations)
        encoder, earned = self.network.encoder, jnp.asarray(accrued, jnp.float32)
        sizes = len(encoder.centre), len(encoder.accrued_range)
        if shown.ndim != 2 or (shown.shape[1], earned.shape) != (sizes[0], (shown.shape[0], sizes[1])):
            raise InputError(
                f"observations have shape (n, {sizes[0]}) and accrued rewards (n, {sizes[1]}), "
                f"not {shown.shape} and {earned.shape}"
            )
        shown = shown.astype(jnp.float32 if encoder.sizes is None else jnp.int32)
        times = jnp.broadcast_to(jnp.asarray(time, jnp.int32), shown.shape[:1])
        on = None if courses is None else jnp.asarray(courses, jnp.int32)
        return sample_actions(self.network, shown, earned, times, key, greedy, on)

    @property
    def courses(self) -> tuple[float, ...]:
        """How likely each course of a mixture policy is; a policy that is no mixture has one."""
        return tuple(np.asarray(self.network.courses, float).tolist())

    def draw_courses(self, count: int, key: PRNGKeyArray, *, greedy: bool = False) -> Int[Array, " n"] | None:
        """What so many new episodes keep to; None for a policy that is no mixture."""
        return draw_courses(self.network, count, key, greedy)

    def on_course(self, course: int) -> "Policy":
        """The policy of all episodes that keep to one course."""
        return replace(self, network=self.network.on_course(course))

    def vectorised(self, count: int, *, seed: int | None = None, greedy: bool = False) -> VectorPolicy:
        """The policy in `count` episodes at once, each with its own memory."""
        return VectorPolicy(self.network, self.transform, count, seed, greedy, self.coding)

    def reset(
        self, observation: ArrayLike | None = None, *, seed: int | None = None, greedy: bool = False
    ) -> None:
        """Begin an episode, with fresh randomness unless a seed is given.

        The first observation may be told, as other agents want it; `act` is what looks at it.
        """
        del observation
        self._episode = self.vectorised(1, seed=seed, greedy=greedy)

    def act(self, observation: Observation) -> Action:
        """An action: a number where actions are discrete, else a vector.

        A policy from a log with categories is told them and answers with the log's own words;
        observations may then also be mappings by column.
        """
        self._episode = self._episode or self.vectorised(1)
        action = self._episode.act(self._alone(observation))[0]
        return int(action) if isinstance(action, np.integer) else action

    def _alone(self, observation: Observation) -> Any:
        """One observation as a batch of one."""
        if self.coding is not None or isinstance(observation, Mapping):
            return [observation]
        return numbers(observation, "observations")[None]

    def observe(self, reward: ArrayLike, next_observation: Observation | None = None) -> None:
        """Remember what the last action brought; a policy with a transform is told the raw reward."""
        if self._episode is None:
            raise InputError("observe was called before act")
        following = None if next_observation is None else self._alone(next_observation)
        self._episode.observe(numbers(reward, "rewards")[None], following)

    @property
    def accrued(self) -> Float[np.ndarray, " m"]:
        """What the episode has brought so far."""
        return (
            np.zeros(len(self.network.encoder.accrued_range))
            if self._episode is None
            else self._episode.accrued[0]
        )

    @property
    def time(self) -> int:
        """How many steps the episode has had."""
        return 0 if self._episode is None else int(self._episode.time[0])

    def save(self, path: Path | str) -> None:
        """Write one .npz file with everything needed to act."""
        policy = self.network
        arrays = {f"net{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(policy.net))}
        encoder, head = policy.encoder, policy.head
        arrays |= {"centre": encoder.centre, "spread": encoder.spread, "accrued_range": encoder.accrued_range}
        arrays |= {"courses": policy.courses}
        description: dict[str, Any] = {
            "format": FORMAT,
            "layers": len(policy.net.weights),
            "encoder": {
                "sizes": encoder.sizes,
                "horizon": encoder.horizon,
                "use_accrued": encoder.use_accrued,
                "use_time": encoder.use_time,
                "observation_fourier": encoder.observation_fourier,
                "fourier": encoder.fourier,
            },
            "details": self.details,
            "transform": None if self.transform is None else self.transform.record(),
            "coding": None if self.coding is None else self.coding.record(),
        }
        if isinstance(head, GaussianMixture):
            arrays |= {"low": head.low, "high": head.high}
            description["head"] = {"components": head.components, "smallest": head.smallest}
        elif isinstance(head, Categorical):
            description["head"] = {"actions": head.actions}
        text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        plain = {name: np.asarray(array) for name, array in arrays.items()}
        write_arrays(Path(path), {**plain, "description": text})


def load_policy(path: Path | str) -> Policy:
    """Read a file that `Policy.save` wrote; nothing in it is executed."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such policy file: {path}")
    try:
        arrays = read_arrays(path)
        if "description" not in arrays:
            raise ValueError("it is an NPZ file, but not of a policy")
        description = json.loads(arrays.pop("description").tobytes())
        if description["format"] not in READABLE:
            raise ValueError(f"format {description['format']}, not {FORMAT}")
        record = description.get("transform")
        transform = None if record is None else transform_from(record)
        coded = description.get("coding")
        coding = None if coded is None else coding_from(coded)
        return Policy(_rebuild(arrays, description), dict(description["details"]), transform, coding)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path.name} is not a policy that this version can read: {error}") from error


def _rebuild(arrays: dict[str, Shaped[np.ndarray, "..."]], description: dict[str, Any]) -> PolicyNetwork:
    facts = description["encoder"]
    encoder = Encoder(
        sizes=None if facts["sizes"] is None else tuple(facts["sizes"]),
        horizon=facts["horizon"],
        use_accrued=facts["use_accrued"],
        use_time=facts["use_time"],
        centre=arrays["centre"],
        spread=arrays["spread"],
        accrued_range=arrays["accrued_range"],
        observation_fourier=facts.get("observation_fourier", facts.get("waves", 0)),
        fourier=facts.get("fourier", facts.get("frequencies", OLD_FOURIER)),
    )
    head: PolicyHead
    if "actions" in description["head"]:
        head = Categorical(description["head"]["actions"])
    else:
        head = GaussianMixture(arrays["low"], arrays["high"], **description["head"])
    layers = description["layers"]
    weights = tuple(jax.device_put(arrays[f"net{i}"]) for i in range(layers))
    biases = tuple(jax.device_put(arrays[f"net{i}"]) for i in range(layers, 2 * layers))
    sizes = (*(w.shape[0] for w in weights), weights[-1].shape[1])
    courses = arrays.get("courses", np.ones(1, np.float32))
    if courses.ndim != 1 or not courses.size or not np.all(courses >= 0) or not 0 < courses.sum() < np.inf:
        raise ValueError("the courses of a policy have probabilities")
    make = partial(PolicyNetwork, encoder, head, sizes[1:-1], courses=courses.size)
    blank = eqx.filter_eval_shape(make, jax.random.key(0))
    if [leaf.shape for leaf in jax.tree.leaves(blank.net)] != [leaf.shape for leaf in (*weights, *biases)]:
        raise ValueError("its layers do not fit its encoder")
    net = eqx.tree_at(lambda p: (p.weights, p.biases), blank.net, (weights, biases))
    return eqx.tree_at(
        lambda p: (p.encoder, p.head, p.net, p.courses), blank, (encoder, head, net, courses / courses.sum())
    )
