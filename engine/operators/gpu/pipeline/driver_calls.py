"""Calls of the CUDA driver that are prepared once and made by machine code, one after the other.

A call by the bindings takes Python 2 to 9 us, and gives the interpreter's lock away: among several threads a query may have to wait for it
after every copy, fill and launch.  Here all calls of a pipeline are words of an array, which a run copies and completes by the addresses
of its buffers and columns.  The lock is given away once for all of them, the wait for the device being the last.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ....codegen.compile.native import address, loaded_text
from ....storage.columns.encodings import Array
from .regions import BufferSpan, Region

LIBRARY = "libcuda.so.1"
WIDTH = 12  # words of a call: the function, and as many arguments as cuLaunchKernel takes
WORD = 8  # bytes
OUT_OF_MEMORY = 2  # as the driver says it
OWN = 1  # the base of what lies in the words; 0 is that of numbers, those of regions follow

_LOADS = "\n".join(
    f"  %at{k} = getelementptr i64, ptr %call, i64 {k}\n  %a{k} = load i64, ptr %at{k}"
    for k in range(WIDTH)
)
_ARGUMENTS = ", ".join(f"i64 %a{k}" for k in range(1, WIDTH))
# Integers and addresses are passed in 64 bits each, of which a function looks at those that it takes.  The answer is 0, or the number of
# the call that failed above the 32 bits of what it answered.
TEXT = f"""
define i64 @kernel(ptr %words, i64 %count) {{
begin:
  br label %next
next:
  %i = phi i64 [0, %begin], [%following, %made]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %made, label %done
made:
  %place = mul i64 %i, {WIDTH}
  %call = getelementptr i64, ptr %words, i64 %place
{_LOADS}
  %function = inttoptr i64 %a0 to ptr
  %answer = call i32 %function({_ARGUMENTS})
  %following = add i64 %i, 1
  %failed = icmp ne i32 %answer, 0
  br i1 %failed, label %stop, label %next
stop:
  %high = shl i64 %i, 32
  %error = zext i32 %answer to i64
  %both = or i64 %high, %error
  ret i64 %both
done:
  ret i64 0
}}
"""

# An argument of a call or a kernel: a number, an array in a run's buffers, or what else a run knows alone (`Late`)
Argument = Any
POINTERS = object()  # in the place of an argument: an array of pointers to what the kernel takes


@dataclass(frozen=True)
class Late:
    """An argument that each run is given."""


@dataclass(frozen=True)
class LateArgument(Late):
    """One that a run is given by its place among these."""

    number: int


@dataclass(frozen=True)
class DriverCall:
    """A call of a function of the driver, and what the kernel takes that it launches; `owner` keeps the kernel loaded."""

    function: str
    arguments: tuple[Argument, ...]
    taken: tuple[Argument, ...] = ()
    owner: object = None


@dataclass(frozen=True)
class DriverCalls:
    """Calls as words, and which of these a run completes.

    To each of them is added what `bases` says: nothing, the address of the words, or where one of the `regions` begins; those at
    `places` are given, in the order of `late`.
    """

    calls: tuple[DriverCall, ...]
    words: Array
    bases: Array
    regions: tuple[Region, ...]
    places: Array
    late: tuple[Late, ...]

    def completed(self, given: Mapping[Late, Argument]) -> DriverCalls:
        """Return the calls with some of the late arguments, which all runs have then."""
        words, left = self.words.copy(), []
        for place, late in zip(self.places.tolist(), self.late, strict=True):
            if late in given:
                words[place] = _word(given[late])
            else:
                left.append((place, late))
        places = np.array([place for place, _ in left], np.int64)
        return replace(self, words=words, places=places, late=tuple(late for _, late in left))

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(late.number for late in self.late if isinstance(late, LateArgument))

    def run_numbered(self, starts: Mapping[Region, int], given: Sequence[int]) -> None:
        """Make the calls, as `run` does, of `given` arguments by their numbers."""
        self.run(starts, [given[number] for number in self._numbers])

    def run(self, starts: Mapping[Region, int], given: Sequence[int]) -> None:
        """Make the calls in order, up to the first that fails; raises `MemoryError` or `RuntimeError` for that."""
        words = np.empty_like(self.words)
        begin = address(words)
        np.array([0, begin, *[starts[region] for region in self.regions]]).take(
            self.bases, out=words
        )
        words += self.words
        words[self.places] = given
        answer = _caller()(begin, len(self.calls))
        if answer:
            number, error = divmod(answer, 1 << 32)
            kind = MemoryError if error == OUT_OF_MEMORY else RuntimeError
            name = self.calls[number].function
            raise kind(f"The CUDA driver answered {_name(error)} to {name}.")


def driver_calls(calls: Sequence[DriverCall]) -> DriverCalls:
    """Lay out calls, and behind them what their kernels take."""
    layout = _Layout(WIDTH * len(calls))
    for number, call in enumerate(calls):
        layout.add(WIDTH * number, call)
    return layout.calls(calls)


class _Layout:
    """Words under construction, and which of them a run completes."""

    def __init__(self, size: int) -> None:
        self.words = [0] * size
        self.bases: dict[int, int] = {}  # by the places of words
        self.regions: list[Region] = []
        self.late: dict[int, Late] = {}

    def add(self, first: int, call: DriverCall) -> None:
        taken = len(self.words)
        pointers = taken + len(call.taken)
        self.words += [0] * (2 * len(call.taken))
        self.words[first] = _function(call.function)
        for place, argument in enumerate(call.arguments, first + 1):
            if argument is POINTERS:
                self._point(place, pointers)
            else:
                self._put(place, argument)
        for number, argument in enumerate(call.taken):
            self._put(taken + number, argument)
            self._point(pointers + number, taken + number)

    def _point(self, place: int, to: int) -> None:
        self.words[place], self.bases[place] = WORD * to, OWN

    def _put(self, place: int, argument: Argument) -> None:
        if isinstance(argument, BufferSpan):
            if argument.region not in self.regions:
                self.regions.append(argument.region)
            self.words[place] = argument.start
            self.bases[place] = OWN + 1 + self.regions.index(argument.region)
        elif isinstance(argument, Late):
            self.late[place] = argument
        else:
            self.words[place] = _word(argument)

    def calls(self, calls: Sequence[DriverCall]) -> DriverCalls:
        return DriverCalls(
            tuple(calls),
            np.array(self.words, np.int64),
            np.array([self.bases.get(place, 0) for place in range(len(self.words))], np.int64),
            tuple(self.regions),
            np.array([*self.late], np.int64),
            tuple(self.late.values()),
        )


def _word(value: Argument) -> int:
    """Return a number as it lies in a word: one of Python takes 8 bytes, one of NumPy lies at the beginning."""
    data = np.asarray(value).tobytes() if isinstance(value, float | np.generic) else None
    if data is None:
        return (int(value) + 2**63) % 2**64 - 2**63
    return int.from_bytes(data.ljust(WORD, b"\0"), "little", signed=True)


def _name(error: int) -> str:
    from cuda.bindings import driver

    return str(driver.CUresult(error).name)


@cache
def _function(name: str) -> int:
    """Return where a function of the driver begins."""
    return ctypes.cast(getattr(ctypes.CDLL(LIBRARY), name), ctypes.c_void_p).value or 0


@cache
def _caller() -> Callable[[int, int], int]:
    """Return the machine code that makes calls; ctypes lets go of the interpreter's lock for it."""
    return loaded_text(TEXT, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64))
