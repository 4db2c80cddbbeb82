"""Where metrics go: JSON lines, TensorBoard files, Weights & Biases."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.training import TINY, tiny_run
from tensorboardX.proto.event_pb2 import Event

from aetdice import InputError, lsr
from aetdice.learning.trackers import METRICS, JsonLines, TensorBoard, Tracker, WeightsAndBiases
from aetdice.learning.watching import watch_run

pytestmark = pytest.mark.trains

MEMBERS = {"algorithm": "optidice", "objective": lsr((1.0, 0.5)), "beta": [0.5, 2.0], "seed": [0, 1]}


class Everything:
    """A tracker that keeps what it is told."""

    def __init__(self):
        self.rows, self.closed = [], 0

    def write(self, stage, step, seconds, metrics):
        self.rows.append((stage, step, metrics))

    def close(self):
        self.closed += 1


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    """A run of four members that writes to a folder, to TensorBoard and to a tracker of one's own."""
    folder, own = tmp_path_factory.mktemp("tracked"), Everything()
    run = tiny_run(out=folder, trackers=[own, TensorBoard(folder / "tensorboard")], **MEMBERS)
    return folder, own, run


def rows(folder):
    return [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]


def test_one_line_per_chunk(tracked):
    chunks = [25, 50, 75, 100]
    assert [row["step"] for row in rows(tracked[0]) if row["stage"] == "values"] == chunks
    assert [row["step"] for row in rows(tracked[0]) if row["stage"] == "refit"] == [1, 2, 3, 4]
    assert [row["step"] for row in rows(tracked[0]) if row["stage"] == "cloning"] == chunks
    assert len(rows(tracked[0])) == 12


def test_every_metric_has_one_entry_per_member(tracked):
    for row in rows(tracked[0]):
        metrics = {name: row[name] for name in set(row) - {"stage", "step", "seconds"}}
        assert {len(entries) for entries in metrics.values()} <= {4}
        assert all(np.all(np.isfinite(entries)) for entries in metrics.values())
        if row["stage"] == "values":
            assert {"mass_violation", "flow_violation", "dual_value", "claimed_value"} < set(metrics)
            assert np.shape(metrics["slack"]) == (4, 2)
        if row["stage"] == "cloning":
            assert set(metrics) == {"log_likelihood", "twin_log_likelihood"}


def test_members_of_one_seed_have_one_twin(tracked):
    last = rows(tracked[0])[-1]["twin_log_likelihood"]
    assert last[0] == last[2]
    assert last[1] == last[3]
    assert last[0] != last[1]


def test_lines_of_a_resumed_run_follow_those_before(tracked):
    before = len(rows(tracked[0]))
    tiny_run(out=tracked[0], **MEMBERS)
    assert len(rows(tracked[0])) == before
    seconds = [row["seconds"] for row in rows(tracked[0])]
    assert seconds == sorted(seconds)


def test_a_run_that_has_ended_is_watched_to_its_verdict(tracked):
    folder, own, run = tracked
    state = watch_run(folder)
    assert state.totals == {"values": 100, "refit": 4, "cloning": 100}
    assert state.steps == state.totals
    assert [each["verdict"] for each in state.result["by_objective"]] == [run.verdict.words]
    last = own.rows[-1][2]["log_likelihood"]
    [curve, _] = state.curves
    assert (curve.low, curve.high) == (min(last), max(last))


def test_trackers_are_told_the_same_and_closed_once(tracked):
    folder, own, _ = tracked
    plain = [{"stage": stage, "step": step, **metrics} for stage, step, metrics in own.rows]
    written = [{name: row[name] for name in row if name != "seconds"} for row in rows(folder)]
    assert written == plain
    assert own.closed == 1


def test_trackers_are_closed_when_a_run_is_cut():
    own = Everything()

    def cut(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_run(trackers=[own], progress=cut, **MEMBERS)
    assert own.closed == 1


@pytest.mark.parametrize("make", [JsonLines, TensorBoard])
def test_trackers_are_trackers(make, tmp_path):
    assert isinstance(make(tmp_path), Tracker)


def test_tensorboard_has_a_curve_per_member(tracked):
    folder, own, _ = tracked
    for member in range(4):
        [path] = (folder / "tensorboard" / f"member-{member}").iterdir()
        curves = {}
        for record in records(path.read_bytes()):
            event = Event.FromString(record)
            for value in event.summary.value:
                curves.setdefault(value.tag, []).append((event.step, value.simple_value))
        expected = [(step, m["dual_value"][member]) for stage, step, m in own.rows if stage == "values"]
        np.testing.assert_allclose(curves["values/dual_value"], expected, rtol=1e-6)
        expected = [(step, m["slack"][member][1]) for stage, step, m in own.rows if stage == "values"]
        np.testing.assert_allclose(curves["values/slack_1"], expected, rtol=1e-6)
        assert len(curves["cloning/twin_log_likelihood"]) == 4
    assert not (folder / "tensorboard" / "member-4").exists()


def records(content: bytes):
    """TFRecord: length (8 bytes), its checksum (4), the record, its checksum (4)."""
    while content:
        size = int.from_bytes(content[:8], "little")
        yield content[12 : 12 + size]
        content = content[16 + size :]


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("tensorboardX", lambda path: TensorBoard(path), "tensorboard"),
        ("wandb", lambda path: WeightsAndBiases("mine", {}), "wandb"),
    ],
)
def test_missing_extra_is_named(monkeypatch, tmp_path, module, make, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"need.* {module}: pip install 'aetdice\[{extra}\]'$"):
        make(tmp_path)


def test_weights_and_biases_get_one_run_with_everything_in_it(monkeypatch):
    told, fake = SimpleNamespace(init=[], rows=[], finished=0), ModuleType("wandb")

    class Run:
        def log(self, row):
            told.rows.append(row)

        def finish(self):
            told.finished += 1

    def init(**arguments):
        told.init.append(arguments)
        return Run()

    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    tracker, own = WeightsAndBiases("mine", {"batch": TINY.dual.batch}), Everything()
    assert isinstance(tracker, Tracker)
    tiny_run(trackers=[tracker, own], **MEMBERS)
    assert told.init == [{"project": "mine", "config": {"batch": 16}}]
    assert told.finished == 1
    assert len(told.rows) == len(own.rows) == 12
    stage, step, metrics = own.rows[0]
    assert (stage, step) == ("values", told.rows[0]["values/step"])
    assert told.rows[0]["values/dual_value/3"] == metrics["dual_value"][3]
    assert told.rows[0]["values/slack_1/2"] == metrics["slack"][2][1]
    assert told.rows[-1]["cloning/log_likelihood/0"] == own.rows[-1][2]["log_likelihood"][0]
