"""The table of settings as docs/settings.md must show it, read from the source of `aetdice.config`."""

import ast
import dataclasses
import inspect

from aetdice import config


def settings_table() -> list[str]:
    """A row per setting: its dotted name, its default and the sentence below it."""
    rows = []
    for group in dataclasses.fields(config.TrainingConfig):
        kind = type(getattr(config.TrainingConfig(), group.name))
        sentences = _sentences(kind)
        for setting in dataclasses.fields(kind):
            default = _shown(getattr(kind(), setting.name))
            rows.append(f"| `{group.name}.{setting.name}` | {default} | {sentences[setting.name]} |")
    return rows


def _sentences(kind: type) -> dict[str, str]:
    [tree] = ast.parse(inspect.getsource(kind)).body
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            found[field.target.id] = " ".join(ast.literal_eval(below.value).split())
    return found


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return ", ".join(map(str, default))
    if isinstance(default, bool) or default is None:
        return str(default).lower()
    return (
        f"{default:,}"
        if isinstance(default, int)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )


if __name__ == "__main__":
    print("\n".join(settings_table()))
