"""Runs as one HTML page that people read: what was asked for, what is attained, and whether to trust it."""

from aetdice.page.report import write_report

__all__ = ["write_report"]
