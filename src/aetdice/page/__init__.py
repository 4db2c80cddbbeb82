"""Runs and studies as one HTML page that people read: what was asked for, what is attained, what to trust."""

from aetdice.page.report import write_report
from aetdice.page.study import write_study_report

__all__ = ["write_report", "write_study_report"]
