"""What the value of a Python function depends on, as data: its bytecode, constants and defaults, and the values that it reads around it.

Kernels are made of an image, in another process, and stored under it, so that a function that was defined anew, or whose globals have
changed, is another one.  The lines of a function count from its own first one, so that its place in a file is no part of it.
"""

from __future__ import annotations

import ast
import builtins
import dis
import math
from base64 import b64encode
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

from ...errors import FuselineError, shown
from ...records import dataclass

MODULES = ("math", "numpy")  # of which a compiled function may read
MOST_BYTES = 1 << 16  # of an array that it reads
_REFUSED = {
    "STORE_GLOBAL": "changes the global {}",
    "DELETE_GLOBAL": "changes the global {}",
    "IMPORT_NAME": "imports {}",
}
_SHAPES = (
    (CO_VARARGS | CO_VARKEYWORDS, "takes any number of arguments"),
    (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR, "is a generator or a coroutine"),
)


class NotCompilable(FuselineError):
    """A function that no kernel can hold, with the reason: a verb and what follows it."""


@dataclass(frozen=True, slots=True)
class CodeImage:
    """All that the value of a function depends on besides its arguments; `has_loops`: it may never end for arguments that it was not made for."""

    text: str
    has_loops: bool
    name: str = field(compare=False)
    first_line: int = field(default=1, compare=False)


def literal(text: bytes) -> Any:
    """Return the nested tuples that an image's text stands for."""
    return ast.literal_eval(text.decode())


def image_of(function: Callable[..., object]) -> CodeImage:
    """Return the image of a function; raises `NotCompilable`."""
    reading = _Reading()
    content = reading.function(function)
    code = plain_function(function).__code__
    text = b64encode(repr(content).encode()).decode()
    return CodeImage(text, reading.has_loops, code.co_name, code.co_firstlineno)


def content_of(function: Callable[..., object]) -> tuple[object, ...]:
    """Return what is equal for functions of the same image, for less than its text takes; raises `NotCompilable`."""
    return _Reading().function(function)


def plain_function(function: object) -> FunctionType:
    """Return the function of bytecode that is meant; raises `NotCompilable`."""
    inner = getattr(function, "py_func", function)  # of one that Numba has compiled
    if not isinstance(inner, FunctionType):
        raise NotCompilable(f"is {shown(function)} and no function written in Python")
    return inner


