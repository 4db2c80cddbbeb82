"""Gymnasium's assets with D4MORL's edits, compiled by MuJoCo: edited in memory, never on disk."""

import functools
import importlib.util
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from aetdice.envs.mujoco.body import Body
from aetdice.errors import InputError

TOUCHING = """
<mujoco><worldbody>
  <geom type="plane" size="1 1 1" margin="0.1"/>
  <body pos="0 0 0.25"><freejoint/><geom size="0.1" margin="0.1"/></body>
</worldbody></mujoco>
"""
"""A sphere .15 above a plane: in contact only if the two margins of .1 add up."""


def engine() -> Any:
    """The `mujoco` module."""
    try:
        import mujoco
        import mujoco.rollout
    except ImportError as error:
        raise InputError(f"the bodies need MuJoCo ({error}); pip install 'aetdice[mujoco]'") from error
    return mujoco


def load_model(body: Body) -> Any:
    """The compiled model of a body."""
    mujoco = engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*settotalmass", category=UserWarning)
        return mujoco.MjSpec.from_string(edited_asset(body, margins_add())).compile()


def edited_asset(body: Body, halve_margins: bool) -> str:
    """The XML of a body. Where margins add up, half of each keeps every contact as it was."""
    root = ElementTree.fromstring(_asset(body.asset).read_text(encoding="utf-8"))
    for path, attributes in body.edits.items():
        elements = root.findall(path)
        if not elements:
            raise InputError(
                f"{body.asset} of the installed Gymnasium has no {path}; install the version of "
                "constraints.txt"
            )
        for element in elements:
            element.attrib.update(attributes)
    if halve_margins:
        for geom in root.iter("geom"):
            if "margin" in geom.attrib:
                geom.set("margin", repr(float(geom.attrib["margin"]) / 2))
    return ElementTree.tostring(root, encoding="unicode")


@functools.cache
def margins_add() -> bool:
    """Whether a contact's margin is the sum of the geoms' (from MuJoCo 3.5 on) or their maximum."""
    mujoco = engine()
    model = mujoco.MjModel.from_xml_string(TOUCHING)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.ncon > 0)


def _asset(name: str) -> Path:
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or spec.origin is None:
        raise InputError("the bodies use Gymnasium's assets; pip install 'aetdice[mujoco]'")
    return Path(spec.origin).parent / "envs" / "mujoco" / "assets" / name
