"""A behaviour policy to act with: plain arrays in one file, with a card that says how it was made."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.behaviours.agent import FARTHEST
from aetdice.envs.mujoco import find_body
from aetdice.errors import InputError
from aetdice.files import read_arrays, write_arrays

FORMAT = "aetdice-behaviour"
VERSION = 1
SLACK = 0.02
"""A preference counts as dominated when another one is better by this share of the front's span."""
DATA = Path(__file__).parent / "data"
ARRAYS = ("centre", "spread", "std", "preferences", "returns", "upright")


@dataclass(frozen=True, eq=False)
class Behaviour:
    """A deterministic or Gaussian policy of a body for every preference; observations are raw.

    `preferences`, `returns` and `upright` are the card: for a grid of preferences the mean
    returns of whole episodes and the share of them that did not end early. `details` says how
    the policy was trained.
    """

    body: str
    weights: tuple[Float[np.ndarray, "_ _"], ...]
    biases: tuple[Float[np.ndarray, " _"], ...]
    centre: Float[np.ndarray, " o"]
    spread: Float[np.ndarray, " o"]
    std: Float[np.ndarray, " a"]
    """Of the exploration, in units of the action limits."""
    preferences: Float[np.ndarray, "k m"]
    returns: Float[np.ndarray, "k m"]
    upright: Float[np.ndarray, " k"]
    details: dict[str, Any]

    def __post_init__(self) -> None:
        body = find_body(self.body)
        sizes = [*(len(w) for w in self.weights), len(self.biases[-1])]
        objectives = len(body.objectives)
        if sizes[0] != body.observation_size + objectives or sizes[-1] != body.action_size:
            raise ValueError(f"its layers do not fit the {self.body}")
        fits = all(
            w.shape == (i, o) and b.shape == (o,)
            for w, b, i, o in zip(self.weights, self.biases, sizes[:-1], sizes[1:], strict=True)
        )
        card = (len(self.preferences), objectives)
        fits &= self.centre.shape == self.spread.shape == (body.observation_size,)
        fits &= self.preferences.shape == self.returns.shape == card and self.upright.shape == card[:1]
        if not fits or self.std.shape != (body.action_size,):
            raise ValueError("its arrays do not fit each other")
        if not all(np.all(np.isfinite(array)) for array in self._arrays().values()):
            raise ValueError("it has numbers that are not finite")

    def act(
        self,
        observation: Any,
        preference: Any,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
    ) -> Float[np.ndarray, "*n a"]:
        """The action for an observation, or for rows of them; the body clips it to its limits.

        `preference` is one vector for all or one per row. Without `deterministic`, the noise of
        the training is added, drawn from `rng`.
        """
        seen, weights = np.asarray(observation, np.float32), np.asarray(preference, np.float32)
        _check(seen, weights, len(self.centre), self.preferences.shape[1])
        x = np.clip((seen - self.centre) / self.spread, -FARTHEST, FARTHEST)
        told = np.broadcast_to(2 * weights - 1, (*x.shape[:-1], weights.shape[-1]))
        x = np.concatenate([x, told], axis=-1, dtype=np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = np.tanh(x @ weight + bias)
        x = (x @ self.weights[-1] + self.biases[-1]).astype(np.float64)
        if not deterministic:
            x = x + self.std * (rng or np.random.default_rng()).standard_normal(x.shape)
        return x * np.array(find_body(self.body).action_limits)

    @property
    def objectives(self) -> tuple[str, ...]:
        return find_body(self.body).objectives

    @property
    def sha256(self) -> str:
        """Of what acts: equal policies have equal names."""
        digest = hashlib.sha256(self.body.encode())
        for array in (self.centre, self.spread, *self.weights, *self.biases):
            digest.update(np.ascontiguousarray(array, np.float32).tobytes())
        return digest.hexdigest()

    def front(self) -> Int[np.ndarray, " k"]:
        """The preferences of the card that no other one dominates, as indices."""
        return np.flatnonzero(~dominated(self.returns, SLACK))

    def text(self) -> str:
        """The card as a table of about eleven preferences, both ends among them."""
        names = " ".join(f"{name:>10}" for name in self.objectives)
        lines = [f"{'w0':>5} {names} {'upright':>8}  of the {self.body}"]
        last = len(self.preferences) - 1
        for i in np.unique(np.linspace(0, last, min(11, last + 1)).round().astype(int)):
            earned = " ".join(f"{value:10.0f}" for value in self.returns[i])
            lines.append(f"{self.preferences[i, 0]:5.2f} {earned} {self.upright[i]:8.0%}")
        return "\n".join(lines)

    def save(self, path: Path | str) -> None:
        """Write one .npz file."""
        description = {
            "format": FORMAT,
            "version": VERSION,
            "body": self.body,
            "layers": len(self.weights),
            "details": self.details,
        }
        text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        write_arrays(Path(path), {**self._arrays(), "description": text})

    @classmethod
    def load(cls, path: Path | str) -> "Behaviour":
        """Read a file that `save` wrote; nothing in it is executed."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"no such behaviour policy: {path}")
        try:
            arrays = read_arrays(path)
            description = json.loads(arrays.pop("description").tobytes())
            if (description["format"], description["version"]) != (FORMAT, VERSION):
                raise ValueError(f"its format is not {FORMAT} {VERSION}")
            layers = range(description["layers"])
            return cls(
                body=description["body"],
                weights=tuple(arrays[f"weight{i}"].astype(np.float32) for i in layers),
                biases=tuple(arrays[f"bias{i}"].astype(np.float32) for i in layers),
                **{name: arrays[name].astype(np.float32) for name in ARRAYS[:3]},
                **{name: arrays[name].astype(np.float64) for name in ARRAYS[3:]},
                details=description["details"],
            )
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path} is not a behaviour policy that can be read: {error}") from error

    def _arrays(self) -> dict[str, Shaped[np.ndarray, "..."]]:
        layers = {f"weight{i}": w for i, w in enumerate(self.weights)}
        layers |= {f"bias{i}": b for i, b in enumerate(self.biases)}
        return layers | {name: getattr(self, name) for name in ARRAYS}


def load_behaviour(body: str, path: Path | str | None = None) -> Behaviour:
    """The policy that comes with the package, or the one of a file, which must be of this body."""
    name = find_body(body).name
    shipped = DATA / f"{name}.npz"
    if path is None and not shipped.is_file():
        raise InputError(
            f"no behaviour policy of the {name} comes with this version; train one with: "
            f"aetdice behaviours train {name} --out {name}.npz, and hand it over with --behaviour {name}.npz"
        )
    behaviour = Behaviour.load(shipped if path is None else path)
    if behaviour.body != name:
        raise InputError(f"{path or shipped} is a policy of the {behaviour.body}, not of the {name}")
    return behaviour


def dominated(returns: Float[np.ndarray, "k m"], slack: float = 0.0) -> Bool[np.ndarray, " k"]:
    """Whether another row is better in every entry, by more than `slack` of that entry's span."""
    margin = slack * np.ptp(returns, axis=0)
    return np.all(returns[None] > (returns + margin)[:, None], axis=2).any(axis=1)


def _check(
    seen: Float[np.ndarray, "..."], preference: Float[np.ndarray, "..."], size: int, objectives: int
) -> None:
    if seen.shape[-1:] != (size,):
        raise InputError(f"an observation has {size} entries, not shape {seen.shape}")
    if preference.shape not in ((objectives,), (*seen.shape[:-1], objectives)):
        raise InputError(
            f"a preference has {objectives} entries, for all observations or each, not {preference.shape}"
        )
    if np.any(preference < 0) or not np.allclose(preference.sum(axis=-1), 1, atol=1e-4):
        raise InputError("the entries of a preference are not negative and add up to 1")
