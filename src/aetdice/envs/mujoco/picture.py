"""A body in pixels, drawn off screen by MuJoCo."""

from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.envs.mujoco.models import engine
from aetdice.envs.pixels import Image
from aetdice.errors import InputError

HEIGHT, WIDTH = 480, 480


class Camera:
    """Follows a body, whatever its state."""

    def __init__(self, model: Any) -> None:
        self.model, self.mujoco = model, engine()
        try:
            self.renderer = self.mujoco.Renderer(model, HEIGHT, WIDTH)
        except Exception as error:  # whatever the graphics library raises
            raise InputError(
                f"MuJoCo finds no graphics library ({error}); without a screen, set the variable "
                "MUJOCO_GL to egl or osmesa before Python starts"
            ) from error

    def picture(self, positions: Float[np.ndarray, " q"], velocities: Float[np.ndarray, " v"]) -> Image:
        data = self.mujoco.MjData(self.model)
        data.qpos[:], data.qvel[:] = positions, velocities
        self.mujoco.mj_forward(self.model, data)
        self.renderer.update_scene(data, camera="track")
        return np.asarray(self.renderer.render())

    def close(self) -> None:
        self.renderer.close()
