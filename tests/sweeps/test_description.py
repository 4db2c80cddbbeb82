"""What a sweep's file may say, and the sentence that refuses the rest."""

from glob import glob

import pytest
from support.refusals import complaint
from support.sweeps import CLONING, TAXI

from aetdice import InputError
from aetdice.sweeps.description import description_from, read_description
from aetdice.sweeps.plan import begin, plan_of
from aetdice.sweeps.values import Range, values_of

DICE = {"algorithm": "aetdice", "beta": [0.1, 0.01]}
SEARCH = {"search": "optuna", "trials": 4, "algorithms": [DICE]}
FAULTS = {
    "unknown-key": ({"seed": [0]}, "a sweep has no 'seed'; did you mean seeds?"),
    "no-datasets": ({"datasets": []}, "a sweep needs datasets: a list of names, or [[datasets]] tables"),
    "text-for-list": ({"objectives": "esr"}, "a sweep needs objectives: a list of names"),
    "number-for-table": ({"algorithms": [3]}, "algorithms are names or tables, not 3"),
    "data-from-python": ({"datasets": [{"data": [1, 2]}]}, "a dataset of a sweep needs data: a file"),
    "credentials": (
        {"datasets": ["https://me:pw@host/log.csv?token=x"]},
        "https://host/log.csv is given with credentials, which are not written down",
    ),
    "same-name": ({"datasets": [TAXI, TAXI]}, "two datasets are called 'taxi': give them a name each"),
    "algorithm": ({"algorithms": ["aetdyce"]}, "there is no algorithm 'aetdyce'; did you mean aetdice?"),
    "algorithms-in-one": (
        {"algorithms": [{"algorithm": ["aetdice", "bc"]}]},
        "algorithm is one name, not ['aetdice', 'bc']: several are several [[algorithms]]",
    ),
    "dataset-name": ({"datasets": [{**TAXI, "name": [1]}]}, "name of a dataset is text, not [1]"),
    "algorithm-twice": ({"algorithms": ["bc", "bc"]}, "bc is there twice: its settings are compared"),
    "foreign-value": ({"algorithms": [{"algorithm": "bc", "beta": 0.1}]}, "bc does not read beta"),
    "unknown-value": ({"algorithms": [{"algorithm": "bc", "gain": 1}]}, "nothing called 'gain' varies"),
    "unknown-setting": ({"grid": {"dual.step": [5]}}, "there is no setting 'dual.step'; did you mean"),
    "grid-unread": ({"grid": {"beta": [0.1]}}, "no algorithm of this sweep reads beta; it belongs to"),
    "settings-unread": (
        {"settings": {"iql": {"steps": 5}}},
        "no algorithm of this sweep reads iql.steps; it belongs to esr-iql",
    ),
    "wrong-type": ({"grid": {"network.hidden": [["wide"]]}}, "network.hidden must be a whole number"),
    "twice": ({"grid": {"learning_rate": [0.1, 0.1]}}, "learning_rate needs at least one value, and"),
    "seeds": ({"seeds": [1, 1]}, "seeds need at least one whole number, each once"),
    "seed-bits": ({"seeds": [2**31]}, "a seed has 32 bits, 2147483647 at most; not 2147483648"),
    "seed-text": ({"seeds": ["one"]}, "seeds must be a whole number, not 'one'"),
    "members": ({"packing": {"members": 0}}, "members must be at least 1, not 0"),
    "packing": ({"packing": {"momory": 1.0}}, "packing has no 'momory'; did you mean memory?"),
    "memory": ({"packing": {"memory": 0}}, "packing.memory must be positive, not 0"),
    "threads": ({"threads": 0.5}, "threads must be a whole number, not 0.5"),
    "gpus": ({"gpus": -1}, "gpus must be at least 0, not -1"),
    "gpus-and-a-half": ({"gpus": 1.5}, "gpus are a share of one or a whole number, not 1.5"),
    "effort": ({"effort": "huge"}, "trainer.effort must be quick, standard, thorough"),
    "range-in-a-grid": (
        {"algorithms": [{"algorithm": "aetdice", "beta": {"low": 0.1, "high": 1}}]},
        'beta is for a search: say search = "optuna"',
    ),
    "trials-in-a-grid": ({"trials": 5}, 'trials is for a search: say search = "optuna"'),
    "searcher": ({**SEARCH, "search": "hope"}, 'search is "optuna", not \'hope\''),
    "no-trials": ({"search": "optuna"}, "a search needs trials: how many settings to try"),
    "nothing-to-search": ({**SEARCH, "algorithms": ["bc"]}, "there is nothing to search for bc"),
    "criterion": ({**SEARCH, "criterion": "luck"}, "criterion is one of offline, estimate, environment"),
    "range": (
        {**SEARCH, "algorithms": [{**DICE, "beta": {"low": 1, "high": 0.1}}]},
        "beta needs low < high",
    ),
    "range-of-words": (
        {**SEARCH, "algorithms": [{**DICE, "dual.refit": {"low": 0, "high": 1}}]},
        "dual.refit has no range: give a list of choices",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), FAULTS.values(), ids=FAULTS)
