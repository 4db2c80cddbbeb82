"""ν on augmented states."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from aetdice.networks.encoder import Encoder
from aetdice.networks.perceptron import Perceptron


class Nu(eqx.Module):
    """ν(s, R_acc, t), with time as an input or with one head per time step."""

    encoder: Encoder
    net: Perceptron
    offsets: Float[Array, " constants"]
    """A constant per time step: its optimality is the conservation of mass. Or one for all."""

    def __init__(
        self, encoder: Encoder, hidden: tuple[int, ...], heads: int, constants: int, key: PRNGKeyArray
    ) -> None:
        """`heads` = 1 takes time as an input; more take it as the index of a head."""
        self.encoder = encoder
        self.net = Perceptron((encoder.features, *hidden, heads), key)
        self.offsets = jnp.zeros(constants, jnp.float32)

    @property
    def trained(self) -> tuple[Perceptron, Float[Array, " constants"]]:
        """All that training changes."""
        return self.net, self.offsets

    def with_trained(self, trained: tuple[Perceptron, Float[Array, " constants"]]) -> "Nu":
        return eqx.tree_at(lambda nu: (nu.net, nu.offsets), self, trained)

    def heads(self, encoded: Float[Array, "*rows features"]) -> Float[Array, "*rows heads"]:
        """ν at every time step, where each has a head, of what the encoder has made of a state."""
        outputs = self.net(encoded)
        return outputs + jnp.broadcast_to(self.offsets, outputs.shape)

    def of_encoded(
        self, encoded: Float[Array, "*rows features"], time: Int[Array, "*rows"]
    ) -> Float[Array, "*rows"]:
        """ν of what the encoder has made of a state."""
        last = self.offsets.shape[0] - 1
        offset = entries(self.offsets, jnp.minimum(time, last)) if last else self.offsets[0]
        return _at(self.net(encoded), time) + offset

    def __call__(
        self, observation: Shaped[Array, " o"], accrued: Float[Array, " m"], time: Int[Array, ""]
    ) -> Float[Array, ""]:
        return self.of_encoded(self.encoder(observation, accrued, time), time)


@jax.custom_vjp
def entries(table: Float[Array, " k"], index: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
    """Of a table, by their places in it."""
    return table[index]


def _along_entries(at: tuple[Int[Array, "*rows"], Float[Array, " k"]], change: Array) -> tuple[Array, None]:
    """Summed up where rows share an entry: on an accelerator by comparing, since it scatters slowly."""
    index, table = at
    if jax.default_backend() == "cpu":
        return jnp.zeros_like(table).at[index].add(change), None
    mine = index.reshape(-1, 1) == jnp.arange(table.shape[0])[None]
    return jnp.sum(jnp.where(mine, change.reshape(-1, 1), 0), axis=0), None


entries.defvjp(lambda table, index: (table[index], (index, table)), _along_entries)


def _at(entries: Float[Array, "*rows k"], time: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
    """The entry of a time step, the last one beyond the end."""
    last = entries.shape[-1] - 1
    if last == 0:
        return entries[..., 0]
    return jnp.take_along_axis(entries, jnp.minimum(time, last)[..., None], axis=-1)[..., 0]
