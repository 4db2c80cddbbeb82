"""Which column of a table is what: named by the user, or guessed by name and shown."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aetdice.errors import InputError

ONE = ("episode", "step", "terminated", "truncated")
"""Roles of one column; all others may have several."""
NONE = "-"
"""Given for a role: no column has it."""
TAIL = r"(?:[_.:/\- \[]?\d+\]?|[_.:/\- ].+)?"
"""After a role's name: a number, or a name of its own."""
PATTERNS = {
    "episode": r"(?:episode|ep|trajectory|traj|session|shift|trip)(?:[_ ]?(?:id|number|no|index))?s?",
    "step": r"(?:step|timestep|time_step|time|t)(?:[_ ]?(?:id|number|no|index))?",
    "terminated": r"(?:is_)?(?:terminated|terminal|termination|done)s?",
    "truncated": r"(?:is_)?(?:truncated|truncation|timeout|time_out)s?",
    "next_observations": rf"next_(?:obs|observation|state|s)s?{TAIL}",
    "rewards": rf"(?:rewards?|rew|r){TAIL}",
    "actions": rf"(?:actions?|act|a){TAIL}",
    "observations": rf"(?:obs|observations?|states?|s){TAIL}",
}
NAMELESS = re.compile(r"(?:unnamed: ?\d+|__index_level_\d+__)?", re.I)
"""What a table's index is called that was written along with it: a row number, and nothing observed."""
OWN_NAME = re.compile(r"(?:obs|observations?|states?|actions?|act|rewards?|rew)[_.:/\- ](.*[^\d].*)", re.I)


@dataclass(frozen=True)
class Columns:
    """The columns of a log by role. Roles that are not given are guessed by name; `-` is none.

    `categories` are columns whose numbers are labels, `numbers` those whose whole numbers are not; `ignored`
    columns are not read.
    """

    episode: str | None = None
    step: str | None = None
    observations: tuple[str, ...] = ()
    next_observations: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    rewards: tuple[str, ...] = ()
    terminated: str | None = None
    truncated: str | None = None
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Columns":
        """From JSON or TOML: a name, or a list of names, for each role."""
        known = [field.name for field in fields(cls)]
        if not isinstance(record, Mapping):
            raise InputError(f"columns are a mapping from roles to names, not {record!r}")
        given: dict[str, Any] = {}
        for role, value in record.items():
            if role not in known:
                raise InputError(f"columns have no role {role!r}; roles: {', '.join(known)}")
            names = [value] if isinstance(value, str) else value
            if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
                raise InputError(f"columns: {role} is a name or a list of names, not {value!r}")
            if role in ONE and len(names) != 1:
                raise InputError(f"columns: {role} is one column, not {len(names)}")
            given[role] = names[0] if role in ONE else tuple(names)
        return cls(**given)

    @classmethod
    def read(cls, words: Sequence[str]) -> "Columns":
        """From `role=name,name` words, or from one TOML file."""
        if len(words) == 1 and "=" not in words[0]:
            path = Path(words[0])
            try:
                return cls.from_record(tomllib.loads(path.read_text(encoding="utf-8")))
            except ValueError as error:
                raise InputError(f"{path}: {error}") from error
        pairs = [word.partition("=") for word in words]
        if wrong := [word for word, (_, sign, _) in zip(words, pairs, strict=True) if not sign]:
            raise InputError(f"columns are role=name,name or one TOML file; not {wrong[0]!r}")
        return cls.from_record({role: names.split(",") for role, _, names in pairs})

    def record(self) -> dict[str, Any]:
        """What is said, as JSON."""
        said = {name: value for name, value in asdict(self).items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}

    def settled(self) -> dict[str, Any]:
        """The record of columns without gaps: nothing in it is guessed again."""
        return dict.fromkeys(PATTERNS, NONE) | self.record()

    def text(self) -> str:
        """As the command line takes it."""
        said = self.record().items()
        return " ".join(f"{r}={','.join(v) if isinstance(v, list) else v}" for r, v in said)

    def guessed(self, names: Sequence[str]) -> "Columns":
        """Every role filled: as given, or by name; `InputError` for what is not there."""
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise InputError(f"two columns are called {twice!r}; rename one")
        ignored = _expand("ignored", list(self.ignored), names)
        every, names = names, [name for name in names if name not in ignored]
        found: dict[str, Any] = {}
        for role in PATTERNS:
            given = getattr(self, role)
            if given:
                said = [given] if isinstance(given, str) else list(given)
                if both := [name for name in said if name in ignored]:
                    raise InputError(f"column {both[0]!r} is given as {role} and as ignored; choose one")
                found[role] = _expand(role, said, names)
        taken = {name for each in found.values() for name in each}
        for role, pattern in PATTERNS.items():
            if role not in found:
                match = re.compile(pattern, re.I).fullmatch
                found[role] = [name for name in names if name not in taken and match(name)]
                found[role] = found[role][:1] if role in ONE else found[role]
                taken.update(found[role])
        if not found["observations"] and not self.observations:
            # No column has a name like obs_…: whatever has no other role is what was observed.
            rest = [name for name in names if name not in taken and not NAMELESS.fullmatch(name)]
            following = [name for name in rest if name.startswith("next_") and name[5:] in rest]
            found["observations"] = [name for name in rest if name not in following]
            if not self.next_observations:
                found["next_observations"] = following
        _check_complete(found, self.episode is None, every)
        _check_distinct(found)
        found |= {role: _expand(role, list(getattr(self, role)), names) for role in ("categories", "numbers")}
        one = {role: found[role][0] if found[role] else None for role in ONE}
        several: dict[str, Any] = {role: tuple(value) for role, value in found.items()}
        return replace(self, **(several | one))

    def unused(self, names: Sequence[str]) -> list[str]:
        used = {self.episode, self.step, self.terminated, self.truncated}
        used |= {*self.observations, *self.next_observations, *self.actions, *self.rewards}
        return [name or "one without a name" for name in names if name not in used]


