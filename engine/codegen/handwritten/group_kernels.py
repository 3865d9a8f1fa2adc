"""The kernels of `functions_groups` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature
from ..compile.kernel_files import KernelFile, kernel_file

SOURCE = Path(__file__).with_name("functions_groups.py")
COUNT, MEASURE, PLACES = "group_count", "group_measure", "group_places"
PICK, UNPACK = "group_pick", "group_unpack"
MEASURED, WIDE, NARROW, SHORT = 4, 4, 2, 2  # arrays that one launch takes
COMPONENTS = 4  # of the groups' numbers that one launch writes
# What it is told of each
COMPONENT = ("factor", "shift", "above", "above_shift", "size", "low", "width", "at")
WIDTHS = (1, 2, 4, 8)  # bytes of what it writes
RANGES = 1 << 13  # at most: warps that a device holds at a time
LEAST_SHARE = 256
TAKEN = 128  # slots that a warp takes at a time
WORD = 32  # slots of a word of bits

_RANGES: Signature = [
    ("slots", "int64"),
    ("warps", "int64"),
    ("share", "int64"),
]
_EXTREMES: Signature = [
    ("bits", "*int32"),
    ("measured", "int64"),
    *[(f"values{i}", "*int64") for i in range(MEASURED)],
    ("counts", "*int64"),
    ("state", "[int64]"),
]


def _picked(first: int, count: int, kind: str) -> Signature:
    """Arrays that are picked from, and the bytes of the result at which their elements go."""
    names = [(f"from{i}", f"to{i}") for i in range(first, first + count)]
    return [pair for source, to in names for pair in ((source, kind), (to, "int64"))]


SIGNATURES: dict[str, Signature] = {
    COUNT: [*_RANGES, ("flags", "*int64"), ("least", "int64"), *_EXTREMES],
    MEASURE: [*_RANGES, *_EXTREMES],
    PLACES: [("warps", "int64"), ("counts", "*int64"), ("state", "[int64]")],
    PICK: [
        *_RANGES,
        ("bits", "*int32"),
        ("places", "*int64"),
        ("keyed", "int64"),
        ("flags", "*int64"),
        *[(f"result{8 * width}", f"*int{8 * width}") for width in WIDTHS],
        ("components", "int64"),
        *[(f"{name}{i}", "int64") for i in range(COMPONENTS) for name in COMPONENT],
        ("wide", "int64"),
        *_picked(0, WIDE, "*int64"),
        ("narrow", "int64"),
        *_picked(WIDE, NARROW, "*int64"),
        ("short", "int64"),
        *_picked(WIDE + NARROW, SHORT, "*int32"),
    ],
    UNPACK: [
        ("slots", "int64"),
        ("width", "int64"),
        ("packed", "*int32"),
        ("counts", "*int32"),
        ("lost", "[int64]"),
    ],
}


@cache
def group_kernel(
    name: str, directory: Path, architecture: Architecture, short: frozenset[str] = frozenset()
) -> KernelFile:
    """Return a kernel; in `short` are the parameters that are arrays of 32 bits here."""
    source = SOURCE.read_text(encoding="utf-8")
    signature = [(n, "*int32" if n in short else kind) for n, kind in SIGNATURES[name]]
    return kernel_file(name, source, signature, directory, architecture)


def needed(tested: bool, packed: bool) -> list[str]:
    """Return the names of the kernels that pick groups; `tested`: another one marks them first, `packed`: their counts share words."""
    left_out = {COUNT if tested else MEASURE, *(() if packed else (UNPACK,))}
    return [name for name in SIGNATURES if name not in left_out]


def divisor(number: int) -> tuple[int, int]:
    """Return the factor, as a signed word, and the shift by which `divided` divides: 2 ** (63 + shift) / number, rounded up.

    With the least shift for which 2 ** shift is no less than the number, the factor has 64 bits.  It is too large by a part of
    less than 2 ** -63, which no dividend of 63 bits notices.
    """
    shift = (number - 1).bit_length()
    return -((-1 << (63 + shift)) // number) - (1 << 64), shift


def ranges(slots: int) -> tuple[int, int]:
    """Return into how many ranges slots are dealt out, and the slots of each: as many as a warp takes at a time, or several times that."""
    share = max(-(-slots // RANGES), LEAST_SHARE)
    share += -share % TAKEN
    return -(-slots // share), share
