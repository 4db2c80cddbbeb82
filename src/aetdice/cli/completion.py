"""`aetdice completion`: commands, options and their values for the shell's Tab key."""

import dataclasses
import importlib
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

import tyro

Options = dict[str, tuple[str, ...]]
"""What an option can be followed by; nothing where that is a number or a file. Words are under ""."""

BASH = """\
_aetdice() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}} $before" in
{values}
    esac
    if [[ -z "$words" ]]; then
        case "${{COMP_WORDS[1]}}" in
{options}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _aetdice aetdice
"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


@dataclass(frozen=True)
class Completion:
    """Print what makes a shell complete commands and options.

    bash, in ~/.bashrc: source <(aetdice completion bash). zsh, in ~/.zshrc: source <(aetdice completion zsh).
    fish: aetdice completion fish > ~/.config/fish/completions/aetdice.fish.
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]

    def run(self) -> None:
        from aetdice.cli import COMMANDS

        known = {
            name: options_of(getattr(importlib.import_module(f"aetdice.cli.{entry.module}"), entry.name))
            for name, entry in COMMANDS.items()
        }
        words = {name: entry.words for name, entry in COMMANDS.items()}
        print(
            fish(known, words) if self.shell == "fish" else bash(known, ZSH * (self.shell == "zsh")), end=""
        )


def options_of(command: Any) -> Options:
    """The options of a command's dataclass, of those inside it, and of its subcommands together."""
    if not dataclasses.is_dataclass(command):
        found: Options = {"": ()}
        for sub in typing.get_args(command):
            kind, config = typing.get_args(sub)[0], sub.__metadata__[0]
            inner = options_of(kind)
            found = {**found, **inner, "": (*found[""], config.name, *inner[""])}
        return found
    options: Options = {"": ()}
    hints = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind, extras = _bare(hints[field.name])
        if dataclasses.is_dataclass(kind):
            inner = options_of(kind)
            options = {**options, **inner, "": options[""] + inner[""]}
            continue
        values = tuple(str(value) for value in _values(kind))
        if tyro.conf.Positional in extras:
            options[""] += values
            continue
        named = [extra.name for extra in extras if getattr(extra, "name", None)]
        name = (named or [field.name])[0].replace("_", "-")
        options[f"--{name}"] = values
    return options


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without what tyro is told about it, and that."""
    extras: tuple[Any, ...] = ()
    while typing.get_origin(hint) is typing.Annotated:
        hint, extras = hint.__origin__, (*hint.__metadata__, *extras)
    return hint, extras


def _values(kind: Any) -> tuple[Any, ...]:
    """The values of a Literal, or of one inside `… | None` or a tuple."""
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType, tuple):
        return tuple(value for inner in typing.get_args(kind) for value in _values(_bare(inner)[0]))
    return ()


def bash(known: dict[str, Options], before: str = "") -> str:
    """A function of bash, which zsh can use too."""
    values = [
        f'        "{name} {option}") words="{" ".join(choices)}" ;;'
        for name, options in known.items()
        for option, choices in options.items()
        if option and choices
    ]
    options = [
        f'            {name}) words="{" ".join([*found[""], *filter(None, found), "--help"])}" ;;'
        for name, found in known.items()
    ]
    script = BASH.format(
        commands=" ".join([*known, "--help", "--version"]),
        values="\n".join(values),
        options="\n".join(options),
    )
    return before + script


def fish(known: dict[str, Options], words: dict[str, str]) -> str:
    """One line per command and option."""
    lines = []
    for name, options in known.items():
        within = f"complete -c aetdice -n '__fish_seen_subcommand_from {name}'"
        about = words[name].replace("'", "\\'")
        lines.append(f"complete -c aetdice -n __fish_use_subcommand -f -a {name} -d '{about}'")
        for option, choices in options.items():
            if option:
                follows = f" -x -a '{' '.join(choices)}'" if choices else ""
                lines.append(f"{within} -l {option[2:]}{follows}")
            elif choices:
                lines.append(f"{within} -a '{' '.join(choices)}'")
    return "\n".join(lines) + "\n"
