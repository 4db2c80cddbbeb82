"""`Runner`: a shipped policy acts, with NumPy and onnxruntime only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aetdice_runner.artefact import courses_from, interface_from, read_facts
from aetdice_runner.checks import check_observations
from aetdice_runner.coding import coding_from
from aetdice_runner.errors import InputError
from aetdice_runner.heads import head_from
from aetdice_runner.sessions import Sessions
from aetdice_runner.transforms import transform_from

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Shaped
    from numpy.typing import ArrayLike

LARGEST_SEED = 2**64


class Runner:
    """π(a | s, R_acc, t) from an artefact of `aetdice export`.

    `start(count)` begins episodes that remember accrued reward and time. `facts` is the metadata:
    objective, names, scores and verdict, versions. A runner may be shared by any number of sessions.
    """

    def __init__(self, model: bytes, *, threads: int = 1) -> None:
        self.facts = read_facts(model)
        try:
            self._interface, self._head = interface_from(self.facts), head_from(self.facts["action"])
            coding, transform = self.facts["coding"], self.facts["transform"]
            if lost := {"aetdice", "objective", "objectives", "result"} - set(self.facts):
                raise KeyError(min(lost))
            self._coding = None if coding is None else coding_from(coding)
            self._transform = None if transform is None else transform_from(transform)
            self._courses = courses_from(self.facts)
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"the metadata of this policy is not whole: {error!r}") from error
        self._session = _session(model, threads)
        self._outputs = [output.name for output in self._session.get_outputs()]
        seen = "tensor(float)" if self._interface.sizes is None else "tensor(int32)"
        expected = [
            ("observations", seen, [self._interface.size]),
            ("accrued", "tensor(float)", [self._interface.objectives]),
            ("time", "tensor(int32)", []),
            *([] if self._courses is None else [("course", "tensor(int32)", [])]),
        ]
        if [(told.name, told.type, told.shape[1:]) for told in self._session.get_inputs()] != expected:
            raise InputError("this is no policy that the runner can read: its graph has other inputs")

    @classmethod
    def load(cls, path: Path | str, *, threads: int = 1) -> Runner:
        """Read a file of `aetdice export`; `threads` help with batches of thousands."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"no such policy file: {path}")
        try:
            return cls(path.read_bytes(), threads=threads)
        except InputError as error:
            raise InputError(f"{path.name}: {error}") from error

    @property
    def horizon(self) -> int:
        """After how many steps an episode is over."""
        return self._interface.horizon

    @property
    def discrete(self) -> bool:
        """Whether actions are classes; otherwise they are vectors."""
        return bool(self.facts["action"]["kind"] == "discrete")

    @property
    def objectives(self) -> tuple[str, ...] | None:
        """What the rewards that `observe` is told are called, where the artefact knows it."""
        names = self.facts["objectives"]
        return None if names is None else tuple(names)

    def start(self, count: int = 1, *, seed: int | None = None, greedy: bool = False) -> Sessions:
        """Begin `count` episodes, with fresh randomness unless a seed is given.

        Equal seeds sample equal actions. The stream is NumPy's, not that of the JAX policy.
        """
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if seed is not None and not (whole and 0 <= seed < LARGEST_SEED):
            raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed!r}")
        rng = None if greedy else np.random.default_rng(seed)

        def choose(seen: Any, accrued: Any, time: Any, courses: Any) -> Any:
            outputs = self._run(seen, accrued, time, courses)
            return self._head.greedy(outputs) if rng is None else self._head.sample(outputs, rng)

        def draw(new: int) -> Int[np.ndarray, " n"]:
            chances = np.asarray(self._courses)
            likeliest = np.full(new, np.argmax(chances))
            return likeliest if rng is None else rng.choice(len(chances), new, p=chances)

        mixture = None if self._courses is None else draw
        return Sessions(self._interface, choose, count, self._transform, self._coding, mixture)

    @property
    def courses(self) -> tuple[float, ...]:
        """How likely each course of a mixture policy is; a policy that is no mixture has one."""
        return (1.0,) if self._courses is None else tuple(self._courses.tolist())

    def outputs(
        self, observations: ArrayLike, accrued: ArrayLike, time: ArrayLike, course: ArrayLike = 0
    ) -> dict[str, Float[np.ndarray, "n ..."]]:
        """The graph's own outputs, pure and batched: `logits`, or `log_weights`, `mean` and `log_std`.

        Observations are numbers, as the coding makes them; accrued rewards are transformed ones. A mixture
        policy answers for one of its courses.
        """
        earned = np.asarray(accrued, dtype=np.float32)
        seen = check_observations(self._interface, observations, len(earned))
        now, on = (np.broadcast_to(np.asarray(each, np.int32), len(earned)) for each in (time, course))
        return self._run(seen, earned, now, on)

    def probabilities(
        self, observations: ArrayLike, accrued: ArrayLike, time: ArrayLike, course: ArrayLike = 0
    ) -> Float[np.ndarray, "n k"]:
        """π(a | s, R_acc, t) of every class, one row per state."""
        if not self.discrete:
            raise InputError("this policy's actions are vectors: outputs() has the mixture's parameters")
        logits = self.outputs(observations, accrued, time, course)["logits"].astype(np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def _run(
        self,
        seen: Shaped[np.ndarray, "n o"],
        accrued: Float[np.ndarray, "n m"],
        time: Int[np.ndarray, " n"],
        courses: Int[np.ndarray, " n"] | None,
    ) -> dict[str, Float[np.ndarray, "n ..."]]:
        told = {"observations": seen, "accrued": accrued, "time": time}
        if self._courses is not None:
            told["course"] = np.asarray(courses, np.int32)
        found = dict(zip(self._outputs, self._session.run(None, told), strict=True))
        if not all(np.isfinite(values).all() for values in found.values()):
            raise InputError(
                "the policy has no finite answer: an observation or what was accrued is far beyond its data"
            )
        return found


def _session(model: bytes, threads: int) -> Any:
    """An onnxruntime session on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(f"onnxruntime is not installed ({error}); pip install 'aetdice[ship]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own are RuntimeErrors of several kinds
        raise InputError(f"onnxruntime cannot read its graph: {str(error).splitlines()[0]}") from error
