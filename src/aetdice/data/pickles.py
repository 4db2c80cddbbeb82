"""Reading a pickled list of dicts of NumPy arrays, item by item, without running anything.

A pickle is a program for a small stack machine. This machine knows the instructions that build
numbers, strings, tuples, lists and dicts, and a handful of names as symbols. It never imports,
so a name that a file asks for is looked up in `SYMBOLS` or refused. Each item of the outer list
is handed over and forgotten as soon as it is complete, so memory holds one item at a time.
"""

import enum
import os
import pickletools
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped

from aetdice.errors import InputError

DEEPEST = 64
"""Open marks at once; an honest file has three."""
LONGEST = 1 << 13
"""Values on the stack at once; an honest file has about a thousand."""
SMALL = 64
"""Bytes of a string that is remembered beyond its item."""
FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""What instructions in the wrong order raise."""
NAMES = {op.code.encode("latin-1"): op.name for op in pickletools.opcodes}
NUMBERS = {"b1", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8"}


class Symbol(enum.Enum):
    """The names a file may use; none of them is ever called."""

    DEFAULT_DICT = enum.auto()
    LIST = enum.auto()
    ENCODE = enum.auto()
    ARRAY = enum.auto()
    DTYPE = enum.auto()
    RECONSTRUCT = enum.auto()
    FROM_BUFFER = enum.auto()
    SCALAR = enum.auto()


SYMBOLS = {
    "collections.defaultdict": Symbol.DEFAULT_DICT,
    "builtins.list": Symbol.LIST,
    "__builtin__.list": Symbol.LIST,
    "_codecs.encode": Symbol.ENCODE,
    "numpy.ndarray": Symbol.ARRAY,
    "numpy.dtype": Symbol.DTYPE,
    **{
        f"numpy.{core}.{name}": symbol
        for core in ("core", "_core")
        for name, symbol in (
            ("multiarray._reconstruct", Symbol.RECONSTRUCT),
            ("multiarray.scalar", Symbol.SCALAR),
            ("numeric._frombuffer", Symbol.FROM_BUFFER),
        )
    },
}


class _Type:
    """A dtype: its code, and the byte order that a later instruction sets."""

    def __init__(self, code: Any) -> None:
        if type(code) is not str or code not in NUMBERS:  # a nested tuple must not be hashed
            raise ValueError("an array of something other than numbers")
        self.code, self.order = code, "="

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class _Array:
    """An array whose content a later instruction sets."""

    content: Shaped[np.ndarray, "..."] | None = None


class _Root:
    """The outer list: it counts its items and keeps none."""

    def __init__(self) -> None:
        self.taken = 0
        self.closed = 0


TAKEN = object()
"""Stands on the stack for an item that was handed over."""


def iterate_pickle(path: Path) -> Iterator[dict[str, Any]]:
    """The dicts of a pickled list, one at a time; arrays are views of the bytes that were read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        machine = _Machine(path, file)
        try:
            yield from machine.run()
        except InputError:
            raise
        except FAILURES as error:
            raise machine.refusal(f"is not a pickled list of dicts of arrays ({error})") from error


