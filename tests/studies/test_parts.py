"""Studies in parts: what is saved is not done again, and what does not fit is refused."""

import json
import re
from dataclasses import replace

import pytest
from support.refusals import complaint

from aetdice import InputError
from aetdice.engines.base import Outcome
from aetdice.engines.in_process import InProcessEngine
from aetdice.engines.local import LocalEngine
from aetdice.studies import parts as parts_module
from aetdice.studies.parts import Part, code_commit, do_part, write_summary
from aetdice.studies.running import complete, run_parts, task_of


class Counted:
    """Work that counts how often it is done."""

    def __init__(self, result: dict) -> None:
        self.result, self.done = result, 0

    def __call__(self, folder, progress) -> dict:
        self.done += 1
        progress("values", 1, 1, {})
        return self.result


@pytest.fixture
def works() -> dict[str, Counted]:
    return {name: Counted({"found": name}) for name in ("first", "second")}


def parts(works: dict[str, Counted], **facts) -> list[Part]:
    return [Part(name, {"name": name, "grid": (1, 2), **facts}, work) for name, work in works.items()]


def test_a_part_that_is_saved_is_not_done_again(works, tmp_path):
    results = complete(parts(works), tmp_path)
    assert results == {"first": {"found": "first"}, "second": {"found": "second"}}
    assert complete(parts(works), tmp_path) == results
    assert [work.done for work in works.values()] == [1, 1]


def test_only_the_named_parts_are_done_and_those_saved_are_read(works, tmp_path):
    assert list(complete(parts(works), tmp_path, only=["second"])) == ["second"]
    assert list(complete(parts(works), tmp_path, only=["first"])) == ["first", "second"]
    assert [work.done for work in works.values()] == [1, 1]