def test_description_is_refused(changes, message):
    with pytest.raises(InputError) as refused:
        description_from({**CLONING, **changes})
    assert str(refused.value).startswith(message)


def test_the_grid_is_for_whoever_reads_it():
    described = description_from(
        {**CLONING, "algorithms": [DICE, "bc"], "grid": {"beta": 0.5, "learning_rate": [0.1, 0.2]}}
    )
    assert [entry.values for entry in described.algorithms] == [
        {"beta": [0.1, 0.01], "learning_rate": [0.1, 0.2]},
        {"learning_rate": [0.1, 0.2]},
    ]


def test_values_are_one_or_several():
    assert values_of("beta", 1) == [1.0]
    assert values_of("network.hidden", [8, 8]) == [(8, 8)]
    assert values_of("network.hidden", [[8], [8, 8]]) == [(8,), (8, 8)]
    assert values_of("dual.n_step", {"low": 1, "high": 4}) == Range(1, 4, False)
    assert values_of("beta", {"low": 1, "high": 4, "log": True}) == Range(1.0, 4.0, True)


def test_paths_are_relative_to_the_file(tmp_path):
    (tmp_path / "log.csv").write_text("")
    (tmp_path / "sweep.toml").write_text('datasets = ["log.csv"]\nobjectives = ["esr"]\nalgorithms = ["bc"]')
    (dataset,) = read_description(tmp_path / "sweep.toml").datasets
    assert dataset == {"name": "log.csv", "data": str(tmp_path / "log.csv")}


def test_the_folder_of_a_sweep_does_not_hide_the_environment_it_is_called_after(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "fair-taxi.toml"
    dataset = '{data = "fair-taxi", episodes = 2, horizon = 5}'
    file.write_text(f'objectives = ["esr"]\nalgorithms = ["bc"]\ndatasets = [{dataset}]')
    plan = plan_of(read_description(file))
    begin(plan, file.with_suffix(""))
    begin(plan_of(read_description(file)), file.with_suffix(""))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("seeds = [", "", "sweep.toml: Invalid value"),
        ('sedes = [1]', "", "sweep.toml: a sweep has no 'sedes'; did you mean seeds?"),
        (None, "", "there is no file sweep.toml"),
        ("a = " + 10_000 * "[", "", "sweep.toml: maximum recursion depth exceeded"),
    ],
)  # fmt: skip
def test_command_refuses_in_one_line(tmp_path, monkeypatch, capsys, text, options, message):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "sweep.toml").write_text(text)
    assert complaint(capsys, "sweep", "sweep.toml", *options.split()).startswith(message)


def test_a_folder_is_no_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert complaint(capsys, "sweep", ".") == ". cannot be read: Is a directory"


def test_patterns_may_be_absolute_and_folders_called_like_patterns(tmp_path):
    folder = tmp_path / "sweep [1]"
    folder.mkdir()
    (tmp_path / "log-0.csv").touch()
    (folder / "log-0.csv").touch()
    (folder / "sweep.toml").write_text(
        f'datasets = ["{tmp_path}/log-*.csv", "log-*.csv"]\nobjectives = ["esr"]\nalgorithms = ["bc"]\n'
    )
    far, near = (entry["data"] for entry in read_description(folder / "sweep.toml").datasets)
    assert far == f"{tmp_path}/log-*.csv"
    assert glob(near) == [str(folder / "log-0.csv")]


def test_patterns_are_beside_the_file_and_urls_are_nowhere_near(tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.csv").touch()
    data = ["log/*.csv", "none/*.csv", "memory://log/*.csv", "log"]
    content = {"datasets": data, "objectives": ["esr"], "algorithms": ["bc"]}
    found = [entry["data"] for entry in description_from(content, tmp_path).datasets]
    assert found == [f"{tmp_path}/log/*.csv", "none/*.csv", "memory://log/*.csv", f"{tmp_path}/log"]
