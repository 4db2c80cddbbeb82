"""Settings: named, typed, held to their ranges, and read by whoever is trained."""

import json
from dataclasses import asdict, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import complaint
from support.training import TINY, tiny_episodes

from aetdice import Episode, Episodes, InputError, TrainingConfig, lsr, train
from aetdice.algorithms import ALGORITHMS
from aetdice.cli.train import SweptObjective, Train
from aetdice.config import AblationConfig, DualConfig, NetworkConfig, parse_setting
from aetdice.learning.legacy import NAMES, converted_config
from aetdice.learning.setup import algorithm_for, readable

GROUPS = {group.name: group.default_factory for group in fields(TrainingConfig)}
KINDS = {
    f"{group}.{name}": kind for group, made in GROUPS.items() for name, kind in get_type_hints(made).items()
}


def values_of(kind: Any) -> st.SearchStrategy:
    """Values that every rule allows."""
    simple = {
        int: st.integers(1, 900),
        float: st.floats(0.01, 0.99),
        bool: st.booleans(),
        type(None): st.none(),
    }
    if kind in simple:
        return simple[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.lists(st.integers(1, 300), min_size=1, max_size=3).map(tuple)
    return st.one_of(*map(values_of, get_args(kind)))


SETTINGS = st.fixed_dictionaries({}, optional={name: values_of(kind) for name, kind in KINDS.items()})


def written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


@given(SETTINGS)
def test_configuration_survives_files_and_command_lines(settings):
    config = TrainingConfig().adapted(settings)
    assert TrainingConfig.from_record(asdict(config)) == config
    assert TrainingConfig.from_record(json.loads(json.dumps(asdict(config)))) == config
    assert TrainingConfig().adapted(config.changed()) == config
    assert (
        TrainingConfig().adapted(dict(parse_setting(f"{k}={written(v)}") for k, v in settings.items()))
        == config
    )


@given(SETTINGS)
def test_changed_settings_are_those_not_at_their_defaults(settings):
    config, defaults = TrainingConfig().adapted(settings), asdict(TrainingConfig())
    for name in KINDS:
        group, setting = name.split(".")
        assert (name in config.changed()) == (asdict(config)[group][setting] != defaults[group][setting])
    assert config.without(tuple(GROUPS)) == TrainingConfig()
    assert config.without(("dual", "network.hidden")).changed() == {
        name: value
        for name, value in config.changed().items()
        if not name.startswith("dual.") and name != "network.hidden"
    }


@given(SETTINGS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_readable_configuration_is_accepted_and_keeps_what_is_read(algorithm, settings):
    config = TrainingConfig().adapted(settings)
    kept = readable(config, algorithm)
    ignores = algorithm_for(algorithm, 3, kept).ignores
    assert readable(kept, algorithm) == kept
    assert {**config.without(ignores).changed()} == kept.changed()


def test_numbers_take_the_type_of_their_setting(without_type_checks):
    config = TrainingConfig().adapted(
        {"dual.averaging": 1, "network.hidden": [4, 5], "dual.steps": np.int64(7)}
    )
    assert config == TrainingConfig(
        network=NetworkConfig(hidden=[4, 5]), dual=DualConfig(averaging=np.float32(1), steps=7)
    )
    assert isinstance(config.dual.averaging, float)
    assert isinstance(config.network.hidden, tuple)
    hash(config)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dual.step", "there is no setting 'dual.step'; did you mean dual.steps"),
        ("dual.anealing", "there is no setting 'dual.anealing'; did you mean dual.annealing"),
        ("floor", "there is no setting 'floor'; did you mean extraction.floor?"),
        ("steps", "iql.steps"),
        ("networks.hidden", "did you mean network.hidden"),
        ("zzz", "there is no setting 'zzz'; known: network.hidden, "),
    ],
)
def test_unknown_name_is_refused_with_what_may_have_been_meant(name, message):
    with pytest.raises(InputError) as refused:
        TrainingConfig().adapted({name: 1})
    assert message in str(refused.value)


