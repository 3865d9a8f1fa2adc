"""Calls of the CUDA driver that are prepared once and made by machine code, one after the other.

A call by the bindings takes Python 2 to 9 us, and gives the interpreter's lock away: among several threads a query may have to wait for it
after every copy, fill and launch.  Here all calls of a pipeline are words of an array, which a run completes by the addresses of its
buffers and columns.  The lock is given away once for all of them, the wait for the device being the last.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ....codegen.compile.native import address, loaded_text
from ....records import dataclass
from ....storage.columns.encodings import Array
from .regions import BufferSpan, Region

LIBRARY = "libcuda.so.1"
WIDTH = 12  # words of a call: the function, and as many arguments as cuLaunchKernel takes
WORD = 8  # bytes
OUT_OF_MEMORY = 2  # as the driver says it

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
    """Calls as words, and which of these are completed: those at `own` by where the words lie, those that are `moved` by each run.

    To each of the latter is added what `bases` says: where one of the `regions` begins, or one of the arguments that are given, in the order of `late`.
    """

    calls: tuple[DriverCall, ...]
    words: Array
    own: Array
    moved: Array
    bases: Array
    regions: tuple[Region, ...]
    late: tuple[Late, ...]
    # Words that no run uses, where they lie, and what they were completed by
    _spare: list[tuple[Array, int, list[int]]] = field(default_factory=list)

    def completed(self, given: Mapping[Late, Argument]) -> DriverCalls:
        """Return the calls with some of the late arguments, which all runs have then."""
        words, left = self.words.copy(), []
        first = len(self.moved) - len(self.late)
        for place, late in zip(self.moved[first:].tolist(), self.late, strict=True):
            if late in given:
                words[place] = _word(given[late])
            else:
                left.append((place, late))
        moved = np.array([*self.moved[:first], *(place for place, _ in left)], np.int64)
        others = tuple(late for _, late in left)
        bases = self.bases[: len(moved)]
        return replace(self, words=words, moved=moved, bases=bases, late=others, _spare=[])

    @cached_property
    def _count(self) -> int:
        return len(self.calls)

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(late.number for late in self.late if isinstance(late, LateArgument))

    def run_numbered(self, starts: Mapping[Region, int], given: Sequence[int]) -> None:
        """Make the calls, as `run` does, of `given` arguments by their numbers."""
        self.run(starts, [given[number] for number in self._numbers])

    def run(self, starts: Mapping[Region, int], given: Sequence[int]) -> None:
        """Make the calls in order, up to the first that fails; raises `MemoryError` or `RuntimeError` for that.

        Words that a run has completed serve the next one as they are where memory and columns lie where they did.
        """
        wanted = [*map(starts.__getitem__, self.regions), *given]
        try:
            words, begin, known = self._spare.pop()
        except IndexError:
            words, begin, known = self._new_words()
        if known != wanted:
            words[self.moved] = self.words[self.moved] + np.array(wanted)[self.bases]
        answer = _caller()(begin, self._count)
        self._spare.append((words, begin, wanted))
        if answer:
            number, error = divmod(answer, 1 << 32)
            kind = MemoryError if error == OUT_OF_MEMORY else RuntimeError
            name = self.calls[number].function
            raise kind(f"The CUDA driver answered {_name(error)} to {name}.")

    def _new_words(self) -> tuple[Array, int, list[int]]:
        words = self.words.copy()
        begin = address(words)
        words[self.own] += begin
        return words, begin, []


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
        self.own: list[int] = []  # places of words, as those of the others are
        self.spans: dict[int, Region] = {}
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
        self.words[place] = WORD * to
        self.own.append(place)

    def _put(self, place: int, argument: Argument) -> None:
        if isinstance(argument, BufferSpan):
            self.words[place], self.spans[place] = argument.start, argument.region
        elif isinstance(argument, Late):
            self.late[place] = argument
        else:
            self.words[place] = _word(argument)

    def calls(self, calls: Sequence[DriverCall]) -> DriverCalls:
        regions = tuple(dict.fromkeys(self.spans.values()))
        bases = [*map(regions.index, self.spans.values())]
        bases += range(len(regions), len(regions) + len(self.late))
        numbers = (self.words, self.own, [*self.spans, *self.late], bases)
        words, own, moved, added = (np.array(each, np.int64) for each in numbers)
        late = tuple(self.late.values())
        return DriverCalls(tuple(calls), words, own, moved, added, regions, late)


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