def own_name(column: str) -> str:
    """`reward_speed` is called speed; `r0` and `reward_0` keep their names."""
    found = OWN_NAME.fullmatch(column)
    return found.group(1) if found else column


def own_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Their own names, unless two would be called the same."""
    short = tuple(map(own_name, columns))
    return short if len(set(short)) == len(short) else tuple(columns)


def label(role: str, name: str) -> str:
    """A column's name that tells its role."""
    prefix = {"observations": "obs", "actions": "action", "rewards": "reward"}[role]
    return name if re.fullmatch(PATTERNS[role], name, re.I) else f"{prefix}_{name}"


def numbered(role: str, count: int) -> tuple[str, ...]:
    """Names for columns that have none; a single action is just that."""
    if role == "actions" and count == 1:
        return ("action",)
    prefix = {"observations": "obs_", "actions": "action_", "rewards": "r"}[role]
    return tuple(f"{prefix}{index}" for index in range(count))


def _expand(role: str, given: list[str], names: Sequence[str]) -> list[str]:
    if given == [NONE]:
        return []
    found: list[str] = []
    for name in given:
        matches = [name] if name in names else [each for each in names if fnmatchcase(each, name)]
        if not matches:
            raise InputError(f"there is no column {name!r} ({role}); the columns are {', '.join(names)}")
        found += [each for each in matches if each not in found]
    return found


def _check_complete(found: Mapping[str, list[str]], open_: bool, names: Sequence[str]) -> None:
    """One sentence for all roles without a column; `open_` is whether nobody named the episode's."""
    missing = [role for role in ("rewards", "actions", "observations") if not found[role]]
    whole = open_ and not any(found[role] for role in ("episode", "terminated", "truncated"))
    missing += ["episode"] if whole else []
    if not missing:
        return
    words = " and none for ".join(missing)
    say = " ".join(f"{role}=NAME" if role in ONE else f"{role}=NAME,NAME" for role in missing)
    one = " (episode=- if all rows are one episode)" if whole else ""
    raise InputError(
        f"there is no column for {words}; the columns are {', '.join(names) or 'none'}: say "
        f"--columns {say}{one}"
    )


def _check_distinct(found: Mapping[str, list[str]]) -> None:
    roles: dict[str, str] = {}
    for role, names in found.items():
        for name in names:
            if name in roles:
                raise InputError(f"column {name!r} is given as {roles[name]} and as {role}; choose one")
            roles[name] = role
