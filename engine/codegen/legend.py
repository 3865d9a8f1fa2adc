"""What the short names of a kernel stand for: the scalar arguments c0, c1, ..., and the accumulators.

Constants are shown as `constant`: kernels that differ in them alone are one file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..plan.text.concealed_text import concealed
from .groups.accumulate import Accumulator
from .loop import Apply, Number
from .program import Program

BUILD_COUNTS = ("rows in the index", "rows with a NULL key", "keys that were there already")
DOUBT = "doubt = False  # True once a value may not fit its type: then the answer is dropped, and operators compute it"


def legend(program: Program, places: Mapping[int, str]) -> list[str]:
    """Return a line for each argument and accumulator; `places` says where the kernel keeps the latter, by number."""
    lines = [f"{p.name}: {p.meaning}" for p in program.parameters]
    calls = [concealed(call) for call in program.calls]
    for number, place in places.items():
        lines.append(f"{place}: {_held(program, number, calls)}")
    return lines


def _held(program: Program, number: int, calls: Sequence[str]) -> str:
    """The aggregates that read an accumulator, and which part of them it is; `calls` are all as text."""
    if program.index is not None:
        return BUILD_COUNTS[number]
    role = _role(program.accumulators[number])
    readers = [n for n, folded in enumerate(program.folded) if number in folded.accumulators]
    shown = ", ".join(dict.fromkeys(calls[n] for n in readers))
    if role == "count" and not readers:
        return "count of rows"
    if len(readers) == 1 and program.calls[readers[0]].function in (role, f"{role}_star"):
        return shown
    return f"{role} for {shown}" if shown else role


def _role(accumulator: Accumulator) -> str:
    match accumulator.fold, accumulator.term:
        case "add", Number(1):
            return "count"
        case "add", Apply("&", (_, Number(0xFFFFFFFF))):
            return "low 32 bits of the sum"
        case "add", Apply(">>", (_, Number(32))):
            return "sum without its low 32 bits"
        case "add", _:
            return "sum"
    return accumulator.fold


def elements(array: str, row: int, groups: int) -> str:
    """Name the elements of a row of a flat result array."""
    return f"{array}[{row}]" if groups == 1 else f"{array}[{row * groups}:{(row + 1) * groups}]"