def test_a_part_that_was_cut_off_is_done_again(works, tmp_path):
    def breaks(folder, progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete([*parts(works), Part("third", {}, breaks)], tmp_path)
    complete(parts(works), tmp_path)
    assert [work.done for work in works.values()] == [1, 1]
    assert not (tmp_path / "parts" / "third.json").exists()


def test_a_part_that_is_refused_stops_no_other(works, tmp_path):
    def refuses(folder, progress):
        raise InputError("the data has changed")

    several = [Part("refused", {}, refuses), *parts(works)]
    message = r"^1 part\(s\) came to nothing, the first is refused: the data has changed$"
    with pytest.raises(InputError, match=message):
        complete(several, tmp_path)
    assert [work.done for work in works.values()] == [1, 1]
    with pytest.raises(InputError, match=message):  # it is tried again, and what is done is not
        complete(several, tmp_path)
    assert [work.done for work in works.values()] == [1, 1]


class Patient(InProcessEngine):
    """Does what it was given only when it is given nothing more."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.looks: list[list[str]] = []

    def completed(self, seconds: float) -> list[Outcome]:
        self.looks.append([task.name for task in self.waiting])
        return [ended for _ in range(len(self.waiting)) for ended in super(Patient, self).completed(seconds)]


@pytest.mark.parametrize("only", [[], ["third"]])
def test_a_part_waits_for_those_that_it_reads_if_they_are_to_be_done(works, tmp_path, only):
    third = Part("third", {}, lambda *_: {"found": "third"}, after=("first", "second"))
    several = [third, *parts(works)]
    known = {part.name: part for part in several}
    engine = Patient(tmp_path, lambda record, own: do_part(known[record["part"]], own))
    done = run_parts(engine, tmp_path, several, only)
    assert engine.looks == ([["third"]] if only else [["first", "second"], ["third"]])
    assert list(done.results) == (only or ["third", "first", "second"])


@pytest.mark.parametrize("only", [(), ("first",)])
def test_what_reads_a_part_that_is_made_again_is_no_longer_done(works, tmp_path, only):
    first, second = parts(works)
    second = replace(second, after=("first",))
    complete([first, second], tmp_path)
    (tmp_path / "parts" / "first.json").unlink()
    found = complete([first, second], tmp_path, only)
    assert list(found) == (["first"] if only else ["first", "second"])
    assert (tmp_path / "parts" / "second.json").exists() == (not only)
    assert [work.done for work in works.values()] == [2, 1 if only else 2]


def test_the_largest_parts_begin_first(works, tmp_path):
    several = [replace(part, members=members) for part, members in zip(parts(works), (1, 9), strict=True)]
    known = {part.name: part for part in several}
    engine = Patient(tmp_path, lambda record, own: do_part(known[record["part"]], own))
    assert list(run_parts(engine, tmp_path, several).results) == ["first", "second"]
    assert engine.looks == [["second", "first"]]


def test_what_has_waited_is_given_to_the_next_worker(tmp_path):
    """So that rollouts of one training keep cores busy while the next one is on the device."""
    engine = LocalEngine(tmp_path, workers=1, threads=1)
    training, rollouts = (
        task_of(Part(name, {}, lambda *_: {}, after), None) for name, after in (("a", ()), ("b", ("c",)))
    )
    engine.submit(training)
    engine.submit(rollouts)
    assert list(engine.waiting) == [rollouts, training]


def test_a_summary_says_how_parts_were_made_and_leaves_samples_and_foreign_files_out(works, tmp_path):
    complete(parts(works), tmp_path)
    for name, text in {"broken": "{", "foreign": "[1]", "old": '{"facts": {}}'}.items():
        (tmp_path / "parts" / f"{name}.json").write_text(text)
    write_summary(
        tmp_path, {"rows": {"a": {"score": 1, "samples": {"returns": [2, 3]}}}, "seeds": [{"samples": {}}]}
    )
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary.pop("made").keys() == {"first", "second"}
    assert summary == {"format": 2, "rows": {"a": {"score": 1}}, "seeds": [{}]}


def test_progress_says_which_part_it_is(works, tmp_path):
    heard = []
    complete(
        parts(works), tmp_path, progress=lambda stage, step, total, _: heard.append((stage, step, total))
    )
    assert [stage for stage, *_ in heard if stage.endswith("values")] == ["first values", "second values"]
    assert [each for each in heard if each[0] == "parts"] == [("parts", done, 2) for done in range(3)]


def test_a_record_says_what_it_depends_on(works, tmp_path):
    complete(parts(works), tmp_path)
    record = json.loads((tmp_path / "parts" / "first.json").read_text())
    assert record["facts"] == {"name": "first", "grid": [1, 2]}
    assert {"commit", "date", "device", "seconds", "versions", "results"} <= set(record)


def test_the_commit_of_the_code_is_known_in_a_repository_only(monkeypatch, tmp_path):
    assert re.fullmatch(r"[0-9a-f]{12}\+?", code_commit() or "")
    monkeypatch.setattr(parts_module, "__file__", str(tmp_path / "parts.py"))
    assert code_commit() is None


def test_other_settings_are_refused(works, tmp_path):
    complete(parts(works), tmp_path)
    with pytest.raises(InputError, match="was made with other settings; choose another folder or delete it"):
        complete(parts(works, seeds=3), tmp_path)


def test_a_file_that_is_no_part_is_refused(works, tmp_path):
    path = tmp_path / "parts" / "first.json"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(InputError, match="is not a part of a study: 'facts'; delete it to make it again"):
        complete(parts(works), tmp_path)


def test_an_unknown_part_is_refused_before_anything_is_done(works, tmp_path):
    with pytest.raises(InputError, match="no part is called 'third'; parts: first, second"):
        complete(parts(works), tmp_path, only=["first", "third"])
    assert [work.done for work in works.values()] == [0, 0]


def test_parts_that_wait_for_each_other_are_refused(works, tmp_path):
    first, second = parts(works)
    with pytest.raises(InputError, match="parts that wait for each other: first, second"):
        complete([replace(first, after=("second",)), replace(second, after=("first",))], tmp_path)
    assert [work.done for work in works.values()] == [0, 0]


@pytest.mark.parametrize("maze", ["pointmaze-2obj", "pointmaze-3obj"])
def test_the_command_line_refuses_an_unknown_part(capsys, tmp_path, maze):
    words = complaint(capsys, "reproduce", maze, "--quick", "--part", "bc", "--out", str(tmp_path))
    assert words.startswith("no part is called 'bc'; parts: reference, aetdice, aetdice-linear")
