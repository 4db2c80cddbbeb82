"""A real Ray cluster of two nodes here: one is killed in the middle of a sweep; a study runs on both.

Needs Ray (`pip install 'aetdice[ray]'`), and is left out where that is missing. With `-s` it prints what
happened.
"""

import collections
import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from support.sweeps import CLONING, lasting, planned
from support.tiny_studies import SURVIVED, TAXI

from aetdice import InputError
from aetdice.engines.local import LocalEngine
from aetdice.engines.task import ATTEMPTS
from aetdice.learning.table import PASSING
from aetdice.studies.registry import Named
from aetdice.studies.running import Place, run_study, write_all
from aetdice.sweeps import read_table
from aetdice.sweeps.job import finished_jobs
from aetdice.sweeps.plan import begin
from aetdice.sweeps.sweeping import run_on

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'aetdice[ray]'")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings are not ours
FINISHED = 3
"""Jobs that are done before a node dies."""
PATIENT = {
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_health_check_failure_threshold": "60",
    "RAY_worker_niceness": "0",
}
"""On a busy machine a slow node is not a dead one; a killed one is known by its closed connections."""
SMALL = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes, each with room for one job."""
    known = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path), **PATIENT}
    for name, value in known.items():  # the nodes inherit it
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    cluster.second = cluster.add_node(**SMALL)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


def plan_of_24():
    longer = {**CLONING["settings"], "extraction": {"steps": 1000, "batch": 8}, "trainer": {"chunk": 20}}
    return planned(
        objectives=["esr", "ser"], seeds=list(range(12)), settings=longer, packing={"members": 2}, retries=3
    )


def test_a_node_that_dies_loses_nothing(cluster, tmp_path):
    from aetdice.engines.ray import RayEngine

    plan = plan_of_24()
    assert sum(job.members for job in plan.jobs) == 24
    on_cluster, here = tmp_path / "cluster", tmp_path / "local"
    begin(plan, on_cluster)
    killed: list[str] = []
    killer = threading.Thread(target=kill_busy, args=(cluster.second, on_cluster, killed), daemon=True)
    killer.start()
    started = time.monotonic()
    engine = RayEngine(on_cluster, cluster.address, threads=1, gpus=0.0)
    try:
        swept = run_on(engine, plan, on_cluster)
    finally:
        engine.cancel()
    seconds = time.monotonic() - started
    begin(plan, here)
    reference = LocalEngine(here, workers=1, threads=1)
    try:
        local = run_on(reference, plan, here)
    finally:
        reference.cancel()

    attempts = {job.name: attempts_of(job) for job in finished_jobs(on_cluster)}
    hosts = collections.Counter(row["host"] for row in swept.rows)
    print(
        f"\n{len(swept.rows)} members in {len(attempts)} jobs, {seconds:.0f} s; killed while doing {killed}"
    )
    print(f"attempts {sum(map(len, attempts.values()))}; members by node {dict(hosts)}")
    assert killed, "the sweep was over before a node could be killed"
    assert swept.failed == {}
    assert len(attempts) == len(plan.jobs)
    assert {name for name, found in attempts.items() if len(found) > 1} == set(killed)
    assert sorted((row["objective"], row["seed"]) for row in swept.rows) == sorted(
        (name, seed) for name in ("ESR", "SER") for seed in range(12)
    )
    assert lasting(swept.rows) == lasting(local.rows)
    assert (
        read_table(on_cluster)
        .drop_columns(["seconds", "host", "attempts"])
        .equals(read_table(here).drop_columns(["seconds", "host", "attempts"]))
    )


def test_a_study_on_a_cluster_finds_what_it_finds_here(cluster, tmp_path):
    """One part of which kills the process that does it, the first time."""
    on_cluster, here = tmp_path / "cluster", tmp_path / "here"
    named = Named(TAXI, True)
    done = run_study(named, on_cluster, Place("ray", address=cluster.address))
    assert done.failed == {}
    (here / "parts" / "fatal").mkdir(parents=True)
    (here / "parts" / "fatal" / SURVIVED).touch()
    local = run_study(named, here)
    tables = []
    for folder, found in ((on_cluster, done), (here, local)):
        write_all(named.make(), found.results, folder)
        tables.append(read_table(folder))
    hosts, attempts = (tables[0][name].to_pylist() for name in ("host", "attempts"))
    assert all(", Ray node " in host for host in hosts)
    assert set(attempts) == {1}
    assert tables[0].drop_columns(list(PASSING)).equals(tables[1].drop_columns(list(PASSING)))


def test_a_node_that_does_not_see_the_folder_says_so(cluster, tmp_path):
    from aetdice.engines.ray import RayEngine

    engine = RayEngine(tmp_path / "elsewhere", cluster.address, threads=1, gpus=0.0)
    (job,) = planned().jobs
    try:
        engine.submit(job.task())
        (outcome,) = engine.completed(120.0)
    finally:
        engine.cancel()
    assert outcome.ended.state == "failed"
    assert outcome.ended.words.endswith("elsewhere: the folder must be shared by all machines")


def test_where_no_cluster_is_the_sentence_says_so_at_once(tmp_path):
    from aetdice.engines.ray import RayEngine

    with pytest.raises(InputError, match=r"there is no Ray cluster at 127.0.0.1:1 \(.*refused\): begin one"):
        RayEngine(tmp_path, "127.0.0.1:1", threads=1, gpus=0.0)


def attempts_of(job: Path) -> list[dict]:
    return [json.loads(line) for line in (job / ATTEMPTS).read_text().splitlines()]


def kill_busy(node, folder: Path, killed: list[str]) -> None:
    """Kill a node with all its processes, once some jobs are done and it is in the middle of one."""
    while True:
        time.sleep(0.02)
        done = {job.name for job in finished_jobs(folder)}
        for job in set((folder / "jobs").glob("*")) if len(done) >= FINISHED else ():
            if job.name in done or not (job / "checkpoint.npz").exists():
                continue
            if node.node_id[:8] in attempts_of(job)[-1]["host"]:
                for pid in reversed(tree_of(node.all_processes["raylet"][0].process.pid)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                killed.append(job.name)
                return


def tree_of(pid: int) -> list[int]:
    """A process and all below it, the children last."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(below for child in children for below in tree_of(int(child)))]
