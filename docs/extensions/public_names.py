"""Every public name: what the modules of both packages list in `__all__`."""

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def _listed(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_module(path): names for path in sorted(SOURCES.rglob("*.py")) if (names := _listed(path))}


def sentence(module: str, name: str) -> list[str]:
    """What stands below the assignment of a name, in the module that makes it."""
    path = SOURCES / module.replace(".", "/")
    body = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return sentence(str(node.module), name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if name in [getattr(target, "id", None) for target in targets]:
            stands = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            return inspect.cleandoc(str(below.value.value)).splitlines() if stands else []
    return []


@cache
def homes() -> dict[str, str]:
    """From every public path of an object to the shortest: where it is documented."""
    by_object: dict[int, str] = {}
    paths: dict[str, int] = {}
    for module in sorted(MODULES, key=lambda name: (name.count("."), name)):
        for name in MODULES[module]:
            found = id(getattr(importlib.import_module(module), name))
            by_object.setdefault(found, f"{module}.{name}")
            paths[f"{module}.{name}"] = found
    return {path: by_object[found] for path, found in paths.items()}


@cache
def documented() -> dict[tuple[str, str], str]:
    """From (file below src, name in it) to where it is documented."""
    found = {}
    for home in set(homes().values()):
        module, _, name = home.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        defined = getattr(thing, "__module__", None)
        if isinstance(defined, str) and getattr(thing, "__qualname__", "") == name:
            package = SOURCES / defined.replace(".", "/")
            file = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
            found[file.relative_to(SOURCES).as_posix(), name] = home
    return found