WRONG = [
    ("dual.steps", 1.5, "dual.steps must be a whole number, not 1.5"),
    ("dual.steps", True, "dual.steps must be a whole number, not True"),
    ("dual.steps", 0, "dual.steps must be at least 1, not 0"),
    ("dual.gamma", 1, "dual.gamma must be at least 0 and below 1, not 1.0"),
    ("dual.gamma", 10**400, "dual.gamma must be a number, not 1000"),
    ("dual.gamma", float("nan"), "dual.gamma must be at least 0 and below 1, not nan"),
    ("dual.annealing", 0, "dual.annealing is a share above 0 and at most 1, not 0.0"),
    ("dual.refit", "all", "dual.refit must be constants, layer, none, not 'all'"),
    ("dual.divergence", 3, "dual.divergence must be chi2, soft-chi2, kl, not 3"),
    ("reward.terminal", 1, "reward.terminal must be true or false, not 1"),
    ("iql.n_step", 0, "iql.n_step must be at least 1, not 0"),
    ("network.hidden", 8, "network.hidden must be whole numbers, not 8"),
    ("network.hidden", [], "network.hidden needs at least one positive width, not ()"),
    ("network.hidden", [8, "9"], "network.hidden must be a whole number, not '9'"),
    ("network.value_fourier", "few", "network.value_fourier must be a whole number or none, not 'few'"),
    ("extraction.dropout", 1.0, "extraction.dropout must be at least 0 and below 1, not 1.0"),
    ("trainer.holdout", 1.0, "trainer.holdout is a share of the episodes below 1, not 1.0"),
    ("ablation.time", "head", "ablation.time must be input, heads, augmented, not 'head'"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_wrong_value_is_refused_wherever_it_is_given(name, value, message, without_type_checks):
    group, setting = name.split(".")
    for make in (
        lambda: TrainingConfig().adapted({name: value}),
        lambda: TrainingConfig.from_record({group: {setting: value}}),
        lambda: GROUPS[group](**{setting: value}),
    ):
        with pytest.raises(InputError) as refused:
            make()
        assert str(refused.value).startswith(message)


def test_a_name_of_an_earlier_version_is_still_read():
    new = TrainingConfig().adapted({"reward.terminal": True})
    assert TrainingConfig().adapted({"dual.terminal_reward": True}) == new
    assert TrainingConfig.from_record({"dual": {"terminal_reward": True, "steps": 12_000}}) == new
    assert TrainingConfig().adapted(dict([parse_setting("dual.terminal_reward=true")])) == new
    assert new.changed() == {"reward.terminal": True}


def test_groups_are_groups(without_type_checks):
    with pytest.raises(InputError, match="dual must be a DualConfig, not None"):
        TrainingConfig(dual=None)
    with pytest.raises(InputError, match=r"settings come in the groups ablation, dual, .*; 'steps' is none"):
        TrainingConfig.from_record({"steps": 3})
    with pytest.raises(InputError, match="'dual' is none"):
        TrainingConfig.from_record({"dual": 3})
    with pytest.raises(InputError, match="a setting is written as name=value"):
        parse_setting("dual.steps")


# What an algorithm, a dataset or an environment does not read is an error.


@pytest.mark.parametrize(
    ("algorithm", "settings", "message"),
    [
        (
            "aetdice",
            {"dual.gamma": 0.9},
            "aetdice does not read dual.gamma; it belongs to optidice, fairdice",
        ),
        ("fairdice", {"dual.n_step": 3}, "fairdice does not read dual.n_step; it belongs to aetdice"),
        (
            "optidice",
            {"reward.terminal": True},
            "optidice does not read reward.terminal; it belongs to aetdice, esr-iql",
        ),
        ("aetdice", {"iql.steps": 9}, "aetdice does not read iql.steps; it belongs to esr-iql"),
        ("esr-iql", {"dual.steps": 9}, "does not read dual.steps; it belongs to aetdice, optidice, fairdice"),
        ("bc", {"extraction.floor": 0.1}, "bc does not read extraction.floor; it belongs to aetdice"),
        ("aetdice", {"network.components": 2}, "network.components is for continuous actions; those of the"),
        ("aetdice", {"network.observation_fourier": 2}, "network.observation_fourier is for continuous obse"),
        ("aetdice", {"network.value_gain": 0.5}, "network.value_gain is for continuous observations"),
    ],
)
def test_setting_that_nobody_reads_is_refused_before_anything_is_written(
    algorithm, settings, message, tmp_path
):
    config = readable(TINY, algorithm).adapted(settings)
    with pytest.raises(InputError) as refused:
        train(
            tiny_episodes(), lsr(), algorithm=algorithm, config=config, out=tmp_path / "run", progress=False
        )
    assert message in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_settings_of_continuous_data_are_read_there():
    """One objective, one step: refused for what it lacks, but not for these settings."""
    episode = Episode(np.zeros((2, 1)), np.zeros((1, 2)), np.ones((1, 1)), True, False)
    settings = {"network.components": 2, "network.observation_fourier": 2, "network.value_gain": 0.5}
    with pytest.raises(InputError, match=r"a holdout of 0\.9 leaves none of the 1 episodes for training"):
        train(
            Episodes.from_list([episode]),
            lsr(),
            config=TrainingConfig().adapted({**settings, "trainer.holdout": 0.9}),
        )


TRAIN = ("train", "--env", "fair-taxi", "--dataset-episodes", "5", "--objective", "esr")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "dual.step=3"), "there is no setting 'dual.step'; did you mean dual.steps"),
        (("--set", "dual.steps"), "a setting is written as name=value, for example dual.annealing=0.3"),
        (("--set", "dual.steps=many"), "dual.steps must be a whole number, not 'many'"),
        (("--set", "dual.steps=3", "dual.gamma=0.9"), "aetdice does not read dual.gamma; it belongs to"),
        (("--algorithm", "bc", "--set", "dual.steps=3"), "bc does not read dual.steps; it belongs to"),
        (("--algorithm", "bc", "--beta", "1"), "this algorithm has no beta; it takes no hyper-parameters"),
        (("--set", "network.components=3"), "network.components is for continuous actions"),
        (("--env", "pointmaze-2obj", "--horizon", "9"), "pointmaze-2obj does not read --horizon; it belongs"),
    ],
)
def test_command_line_refuses_settings(capsys, tmp_path, options, message):
    assert complaint(capsys, *TRAIN, "--out", str(tmp_path / "run"), *options).startswith(message)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dual]\nstep = 3", "there is no setting 'dual.step'; did you mean dual.steps"),
        ("[dual]\nsteps = 3.5", "dual.steps must be a whole number, not 3.5"),
        ("steps = 3", "settings come in the groups"),
        ("[dual", "Expected ']'"),
        ("[dual]\nsteps = 1" + "0" * 5000, "Exceeds the limit"),
        ("\xff", ""),
    ],
)
def test_command_line_refuses_files_of_settings(capsys, tmp_path, text, message):
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="latin-1")
    said = complaint(capsys, *TRAIN, "--out", str(tmp_path / "run"), "--config", str(path))
    assert said.startswith(f"{path}: {message}")
    assert complaint(capsys, *TRAIN, "--out", str(tmp_path / "run"), "--config", str(tmp_path / "no.toml"))