class _Machine:
    """The stack, the memo and the instructions."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._size = os.fstat(file.fileno()).st_size
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._memoized = 0
        self._passing: list[int] = []
        self._root: _Root | None = None

    def refusal(self, what: str) -> InputError:
        """What is wrong, where, and what to do."""
        item = self._root.taken if self._root else 0
        return InputError(
            f"{self._path} {what}, near byte {self._file.tell()} in item {item}; nothing in it was "
            "executed. Download the file again or ask for it as a list of dicts of NumPy arrays"
        )

    def run(self) -> Iterator[dict[str, Any]]:
        while True:
            code = self._file.read(1)
            if not code:
                raise self.refusal("ends too early")
            if code == b".":
                return self._stop()
            instruction = INSTRUCTIONS.get(code)
            if instruction is None:
                raise self.refusal(f"uses the instruction {NAMES.get(code, code)}")
            instruction(self)
            if len(self._stack) > LONGEST or len(self._outer) > DEEPEST:
                raise self.refusal("is nested too deeply")
            if code in b"su" and self._is_item():
                yield self._take()

    def _stop(self) -> None:
        if self._root is None or self._outer or self._stack != [self._root] or not self._root.closed:
            raise self.refusal("is not a list of trajectories")

    def _is_item(self) -> bool:
        """Whether the dict on top of the stack belongs to the outer list."""
        if self._outer:
            return len(self._outer) == 1 and self._outer[0] == [self._root]
        return len(self._stack) == 2 and self._stack[0] is self._root

    def _take(self) -> dict[str, Any]:
        """Hand over the item on top of the stack and forget what the memo keeps of it."""
        item = self._stack[-1]
        self._stack[-1] = TAKEN
        for index in self._passing:
            self._memo.pop(index, None)
        self._passing.clear()
        assert self._root is not None
        self._root.taken += 1
        return {key: value.content if isinstance(value, _Array) else value for key, value in item.items()}

    # Reading.

    def read(self, count: int) -> bytes:
        if count > SMALL and count > self._size - self._file.tell():
            raise self.refusal(f"ends too early: it announces {count} more bytes")
        content = self._file.read(count)
        if len(content) < count:
            raise self.refusal("ends too early")
        return content

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def line(self) -> str:
        content = self._file.readline(256)
        if not content.endswith(b"\n"):
            raise self.refusal("ends too early")
        return content[:-1].decode()

    # Stack and memo.

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def pop_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._outer.pop()
        return values

    def remember(self, index: int) -> None:
        value = self._stack[-1]
        self._memo[index] = value
        self._memoized = max(self._memoized, index + 1)
        lasting = isinstance(value, (Symbol, _Type, _Root)) or (
            isinstance(value, (str, bytes)) and len(value) <= SMALL
        )
        if not lasting:
            self._passing.append(index)

    def memoize(self) -> None:
        self.remember(self._memoized)

    def recall(self, index: int) -> None:
        if index not in self._memo:
            raise self.refusal(f"refers to entry {index} of an earlier item (items must not share arrays)")
        self.push(self._memo[index])

    # Containers.

    def start_list(self) -> None:
        if self._root is not None:
            raise self.refusal("holds a list inside the list")
        self._root = _Root()
        self.push(self._root)

    def append(self, values: list[Any]) -> None:
        root = self._stack[-1]
        if root is not self._root or any(value is not TAKEN for value in values):
            raise self.refusal("holds an item that is not a dict")
        self._root.closed += len(values)

    def set_items(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict:
            raise self.refusal("sets entries of something that is not a dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if type(key) is not str:
                raise self.refusal("has a key that is not a string")
            target[key] = value

    # Names.

    def symbol(self, module: Any, name: Any) -> None:
        full = f"{module}.{name}"
        if full not in SYMBOLS:
            raise self.refusal(f"asks for {full[:80]!r}")
        self.push(SYMBOLS[full])

    def stack_symbol(self) -> None:
        name, module = self.pop(), self.pop()
        if type(module) is not str or type(name) is not str:
            raise self.refusal("asks for a name that is not a string")
        self.symbol(module, name)

    def reduce(self) -> None:
        """What a call of a symbol stands for."""
        arguments, symbol = self.pop(), self.pop()
        if type(arguments) is not tuple:
            raise self.refusal("calls without arguments")
        match symbol, arguments:
            case Symbol.DEFAULT_DICT, (Symbol.LIST,):
                self.push({})
            case Symbol.ENCODE, (str(text), "latin1"):
                self.push(text.encode("latin-1"))
            case Symbol.DTYPE, (code, False | 0, True | 1):
                self.push(_Type(code))
            case Symbol.RECONSTRUCT, (Symbol.ARRAY, (0,), b"b"):
                self.push(_Array())
            case Symbol.FROM_BUFFER, (bytes(content), _Type() as kind, tuple(shape), ("C" | "F") as order):
                self.push(_filled(content, kind, shape, order))
            case Symbol.SCALAR, (_Type() as kind, bytes(content)):
                self.push(_filled(content, kind, (), "C"))
            case _:
                raise self.refusal("makes a call that no array needs")

    def build(self) -> None:
        """Complete a dtype or an array."""
        state, target = self.pop(), self._stack[-1]
        match target, state:
            case _Type(), (3 | 4, ("<" | ">" | "|" | "=") as order, None, None, None, -1, -1, 0):
                target.order = order
            case _Array(), (1, tuple(shape), _Type() as kind, bool(fortran), bytes(content)):
                target.content = _filled(content, kind, shape, "F" if fortran else "C").content
            case _:
                raise self.refusal("completes something that is not an array of numbers")


def _filled(content: bytes, kind: _Type, shape: tuple[Any, ...], order: Any) -> _Array:
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("an array with an impossible shape")
    array = _Array()
    array.content = np.frombuffer(content, dtype=kind.dtype).reshape(shape, order=order)
    return array


def _sized(form: str, convert: Callable[[bytes], Any]) -> Callable[[_Machine], None]:
    """An instruction that pushes what follows its own length."""
    return lambda machine: machine.push(convert(machine.read(machine.number(form))))


def _tuple(count: int) -> Callable[[_Machine], None]:
    def make(machine: _Machine) -> None:
        machine.push(tuple([machine.pop() for _ in range(count)][::-1]))

    return make


INSTRUCTIONS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": lambda machine: machine.number("<B"),  # protocol
    b"\x95": lambda machine: machine.number("<Q"),  # frame
    b"(": _Machine.mark,
    b"]": _Machine.start_list,
    b"a": lambda machine: machine.append([machine.pop()]),
    b"e": lambda machine: machine.append(machine.pop_mark()),
    b"}": lambda machine: machine.push({}),
    b"s": lambda machine: machine.set_items([machine.pop(), machine.pop()][::-1]),
    b"u": lambda machine: machine.set_items(machine.pop_mark()),
    b")": lambda machine: machine.push(()),
    b"t": lambda machine: machine.push(tuple(machine.pop_mark())),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"\x94": _Machine.memoize,
    b"q": lambda machine: machine.remember(machine.number("<B")),
    b"r": lambda machine: machine.remember(machine.number("<I")),
    b"h": lambda machine: machine.recall(machine.number("<B")),
    b"j": lambda machine: machine.recall(machine.number("<I")),
    b"N": lambda machine: machine.push(None),
    b"\x88": lambda machine: machine.push(True),
    b"\x89": lambda machine: machine.push(False),
    b"K": lambda machine: machine.push(machine.number("<B")),
    b"M": lambda machine: machine.push(machine.number("<H")),
    b"J": lambda machine: machine.push(machine.number("<i")),
    b"\x8a": _sized("<B", lambda content: int.from_bytes(content, "little", signed=True)),
    b"G": lambda machine: machine.push(machine.number(">d")),
    b"X": _sized("<I", lambda content: content.decode("utf-8", "surrogatepass")),
    b"\x8c": _sized("<B", lambda content: content.decode("utf-8", "surrogatepass")),
    b"\x8d": _sized("<Q", lambda content: content.decode("utf-8", "surrogatepass")),
    b"C": _sized("<B", bytes),
    b"B": _sized("<I", bytes),
    b"\x8e": _sized("<Q", bytes),
    b"\x96": _sized("<Q", bytes),
    b"c": lambda machine: machine.symbol(machine.line(), machine.line()),
    b"\x93": _Machine.stack_symbol,
    b"R": _Machine.reduce,
    b"b": _Machine.build,
}
"""Every instruction there is; the rest of pickle's are refused."""
