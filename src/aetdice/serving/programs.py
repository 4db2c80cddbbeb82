"""A policy as programs that JAX alone can load: `jax.export`, for batches of any size.

The file is a ZIP of four serialised programs and `facts.json`. `outputs` holds the weights and maps
observations, accrued rewards, times and, of a mixture policy, courses to the outputs of the network;
`log_probability` (of actions), `sample` (with the data of a key) and `greedy` go on from there.
"""

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array, Float, Int, Shaped, UInt32

from aetdice.evaluation import Policy
from aetdice.files import package_version
from aetdice.networks import GaussianMixture
from aetdice.serving.facts import policy_facts

PLATFORMS = ("cpu", "cuda", "tpu")
GENERATOR = "threefry2x32"
FACTS = "facts.json"


def policy_programs(policy: Policy, result: Mapping[str, Any] | None = None) -> bytes:
    """The archive as it stands in the file."""
    with _without_paths():
        programs = {name: bytes(program.serialize()) for name, program in _programs(policy).items()}
    checksums = {name: hashlib.sha256(program).hexdigest() for name, program in programs.items()}
    facts = policy_facts(policy, result, {"sha256": checksums, "jax": package_version("jax")})
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in {FACTS: json.dumps(facts).encode(), **programs}.items():
            archive.writestr(zipfile.ZipInfo(name), part)  # without a date: equal policies, equal files
    return content.getvalue()


@contextlib.contextmanager
def _without_paths() -> Iterator[None]:
    """By default programs name the source files of every operation, with this machine's folders."""
    config: Any = jax.config
    before = config.jax_traceback_in_locations_limit
    config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        config.update("jax_traceback_in_locations_limit", before)


def _programs(policy: Policy) -> dict[str, export.Exported]:
    network, head = policy.network, policy.network.head
    shape: Any = jax.ShapeDtypeStruct
    encoder = network.encoder
    (n,) = export.symbolic_shape("n")

    def outputs(
        observations: Shaped[Array, "n o"],
        accrued: Float[Array, "n m"],
        time: Int[Array, " n"],
        *course: Int[Array, " n"],
    ) -> Float[Array, "n k"]:
        return jax.vmap(network.outputs)(observations, accrued, time, *course)

    def log_probability(outputs: Float[Array, "n k"], actions: Shaped[Array, "n *a"]) -> Float[Array, " n"]:
        return jax.vmap(head.log_probability)(outputs, actions)

    def sample(outputs: Float[Array, "n k"], key: UInt32[Array, "2"]) -> Shaped[Array, "n *a"]:
        keys = jax.random.split(jax.random.wrap_key_data(key, impl=GENERATOR), outputs.shape[0])
        return jax.vmap(head.sample)(outputs, keys)

    def greedy(outputs: Float[Array, "n k"]) -> Shaped[Array, "n *a"]:
        return jax.vmap(head.greedy)(outputs)

    told = (
        shape((n, len(encoder.centre)), jnp.float32 if encoder.sizes is None else jnp.int32),
        shape((n, len(encoder.accrued_range)), jnp.float32),
        shape((n,), jnp.int32),
        *([shape((n,), jnp.int32)] if network.is_mixture else []),
    )
    given = shape((n, head.outputs), jnp.float32)
    size = len(head.low) if isinstance(head, GaussianMixture) else 0
    acted = shape((n, size), jnp.float32) if size else shape((n,), jnp.int32)
    parts: dict[str, tuple[Any, ...]] = {
        "outputs": (outputs, *told),
        "log_probability": (log_probability, given, acted),
        "sample": (sample, given, shape((2,), jnp.uint32)),
        "greedy": (greedy, given),
    }
    return {
        name: export.export(jax.jit(program), platforms=PLATFORMS)(*arguments)
        for name, (program, *arguments) in parts.items()
    }
