"""From a description to jobs: what is left out, what is trained together, and what is refused."""

import json
import threading
import time

import pytest
from support.sweeps import CLONING, TAXI, planned

from aetdice import InputError
from aetdice.locking import alone
from aetdice.sweeps.jobs import PLAN, job_from
from aetdice.sweeps.plan import begin

DICE = {"algorithm": "aetdice", "beta": [0.1, 0.01]}
DUAL = {**CLONING["settings"], "dual": {"steps": 20}}
BSR = {"objective": "bsr", "alpha": [0.0, 0.5, 1.0]}


def members_of(jobs):
    """Every member of every job, as the table will tell them apart."""
    return [
        (job.dataset, job.algorithm, objective["name"], beta, str(job.varied), seed)
        for job in jobs
        for objective in job.objectives
        for beta in job.values.get("beta", [None])
        for seed in job.seeds
    ]


@pytest.mark.parametrize("most", [1, 5])
def test_every_combination_is_planned_once_however_it_is_packed(most):
    plan = planned(
        objectives=[BSR, "esr"],
        algorithms=[{**DICE, "dual.n_step": [1, 2]}, "bc"],
        seeds=[0, 1, 2],
        settings=DUAL,
        packing={"members": most},
    )
    found = members_of(plan.jobs)
    assert len(set(found)) == len(found) == 4 * 3 * (2 * 2 + 1)
    assert all(job.members <= most for job in plan.jobs)
    assert sum(job.members for job in plan.jobs) == len(found)
    assert len({job.id for job in plan.jobs}) == len(plan.jobs)


def test_jobs_hold_members_of_one_shape():
    """Objectives of other forms, and settings, are other programs."""
    plan = planned(
        objectives=[BSR, "esr"], algorithms=[{**DICE, "network.hidden": [[4], [8]]}], settings=DUAL
    )
    assert [(len(job.objectives), job.varied["network.hidden"]) for job in plan.jobs] == [
        (3, (4,)), (3, (8,)), (1, (4,)), (1, (8,))
    ]  # fmt: skip


def test_memory_cuts_as_the_number_of_members_does():
    whole = planned(seeds=[0, 1, 2, 3]).jobs
    assert [job.members for job in whole] == [4]
    half = planned(seeds=[0, 1, 2, 3], packing={"memory": 0.6 * whole[0].memory / 2**30}).jobs
    assert [job.seeds for job in half] == [[0, 1], [2, 3]]
    assert all(job.memory <= 0.6 * whole[0].memory for job in half)
    single = planned(seeds=[0, 1], packing={"memory": 1e-6})
    assert [job.seeds for job in single.jobs] == [[0], [1]]
    assert single.remarks[0].startswith(f"job {single.jobs[0].id} is a single member and takes about")


def test_settings_that_are_trained_apart_are_compared_on_held_out_episodes():
    def shares(**changes):
        return {job.settings["trainer"]["holdout"] for job in planned(algorithms=[DICE], **changes).jobs}

    assert shares(settings=DUAL) == {None}
    assert shares(settings=DUAL, packing={"members": 1}) == {0.1}
    chosen = {**DUAL, "trainer": {"holdout": 0.2}}
    assert shares(settings=chosen, packing={"members": 1}) == {0.2}


def test_what_an_algorithm_cannot_optimise_is_left_out_and_said_to_be():
    plan = planned(objectives=["esr", "ser"], algorithms=["bc", "fairdice"], settings=DUAL)
    assert [(job.algorithm, job.objectives[0]["name"][:3]) for job in plan.jobs] == [
        ("bc", "ESR"), ("bc", "SER"), ("fairdice", "SER")
    ]  # fmt: skip
    (remark,) = plan.remarks
    assert remark.startswith("left out on taxi: fairdice optimises linear and SER objectives; ESR is ESR")


