"""Loads machine code of CPU kernels, as `compile_host` makes it, and calls it, without importing Numba.

A kernel is a C function of one pointer, to 8-byte words in the order of its parameters: a number is one word, an array its address
and its length, an array of two dimensions its address and both lengths.  Arrays are contiguous.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ...threads.fork_locks import new_lock

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, Target

ENTRY = "kernel"  # what the C function of every object file is called
# What kernels may call besides themselves and `math` of functions' rows: LLVM makes calls of some operations
CALLED = (
    *("memcpy", "memmove", "memset", "bcmp", "memcmp"),
    *("fmod", "fmodf", "powf", "expf", "logf", "sqrtf"),
    *("floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "nearbyint", "round"),
)
LIBRARIES = ("libm.so.6", "libc.so.6", "libm.dylib", "libSystem.dylib")

# Where a NumPy array holds the address of its elements: behind the header of every Python object
_DATA = object.__basicsize__
_word_at = ctypes.c_size_t.from_address
_C_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)  # lets go of the GIL
_loading = new_lock()

T = TypeVar("T")
Signature = Sequence[tuple[str, str]]
Array: TypeAlias = npt.NDArray[np.generic]
Argument: TypeAlias = int | float | Array


def _slow_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _quick_address(array: Array) -> int:
    return _word_at(id(array) + _DATA).value


# 0.15 us instead of 1.2, ten times in a query that takes 200
_probe: list[Array] = [np.arange(3), np.frombuffer(b"abc", np.uint8)]
address = (
    _quick_address if all(_quick_address(a) == _slow_address(a) for a in _probe) else _slow_address
)


class NativeKernel:
    """A kernel in memory, to be called with numbers and NumPy arrays; its memory is freed with the object."""

    __slots__ = ("_call", "_engine", "_pack", "_types")

    def __init__(self, code: bytes, signature: Signature) -> None:
        self._engine, start = _loaded(code)
        self._call = _C_FUNCTION(start)
        self._pack = struct.Struct("=" + "".join(_format(kind) for _, kind in signature)).pack
        self._types = [_Array.of(kind) for _, kind in signature]

    def __call__(self, *arguments: Argument) -> int:
        """Run the kernel; raises `TypeError` for an array of another type than it was compiled for."""
        found: int = self._call(self._pack(*_words(arguments, self._types)))
        return found

    def over(self, arguments: Sequence[Argument]) -> Callable[..., int]:
        """Return what runs the kernel over a range of rows: it takes start and end, then the arguments after these."""
        words, rest = _words(arguments, self._types[2:]), self._types[2 + len(arguments) :]
        call, pack = self._call, self._pack

        def run(start: int, end: int, *results: Argument, _held: object = (self, arguments)) -> int:
            found: int = call(pack(start, end, *words, *_words(results, rest)))
            return found

        return run


class _Array:
    """The type of an array argument, and whether it has two dimensions and lies in columns."""

    __slots__ = ("columns", "dtype", "two")

    def __init__(self, dtype: np.dtype[np.generic], layout: str) -> None:
        self.dtype, self.two, self.columns = dtype, bool(layout), layout == "F"

    @staticmethod
    def of(kind: str) -> _Array | None:
        """Return None for a number."""
        if not kind.startswith("["):
            return None
        item, _, layout = kind[1:-1].partition(":")
        return _Array(np.dtype(item.removesuffix("_")), layout)

    def check(self, array: Array) -> None:
        flags = array.flags
        fits = flags.f_contiguous if self.columns else flags.c_contiguous
        if array.dtype != self.dtype or array.ndim != 1 + self.two or not fits:
            raise TypeError(
                f"a kernel was compiled for arrays of {self.dtype}, not for {array.dtype}, "
                f"{array.ndim} dimensions, strides {array.strides}"
            )


def _words(arguments: Iterable[Any], types: Sequence[_Array | None]) -> list[int | float]:
    words: list[int | float] = []
    add, is_quick = words.append, address is _quick_address
    for argument, kind in zip(arguments, types, strict=False):
        if kind is None:
            add(argument)
            continue
        flags = argument.flags
        fits = flags.f_contiguous if kind.columns else flags.c_contiguous
        if argument.dtype is not kind.dtype or not fits:
            kind.check(argument)
        # Without a call where that can be: a query has tens of them
        add(_word_at(id(argument) + _DATA).value if is_quick else address(argument))
        if kind.two:
            words += argument.shape
        else:
            add(argument.size)
    return words


def _format(kind: str) -> str:
    """The words of a parameter, as `struct` packs them."""
    if kind.startswith("["):
        return "Qqq" if ":" in kind else "Qq"
    return "d" if kind.startswith("float") else "q"


def _loaded(code: bytes) -> tuple[ExecutionEngine, int]:
    """Load an object file; return LLVM's engine, which holds the memory, and where the function begins."""
    from llvmlite import binding

    with _loading:
        _declare()
        engine = binding.create_mcjit_compiler(
            binding.parse_assembly(""), _target().create_target_machine(jit=True)
        )
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine, engine.get_function_address(ENTRY)


def loaded_text(text: str, kind: Callable[[int], T]) -> T:
    """Return the function `ENTRY` of LLVM's assembly language, as a function of a kind of ctypes; its memory stays."""
    from llvmlite import binding

    with _loading:
        machine = _target().create_target_machine(jit=True)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
        engine.finalize_object()
        _kept.append(engine)
        return kind(engine.get_function_address(ENTRY))


_kept: list[ExecutionEngine] = []


@cache
def _target() -> Target:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


@cache
def _declare() -> None:
    """Tell LLVM where `CALLED` are: what it does not find ends the process."""
    from llvmlite import binding

    for name, start in called().items():
        binding.add_symbol(name, start)


@cache
def called() -> dict[str, int]:
    """Where those of `CALLED`, and of functions' rows, begin that this system has."""
    from ...plan.functions import SCALAR  # which a process that compiles for a GPU has no use for

    names = [*CALLED, *(row.math for row in SCALAR.values() if row.math)]
    found: dict[str, int] = {}
    for library in LIBRARIES:
        try:
            functions = ctypes.CDLL(library)
        except OSError:
            continue
        for name in names:
            function = getattr(functions, name, None)
            if function is not None:
                found.setdefault(name, ctypes.cast(function, ctypes.c_void_p).value or 0)
    return found


@cache
def processor() -> str:
    """This processor's name and features, which machine code depends on."""
    from llvmlite import binding

    _target()
    features = binding.get_host_cpu_features().flatten()
    return f"{binding.get_default_triple()} {binding.get_host_cpu_name()} {features}"


# Of an ELF file
_SECTIONS_AT, _SECTION_SIZE = 40, 58
_SYMBOL_TABLE = 2


def undefined_symbols(code: bytes) -> set[str]:
    """Return the symbols that an object file (ELF, 64 bits) expects to find elsewhere."""
    (sections_at,) = struct.unpack_from("<Q", code, _SECTIONS_AT)
    size, count = struct.unpack_from("<HH", code, _SECTION_SIZE)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", code, sections_at + size * i) for i in range(count)
    ]
    found = set()
    for _, kind, _, _, at, length, strings, _, _, item in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[strings][4]
        for symbol in range(at + item, at + length, item):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", code, symbol)
            if section == 0:
                end = code.index(b"\0", names + name)
                found.add(code[names + name : end].decode())
    return found
