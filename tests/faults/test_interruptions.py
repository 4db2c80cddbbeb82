"""A full disk, Ctrl-C and a closed pipe: one sentence, and nothing half-written."""

import os
import resource
import subprocess
import sys

import pandas as pd
import pytest
from support.logs import log_columns
from support.refusals import complaint

from aetdice.cli import main
from aetdice.data import conversion

COLUMNS = ["--columns", "actions=send", "rewards=served,waited"]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(log_columns()).to_csv("log.csv", index=False)


@pytest.fixture
def full_disk():
    """No file grows beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.npz", "out"])
def test_a_full_disk_is_one_sentence(log, full_disk, capfd, target):
    said = complaint(capfd, "convert", "log.csv", target, *COLUMNS)
    assert "File too large" in said or "requested and" in said
    assert os.listdir() == ["log.csv"]


def test_a_store_survives_a_disk_that_fills_up(log, capfd, request):
    main(["convert", "log.csv", "store", *COLUMNS])
    before = {name: os.path.getsize(f"store/{name}") for name in os.listdir("store")}
    capfd.readouterr()
    request.getfixturevalue("full_disk")
    said = complaint(capfd, "convert", "log.csv", "store", "--append", *COLUMNS)
    assert "File too large" in said or "requested and" in said
    assert {name: os.path.getsize(f"store/{name}") for name in os.listdir("store")} == before


def test_an_interruption_is_one_word(log, capfd, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "coded_actions", stopped)  # in the middle of the writing
    with pytest.raises(SystemExit) as left:
        main(["convert", "log.csv", "out", *COLUMNS])
    assert left.value.code == 130
    assert capfd.readouterr().err == "interrupted\n"
    assert os.listdir() == ["log.csv"]


def test_a_closed_pipe_ends_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from aetdice.cli import main; main(['--help'])"]
    left = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert (left.returncode, left.stderr) == (1, "")
