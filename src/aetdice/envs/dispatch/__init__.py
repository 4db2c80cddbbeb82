"""A dispatch centre, its dataset, and its log as a file."""

from aetdice.envs.dispatch.centre import Dispatch
from aetdice.envs.dispatch.collection import collect_dispatch
from aetdice.envs.dispatch.log import LOG, log_table, write_log

__all__ = ["LOG", "Dispatch", "collect_dispatch", "log_table", "write_log"]
