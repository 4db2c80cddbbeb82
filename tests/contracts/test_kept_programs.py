"""The command keeps compiled programs where the user wants them, and works as well without."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aetdice_command.cache import FOLDER, LEAST_SECONDS, drop_oldest, keep_programs


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}


def test_programs_are_kept_in_a_folder_of_ones_own(home, tmp_path):
    folder = keep_programs(home)
    assert folder is not None
    assert home[FOLDER] == str(folder)
    assert tmp_path in folder.parents
    assert keep_programs({key: value for key, value in home.items() if key != FOLDER}) == folder


def test_the_folder_may_be_another(home, tmp_path):
    folder = keep_programs({**home, "AETDICE_CACHE": str(tmp_path / "fast disk")})
    assert folder is not None
    assert tmp_path / "fast disk" in folder.parents


@pytest.mark.parametrize("said", [{"AETDICE_CACHE": "off"}, {FOLDER: "elsewhere"}])
def test_nothing_is_changed_where_the_user_has_decided(home, said, tmp_path):
    environment = {**home, **said}
    assert keep_programs(environment) is None
    assert environment == {**home, **said}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    environment = {"AETDICE_CACHE": str(tmp_path / "file")}
    assert keep_programs(environment) is None
    assert FOLDER not in environment
    monkeypatch.setattr(os, "access", lambda *_: False)  # as root, everything can be written
    environment = {"AETDICE_CACHE": str(tmp_path / "read-only")}
    assert keep_programs(environment) is None
    assert FOLDER not in environment


def test_the_oldest_programs_go_when_there_are_too_many(tmp_path):
    for age in range(10):
        path = tmp_path / f"program{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    drop_oldest(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    drop_oldest(tmp_path, 999)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"program{age}" for age in range(4)]


@pytest.mark.trains
def test_a_second_command_compiles_nothing_anew_and_damage_does_no_harm(tmp_path):
    environment = {**os.environ, "AETDICE_CACHE": str(tmp_path), LEAST_SECONDS: "0"}
    environment.pop(FOLDER, None)

    def solve() -> tuple[float, set[Path]]:
        command = [sys.executable, "-m", "aetdice", "solve", "two-step", "--objective", "esr", "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)["value"], {path for path in tmp_path.rglob("*") if path.is_file()}

    value, kept = solve()
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:50])
    assert solve() == (value, kept)