def mutation(function: Callable[..., object]) -> str | None:
    """Return which global or variable around it a function assigns, None for none or where nobody can see it."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return next((name for kind, name in _facts(code).changes if kind != "imports {}"), None)


@dataclass(frozen=True)
class _Facts:
    """What the instructions of a code say."""

    reads: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    loops: bool


@lru_cache(maxsize=256)
def _facts(code: CodeType) -> _Facts:
    reads: dict[str, None] = {}
    changes: list[tuple[str, str]] = []
    loops = False
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            reads.setdefault(str(step.argval))
        elif step.opname in _REFUSED:
            changes.append((_REFUSED[step.opname], str(step.argval)))
        elif step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars:
            changes.append(("changes the variable {} around it", str(step.argval)))
        loops = loops or "JUMP_BACKWARD" in step.opname
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found = _facts(inner)
            reads |= dict.fromkeys(found.reads)
            own = {*code.co_cellvars, *code.co_varnames}
            changes += [(kind, name) for kind, name in found.changes if name not in own]
            loops = loops or found.loops
    return _Facts(tuple(reads), tuple(changes), loops)


class _Reading:
    """One walk over a function and those that it calls."""

    def __init__(self) -> None:
        self.has_loops = False
        self._open: list[FunctionType] = []

    def function(self, given: object) -> tuple[object, ...]:
        function = plain_function(given)
        if function in self._open:
            raise NotCompilable("calls itself")
        code, facts = function.__code__, _facts(function.__code__)
        for flags, why in _SHAPES:
            if code.co_flags & flags:
                raise NotCompilable(why)
        if facts.changes:
            kind, name = facts.changes[0]
            raise NotCompilable(kind.format(f'"{name}"'))
        if function.__kwdefaults__:
            raise NotCompilable("has defaults of parameters that are given by name alone")
        self.has_loops = self.has_loops or facts.loops
        self._open.append(function)
        try:
            cells = tuple(
                self._cell(name, cell)
                for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
            )
            reads = tuple(
                (name, self._global(name, function.__globals__)) for name in sorted(facts.reads)
            )
            defaults = tuple(self._value("a default", v) for v in function.__defaults__ or ())
        finally:
            self._open.pop()
        return "function", _code(code), defaults, cells, reads

    def _cell(self, name: str, cell: CellType) -> tuple[object, ...]:
        try:
            return self._value(f'"{name}"', cell.cell_contents)
        except ValueError:
            raise NotCompilable(f'reads "{name}", which has no value yet') from None

    def _global(self, name: str, known: dict[str, object]) -> tuple[object, ...]:
        if name in known:
            return self._value(f'the global "{name}"', known[name])
        if hasattr(builtins, name):
            return ("builtin", name)
        raise NotCompilable(f'reads the global "{name}", which there is not')

    def _value(self, what: str, value: object) -> tuple[object, ...]:
        """Tag a value with what it is, so that 1, 1.0 and True are three."""
        found = _plain(value)
        if found is not None:
            return found
        if isinstance(value, tuple):
            return ("tuple", *(self._value(what, v) for v in value))
        if isinstance(value, ModuleType):
            if value.__name__ in MODULES:
                return ("module", value.__name__)
            raise NotCompilable(f"reads the module {value.__name__}")
        inner = getattr(value, "python_function", value)
        if isinstance(getattr(inner, "py_func", inner), FunctionType):
            return self.function(inner)
        if isinstance(value, BuiltinFunctionType) and value.__module__ in ("math", "builtins"):
            return ("attribute", value.__module__, value.__name__)
        if isinstance(value, type) and value in (int, float, bool):
            return ("builtin", value.__name__)
        return self._of_numpy(what, value)

    def _of_numpy(self, what: str, value: Any) -> tuple[object, ...]:
        module = type(value).__module__.partition(".")[0]
        if module == "numpy" and getattr(value, "dtype", None) is not None:
            if value.dtype.kind in "biuf" and value.nbytes <= MOST_BYTES:
                kind = "array" if value.ndim else "scalar"
                return (kind, value.dtype.str, tuple(value.shape), value.tobytes())
            raise NotCompilable(
                f"reads {what}, an array of {value.dtype} and {value.nbytes:,} bytes: numbers of at most {MOST_BYTES:,} bytes can be compiled"
            )
        name = getattr(value, "__name__", "")
        owned = module == "numpy" or getattr(value, "__module__", "").partition(".")[0] == "numpy"
        if owned and name.isidentifier():
            return ("attribute", "numpy", name)
        raise NotCompilable(f"reads {what}, a {type(value).__name__}, which no kernel holds")


CODE_FIELDS = (
    "co_code",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_nlocals",
    "co_stacksize",
    "co_flags",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_name",
    "co_qualname",
    "co_linetable",
    "co_exceptiontable",
)


def _plain(value: object) -> tuple[object, ...] | None:
    if isinstance(value, bool):
        return ("bool", value)  # a tag of its own, as 1 == True
    if value is None or isinstance(value, str) or type(value) is int:
        return ("value", value)
    if type(value) is float:
        return ("float", value.hex() if math.isfinite(value) else repr(value))
    return None


def _constant(value: object) -> tuple[object, ...]:
    if isinstance(value, CodeType):
        return ("code", _code(value))
    if isinstance(value, frozenset):
        return ("set", *sorted(map(_constant, value), key=repr))
    if isinstance(value, tuple):
        return ("tuple", *map(_constant, value))
    if isinstance(value, bytes):
        return ("value", value)
    found = _plain(value)
    if found is None:
        raise NotCompilable(f"has the constant {shown(value)}")
    return found


@lru_cache(maxsize=256)  # of code that never changes, which each query asks for
def _code(code: CodeType) -> tuple[object, ...]:
    """The fields of a code, in the order of `CODE_FIELDS`."""
    constants = tuple(map(_constant, code.co_consts))
    fields = tuple(getattr(code, name) for name in CODE_FIELDS)
    return (constants, *fields)
