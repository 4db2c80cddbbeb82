"""Episodes to look at: a policy beside its twin, in every environment, the same for the same seed."""

import os
import sys

if sys.platform == "linux" and "DISPLAY" not in os.environ:
    os.environ.setdefault("MUJOCO_GL", "egl")  # read when MuJoCo is imported

import jax
import numpy as np
import pytest
from PIL import Image
from support.policies import complaint

from aetdice import Member, Policy, Run, TrainingConfig, Verdict, esr, make_env, render
from aetdice.data.transforms import Scaling
from aetdice.envs.batched import GymnasiumBatch
from aetdice.envs.environment import FiniteEnvironment
from aetdice.envs.mujoco import BatchedBody
from aetdice.evaluation.playing import play_episode
from aetdice.learning.selection import Selection
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyNetwork
from aetdice.report import animation
from aetdice.report.animation import Panel, SideBySide, draw_frame, write_strip

SHORT = {
    "two-step": {},
    "fair-taxi": {"horizon": 6},
    "dispatch": {"horizon": 6, "shortest": 4},
    "pointmaze-2obj": {"horizon": 5},
    "pointmaze-3obj": {"horizon": 5},
    "d4morl-swimmer": {"horizon": 3},
}
TAXI = make_env("fair-taxi", **SHORT["fair-taxi"])


def policy_for(env, key=0, courses=1, **given):
    """A policy that fits an environment and has no idea."""
    if isinstance(env, BatchedBody):
        limits = np.array(env.body.action_limits)
        size, sizes, head = env.body.observation_size, None, GaussianMixture(-limits, limits, 1)
    else:
        size = len(env.observation_bounds[0])
        sizes = env.observation_sizes if isinstance(env, FiniteEnvironment) else None
        head = Categorical(env.actions)
    told = np.full(len(env.objectives), 2.0)
    encoder = Encoder(sizes, env.horizon, True, True, np.zeros(size), np.ones(size), told, 0, 2)
    return Policy(PolicyNetwork(encoder, head, (4,), jax.random.key(key), courses), {}, **given)


def run_of(policy, twin) -> Run:
    member = Member({}, esr(), policy, twin, {}, Verdict(True, "untrained"))
    returns = np.zeros((1, 2))
    return Run([member], [Selection(0, "the only one")], "bc", TrainingConfig(), policy.horizon, 0.0, returns)


@pytest.mark.parametrize("name", SHORT)
def test_policy_and_twin_are_drawn_side_by_side(name, tmp_path):
    env = make_env(name, **SHORT[name])
    run = run_of(policy_for(env), policy_for(env, 1))
    gif, strip = tmp_path / "run.gif", tmp_path / "run.png"
    render(run, env, gif, strip=strip)
    assert gif.stat().st_size < 2e6
    with Image.open(gif) as shown, Image.open(strip) as moments:
        assert shown.n_frames >= 3 if env.horizon > 2 else 2
        sizes = set()
        for frame in range(shown.n_frames):
            shown.seek(frame)
            sizes.add(shown.convert("RGB").size)
        assert len(sizes) == 1
        assert shown.width > 2 * 100
        assert moments.format == "PNG"
        assert moments.width > shown.width / 2


def test_strip_shows_the_policy_above_its_twin(tmp_path):
    """Two panels that differ in colour: rows in the order of panels, time from left to right."""
    red, blue = (np.full((20, 20, 3), colour, np.uint8) for colour in ((250, 0, 0), (0, 0, 250)))
    panels = [
        Panel(name, np.array([0, 1]), [picture, picture], np.zeros((2, 1)))
        for name, picture in (("policy", red), ("cloning twin", blue))
    ]
    episode = SideBySide(panels, ("a",), 1, "a test")
    write_strip(tmp_path / "strip.png", episode)
    pixels = np.asarray(Image.open(tmp_path / "strip.png").convert("RGB")).astype(int)
    above = np.flatnonzero((pixels[..., 0] - pixels[..., 2] > 200).any(axis=1))
    below = np.flatnonzero((pixels[..., 2] - pixels[..., 0] > 200).any(axis=1))
    assert above.max() < below.min()
    frame = np.asarray(draw_frame(episode, 1, episode.scale)).astype(int)
    left = np.flatnonzero((frame[..., 0] - frame[..., 2] > 200).any(axis=0))
    right = np.flatnonzero((frame[..., 2] - frame[..., 0] > 200).any(axis=0))
    assert left.max() < right.min()


