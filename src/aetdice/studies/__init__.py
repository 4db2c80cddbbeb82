"""The paper's studies and ours: in parts that run on some engine, and merge into tables."""

from aetdice.studies.registry import STUDIES
from aetdice.studies.running import reproduce

__all__ = ["STUDIES", "reproduce"]
