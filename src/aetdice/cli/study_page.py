"""A study's folder as one HTML page."""

import shlex
from pathlib import Path

from aetdice.errors import InputError
from aetdice.page import write_study_report
from aetdice.studies.parts import Results
from aetdice.studies.populations import parts_of
from aetdice.studies.registry import STUDIES, Named
from aetdice.studies.reporting import told
from aetdice.studies.running import folder_of, results_in, study_in

PAGE = "report.html"


def write_page(named: Named, results: Results, folder: Path, path: Path) -> Path:
    """The page of a study whose `report` is written, with its figures."""
    figures = sorted(folder.glob("*.png"))
    found = told(named.make(), results, folder)
    return write_study_report(found, path, figures=figures, command=command_for(named, folder))


def page_in(folder: Path, path: Path) -> Path:
    """The same, of the parts that are done in a folder."""
    named = study_in(folder)
    if named.study not in STUDIES:  # a file may not say which code is run
        raise InputError(f"{folder} holds a study of your own, {named.study}: reproduce it to see its tables")
    results = results_in(folder, parts_of(named.make()))
    if not results:
        raise InputError(f"no part of the study in {folder} is done yet")
    return write_page(named, results, folder, path)


def command_for(named: Named, folder: Path) -> str:
    """What makes the whole study again."""
    words = ["aetdice", "reproduce", named.study, *(["--quick"] if named.quick else []), "--report"]
    return shlex.join([*words, *([] if folder == folder_of(named) else ["--out", str(folder)])])
