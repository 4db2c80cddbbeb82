"""ν on augmented states."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from aetdice.networks.encoder import Encoder
from aetdice.networks.perceptron import Perceptron, products_are_rounded


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
        outputs = self._outputs(encoded)
        return outputs + jnp.broadcast_to(self.offsets, outputs.shape)

    def of_encoded(
        self, encoded: Float[Array, "*rows features"], time: Int[Array, "*rows"]
    ) -> Float[Array, "*rows"]:
        """ν of what the encoder has made of a state."""
        last = self.offsets.shape[0] - 1
        offset = self.offsets[jnp.minimum(time, last)] if last else self.offsets[0]
        return _at(self._outputs(encoded), time) + offset

    def _outputs(self, encoded: Float[Array, "*rows features"]) -> Float[Array, "*rows heads"]:
        # Ratios are differences of ν over a small β: only its slopes may be coarse.
        return self.net(encoded, coarse_slopes=products_are_rounded())

    def __call__(
        self, observation: Shaped[Array, " o"], accrued: Float[Array, " m"], time: Int[Array, ""]
    ) -> Float[Array, ""]:
        return self.of_encoded(self.encoder(observation, accrued, time), time)


def _at(entries: Float[Array, "*rows k"], time: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
    """The entry of a time step, the last one beyond the end."""
    last = entries.shape[-1] - 1
    if last == 0:
        return entries[..., 0]
    return jnp.take_along_axis(entries, jnp.minimum(time, last)[..., None], axis=-1)[..., 0]