def test_policies_meet_the_same_chance():
    env = make_env("dispatch", **SHORT["dispatch"])
    policy = policy_for(env)
    first, again, other = (play_episode(policy, env, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.accrued, again.accrued)
    assert all(np.array_equal(a, b) for a, b in zip(first.pictures, again.pictures, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first.pictures, other.pictures, strict=False))
    lengths = {play_episode(policy_for(env, key), env, 5).times[-1] for key in range(2)}
    assert len(lengths) == 1  # of the shift, which chance decides and not the policy


def test_pictures_are_taken_at_the_start_every_few_steps_and_at_the_end():
    played = play_episode(policy_for(TAXI), TAXI, 0, every=4)
    assert played.times.tolist() == [0, 4, 6]
    assert len(played.pictures) == len(played.accrued) == 3


def test_accrued_rewards_are_those_that_the_policy_is_told():
    plain, scaled = (
        play_episode(policy_for(TAXI, **given), TAXI, 2)
        for given in ({}, {"transform": Scaling((2.0, 10.0))})
    )
    assert np.any(plain.accrued != 0)
    np.testing.assert_allclose(scaled.accrued[1], plain.accrued[1] * [2, 10], rtol=1e-5)


def test_a_mixture_policy_keeps_to_one_course(tmp_path):
    env = make_env("pointmaze-2obj", horizon=4)
    mixture = policy_for(env, courses=3)
    render(run_of(mixture, policy_for(env)), env, tmp_path / "mixture.gif", episodes=2)
    with Image.open(tmp_path / "mixture.gif") as shown:
        assert shown.n_frames > 5


def test_an_ended_episode_stays_at_its_end():
    panel = Panel("policy", np.array([0, 2, 3]), [], np.zeros((3, 1)))
    assert [panel.at(time) for time in (0, 1, 2, 3, 50)] == [0, 0, 1, 2, 2]


def test_a_single_policy_is_drawn_alone(tmp_path):
    env = make_env("two-step")
    policy = policy_for(env)
    for name, what in (("one", policy), ("two", run_of(policy, policy)), ("again", run_of(policy, policy))):
        render(what, env, tmp_path / f"{name}.gif")
    assert (tmp_path / "two.gif").read_bytes() == (tmp_path / "again.gif").read_bytes()
    with Image.open(tmp_path / "one.gif") as one, Image.open(tmp_path / "two.gif") as two:
        assert one.width < two.width


def test_a_long_episode_has_few_frames(tmp_path, monkeypatch):
    env = make_env("fair-taxi", horizon=130)
    written = []
    monkeypatch.setattr(
        "aetdice.learning.rendering.write_animation", lambda _, episodes: written.extend(episodes)
    )
    render(policy_for(env), env, tmp_path / "long.gif")
    assert 40 <= len(written[0].times) <= 62
    assert written[0].times[-1] == 130
    assert animation.SECONDS / len(written[0].times) > animation.QUICKEST


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "say where to draw"),
        ({"out": "run.mp4"}, "run.mp4 must end in .gif"),
        ({"out": "a.gif", "strip": "a.jpg"}, "a.jpg must end in .png"),
        ({"out": "a.gif", "episodes": 0}, "at least one episode is needed, not 0"),
        ({"out": "a.gif", "member": 3}, "the run has members 0 to 0, not 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(files, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_of(policy_for(TAXI), policy_for(TAXI))
    assert words in complaint(lambda: render(run, TAXI, **files))
    assert list(tmp_path.iterdir()) == []


def test_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    words = complaint(lambda: render(policy_for(TAXI), TAXI, tmp_path / "a.gif"))
    assert words == "animations need Pillow and matplotlib: pip install 'aetdice[plot]'"


def test_gymnasium_environments_are_drawn_as_they_render(tmp_path):
    import mo_gymnasium

    def batch(**options):
        return GymnasiumBatch(lambda: mo_gymnasium.make("fair-taxi-v0", horizon=3, **options), horizon=3)

    policy = policy_for(make_env("fair-taxi", horizon=3))
    assert 'render_mode="rgb_array"' in complaint(lambda: render(policy, batch(), tmp_path / "no.gif"))
    render(policy, batch(render_mode="rgb_array"), tmp_path / "yes.gif")
    assert (tmp_path / "yes.gif").stat().st_size > 0


def test_something_else_is_refused(tmp_path, without_type_checks):
    assert "a Run or a Policy is drawn" in complaint(lambda: render("run", TAXI, tmp_path / "a.gif"))
