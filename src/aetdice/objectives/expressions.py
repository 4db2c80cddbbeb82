"""Utilities and aggregations written as text: arithmetic, parsed and never evaluated as Python."""

import ast
import functools
import operator
import re
import warnings
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from aetdice.errors import InputError
from aetdice.objectives.aggregations import Aggregation
from aetdice.objectives.fairness import Fair
from aetdice.objectives.parameters import Parameter, parameter, text
from aetdice.objectives.utilities import Exponential, Utility

LONGEST = 500
"""Characters of an expression; longer ones are refused unread."""

DEEPEST = 100
"""Operations inside each other; deeper ones would exhaust the interpreter's stack."""

MOST_NESTED, MOST_CALLS = 8, 32
"""Functions inside each other, and in all: each is compiled with its derivatives, which takes time."""

LARGEST = 3e38
"""Numbers up to here are finite in every precision."""

OPERATORS: dict[type, Callable[..., Array]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}

FUNCTIONS: dict[str, int] = {"log": 1, "sqrt": 1, "exp": 1, "tanh": 1, "sigmoid": 1, "softplus": 1, "fair": 2}
"""Known functions and how many arguments each takes.

log, sqrt and fair(x, a) = u_a(x) are continued below the threshold, exp is capped: all total.
"""


class ExpressionUtility(Utility):
    """F written as text in r0, r1, …: `log(r0), r1 - 0.8*horizon` are two utilities."""

    source: str = eqx.field(static=True)
    threshold: Parameter = eqx.field(converter=parameter, default=1.0)
    constants: tuple[tuple[str, float], ...] = eqx.field(static=True, default=())

    def __check_init__(self) -> None:
        _check(self.source, re.findall(r"\br\d+\b", self.source), dict(self.constants))

    def __call__(self, returns: Float[Array, " m"]) -> Float[Array, " n"]:
        names = _variables("r", returns) | _constants(self.constants, returns)
        return jnp.stack([_evaluate(part, names, self.threshold) for part in _components(self.source)])

    @property
    def components(self) -> int:
        """How many utilities the text describes."""
        return len(_components(self.source))

    @property
    def name(self) -> str:
        return f"({self.source}), logs quadratic below {text(self.threshold)}"


class ExpressionAggregation(Aggregation):
    """G written as text in k0, k1, …: `log(k0) + 0.5*k1`."""

    source: str = eqx.field(static=True)
    threshold: Parameter = eqx.field(converter=parameter, default=1.0)
    constants: tuple[tuple[str, float], ...] = eqx.field(static=True, default=())

    def __check_init__(self) -> None:
        _check(self.source, re.findall(r"\bk\d+\b", self.source), dict(self.constants))

    def __call__(self, k: Float[Array, " n"]) -> Float[Array, ""]:
        (part,) = _components(self.source)
        return _evaluate(part, _variables("k", k) | _constants(self.constants, k), self.threshold)

    @property
    def name(self) -> str:
        return f"({self.source}), logs quadratic below {text(self.threshold)}"


def parse_utility(
    source: str, objectives: int, constants: Mapping[str, float], threshold: float = 1.0
) -> ExpressionUtility:
    """The utility an expression in r0 … r{m-1} and the constants describes."""
    _check(source, [f"r{i}" for i in range(objectives)], constants)
    return ExpressionUtility(source, threshold, tuple(sorted(constants.items())))


def parse_aggregation(
    source: str, utilities: int, constants: Mapping[str, float], threshold: float = 1.0
) -> ExpressionAggregation:
    """The aggregation an expression in k0 … k{n-1} and the constants describes."""
    if _check(source, [f"k{i}" for i in range(utilities)], constants) != 1:
        raise InputError(f"an aggregation is one expression, but {source!r} has commas outside parentheses")
    return ExpressionAggregation(source, threshold, tuple(sorted(constants.items())))


