"""The ids of the environments under Gymnasium, registered without importing an environment."""

import importlib.util

IDS: dict[str, str] = {
    "two-step": "two-step-v0",
    "fair-taxi": "fair-taxi-v0",
    "dispatch": "dispatch-v0",
    "pointmaze-2obj": "mo-pointmaze-2obj-v0",
    "pointmaze-3obj": "mo-pointmaze-3obj-v0",
}
"""An environment's id, by short name."""
BODIES = ("ant", "walker2d", "halfcheetah", "hopper", "swimmer")
"""The bodies of D4MORL, whose ids are `d4morl-ant-v0`, …"""


def register_all() -> None:
    """One id per environment and body, where Gymnasium is installed."""
    if importlib.util.find_spec("gymnasium") is None:
        return
    from gymnasium.envs.registration import register, registry

    entries = {
        identifier: ("aetdice.envs.gymnasium:make_environment", name) for name, identifier in IDS.items()
    }
    entries |= {f"d4morl-{name}-v0": ("aetdice.envs.mujoco.adaptor:make_body", name) for name in BODIES}
    for identifier, (entry_point, name) in entries.items():
        if identifier not in registry:
            # Gymnasium's own checker asks for scalar rewards.
            register(identifier, entry_point=entry_point, disable_env_checker=True, kwargs={"name": name})