def test_settings_of_the_command_line_come_after_those_of_the_file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[dual]\nsteps = 3\nbatch = 4\n[network]\nhidden = [8, 8]\n")
    given = Train(tmp_path, SweptObjective(), config=path, settings=("dual.steps=5", "trainer.holdout=none"))
    assert given.training_config().changed() == {
        "dual.steps": 5,
        "dual.batch": 4,
        "network.hidden": (8, 8),
    }


# Version 0.1.


def test_flat_settings_of_version_0_1_have_their_places():
    own = {
        "dual.starts", "dual.until_flat", "extraction.courses", "iql.n_step",
        "trainer.effort", "trainer.report", "trainer.streaming",
    }  # fmt: skip
    assert {new for places in NAMES.values() for new in places} | own == set(KINDS)
    flat = {
        "value_steps": 7,
        "batch": 32,
        "cloning_batch": None,
        "foresight": 4,
        "extraction": "weighted",
        "waves": 3,
        "hidden": [5, 6],
        "time": "heads",
        "polish": "layer",
    }
    assert converted_config(flat) == TrainingConfig(ablation=AblationConfig("heads")).adapted(
        {
            "dual.steps": 7,
            "iql.steps": 7,
            "dual.batch": 32,
            "iql.batch": 32,
            "extraction.batch": 32,
            "dual.n_step": 5,
            "ablation.weighted_loss": True,
            "network.observation_fourier": 3,
            "network.hidden": (5, 6),
            "dual.refit": "layer",
        }
    )
    assert converted_config({"batch": 32, "cloning_batch": 64}).extraction.batch == 64