@functools.lru_cache(maxsize=256)
def _components(source: str) -> tuple[ast.expr, ...]:
    if len(source) > LONGEST:
        raise InputError(f"the expression has {len(source)} characters; at most {LONGEST} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            body = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = getattr(error, "offset", None)
        where = f" at character {at}" if at else ""
        raise InputError(f"malformed expression {source!r}{where}: not arithmetic") from None
    return tuple(body.elts) if isinstance(body, ast.Tuple) else (body,)


def _check(source: str, variables: list[str], constants: Mapping[str, float]) -> int:
    """Refuse everything but numbers, known names, arithmetic and known functions."""
    known = [*variables, *constants]
    parts = _components(source)
    if not parts:
        raise InputError(f"malformed expression {source!r}: it is empty")
    for part in parts:
        _check_node(part, source, known)
    if (nested := max(map(_nested, parts))) > MOST_NESTED:
        raise InputError(
            f"{source!r} has {nested} functions inside each other; at most {MOST_NESTED} are read"
        )
    calls = sum(isinstance(node, ast.Call) for part in parts for node in ast.walk(part))
    if calls > MOST_CALLS:
        raise InputError(f"{source!r} has {calls} functions; at most {MOST_CALLS} are read")
    return len(parts)


def _nested(node: ast.AST) -> int:
    """How many functions stand inside each other."""
    inside = max(map(_nested, ast.iter_child_nodes(node)), default=0)
    return inside + isinstance(node, ast.Call)


def _check_node(node: ast.expr, source: str, known: list[str], depth: int = 0) -> None:
    if depth > DEEPEST:
        raise InputError(f"malformed expression {source!r}: nested more than {DEEPEST} deep")
    depth += 1
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if not abs(number) <= LARGEST:
                piece = ast.get_source_segment(source.strip(), node)
                raise InputError(f"{piece} in {source!r} is not a finite number")
        case ast.Name(id=name):
            if name not in known:
                raise InputError(
                    f"unknown name {name!r} in {source!r}; known names: {', '.join(known)}; "
                    f"known functions: {', '.join(FUNCTIONS)}"
                )
        case ast.UnaryOp() if type(node.op) in OPERATORS:
            _check_node(node.operand, source, known, depth)
        case ast.BinOp() if type(node.op) in OPERATORS:
            _check_node(node.left, source, known, depth)
            _check_node(node.right, source, known, depth)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                raise InputError(
                    f"unknown function {name!r} in {source!r}; known functions: {', '.join(FUNCTIONS)}"
                )
            if len(args) != FUNCTIONS[name]:
                raise InputError(
                    f"{name} takes {FUNCTIONS[name]} argument(s), not {len(args)}, in {source!r}"
                )
            for arg in args:
                _check_node(arg, source, known, depth)
        case _:
            piece = ast.get_source_segment(source.strip(), node) or source
            raise InputError(f"malformed expression {source!r}: {piece!r} is not arithmetic")


def _evaluate(node: ast.expr, names: Mapping[str, Array], threshold: Parameter) -> Array:
    """Interpret a checked tree on JAX values."""
    like = next(iter(names.values()))
    match node:
        case ast.Constant(value=value):
            return jnp.asarray(value, like.dtype)
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_evaluate(operand, names, threshold))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(exponent))):
            return _evaluate(left, names, threshold) ** exponent
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_evaluate(left, names, threshold), _evaluate(right, names, threshold))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _apply(name, [_evaluate(arg, names, threshold) for arg in args], threshold)
    raise AssertionError(f"unchecked node {ast.dump(node)}")


def _apply(function: str, args: list[Array], threshold: Parameter) -> Array:
    x = args[0]
    match function:
        case "log":
            return Fair(1.0, threshold)(x)
        case "fair":
            return Fair(args[1], threshold)(x)
        case "sqrt":
            return 1 + Fair(0.5, threshold)(x) / 2
        case "exp":
            return Exponential(1.0)(x[None])[0]
        case _:
            elementary = {"tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus}
            return elementary[function](x)


def _variables(letter: str, values: Float[Array, " n"]) -> dict[str, Array]:
    return {f"{letter}{i}": values[i] for i in range(values.shape[0])}


def _constants(constants: tuple[tuple[str, float], ...], like: Array) -> dict[str, Array]:
    return {name: jnp.asarray(value, like.dtype) for name, value in constants}