def test_a_job_survives_json():
    (job,) = planned(algorithms=[{**DICE, "network.hidden": [[4]]}], settings=DUAL).jobs
    again = job_from(json.loads(json.dumps(job.record())))
    assert again.record() == job.record()
    assert again.numbered(0).id == job.id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": [{**TAXI, "episods": 3}]}, "dataset taxi: it takes no 'episods'; did you mean epi"),
        ({"datasets": ["no-such"]}, "dataset no-such: there is no environment 'no-such'"),
        ({"datasets": [{**TAXI, "size": 0}]}, "dataset taxi: size must be at least 1, not 0"),
        ({"datasets": [{**TAXI, "episodes": "many"}]}, "dataset taxi: episodes must be a whole number, not"),
        ({"datasets": [{**TAXI, "origins": 3}]}, "dataset taxi: one of its options cannot be used"),
        ({"objectives": ["estr"]}, "dataset taxi: unknown objective 'estr'"),
        ({"objectives": [{"objective": "bsr", "alpha": ["half"]}]}, "dataset taxi: alpha of an obj"),
        ({"objectives": [{"objective": "bsr", "alpha": {"low": 0}}]}, "dataset taxi: alpha of an obj"),
        ({"objectives": [{"objective": ["esr", "ser"]}]}, "dataset taxi: objective of an objective is text"),
        ({"objectives": ["esr", "esr"]}, "dataset taxi: the objective ESR"),
        ({"objectives": ["ser"], "algorithms": ["esr-iql"], "settings": {}}, "nothing can be"),
        ({"algorithms": [{"algorithm": "aetdice", "beta": 0}], "settings": DUAL}, "beta must be positive"),
        ({"grid": {"learning_rate": [-1]}}, "learning_rate must be positive, not -1"),
        ({"grid": {"learning_rate": [float("nan")]}}, "learning_rate must be positive, not nan"),
        ({"grid": {"network.components": [2]}}, "network.components is for continuous actions"),
    ],
)  # fmt: skip
def test_plan_is_refused(changes, message):
    with pytest.raises(InputError) as refused:
        planned(**changes)
    assert str(refused.value).startswith(message)


def test_a_folder_holds_one_sweep(tmp_path):
    begin(planned(), tmp_path)
    begin(planned(retries=7), tmp_path)
    with pytest.raises(InputError, match="holds another sweep, different in seeds: choose another"):
        begin(planned(seeds=[1]), tmp_path)
    with pytest.raises(InputError, match="different in algorithms, settings: choose"):
        begin(planned(algorithms=[DICE], settings=DUAL), tmp_path)


def test_a_folder_knows_that_data_has_changed(tmp_path):
    log = tmp_path / "log.csv"
    for last in ("1", "2"):
        log.write_text(f"episode,x,action,r0,r1\n0,0.5,0,0.5,1\n1,0.1,1,0.5,{last}\n")
        plan = planned(datasets=[str(log)])
        if last == "1":
            begin(plan, tmp_path / "sweep")
    with pytest.raises(InputError, match="holds another sweep, different in its data"):
        begin(plan, tmp_path / "sweep")


def test_two_sweeps_that_begin_at_once_do_not_share_a_folder(tmp_path):
    """Each looks and writes alone: exactly one of them gets the folder."""
    refused = []

    def try_to(plan):
        try:
            begin(plan, tmp_path)
        except InputError as error:
            refused.append(error)

    with alone(tmp_path / "lock"):  # both wait here
        threads = [threading.Thread(target=try_to, args=(planned(seeds=[seed]),)) for seed in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        assert not (tmp_path / PLAN).exists()
    for thread in threads:
        thread.join()
    assert len(refused) == 1


def test_remarks_on_data_name_the_dataset(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("episode,x,action,r0,r1\n0,0.5,0,0.5,1\n1,0.1,1,0.5,2\n")
    remarks = planned(datasets=[{"data": str(log), "name": "mine"}]).remarks
    assert remarks
    assert all(remark.startswith("mine: ") for remark in remarks)
