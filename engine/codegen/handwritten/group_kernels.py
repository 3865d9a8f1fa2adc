"""The kernels of `functions_groups` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..targets.cache import kernel_key, source_file
from ..targets.device import Architecture, KernelFile, Signature, toolchain

SOURCE = Path(__file__).with_name("functions_groups.py")
COUNT, MEASURE, PLACES = "group_count", "group_measure", "group_places"
PICK, KEY, UNPACK = "group_pick", "group_key", "group_unpack"
MEASURED, WIDE, NARROW, SHORT = 4, 4, 2, 2  # arrays that one launch takes
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
        ("base", "int64"),
        ("width", "int64"),
        ("numbers32", "*int32"),
        ("numbers64", "*int64"),
        ("wide", "int64"),
        *[(f"from{i}", "*int64") for i in range(WIDE)],
        *[(f"to{i}", "*int64") for i in range(WIDE)],
        ("narrow", "int64"),
        *[(f"from{WIDE + i}", "*int64") for i in range(NARROW)],
        *[(f"to{WIDE + i}", "*int32") for i in range(NARROW)],
        ("short", "int64"),
        *[(f"from{WIDE + NARROW + i}", "*int32") for i in range(SHORT)],
        *[(f"to{WIDE + NARROW + i}", "*int64") for i in range(SHORT)],
    ],
    KEY: [
        ("rows", "int64"),
        ("numbers", "*int64"),
        ("stride", "int64"),
        ("size", "int64"),
        ("low", "int64"),
        ("values", "*int64"),
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
    """Write the source of a kernel, unless it is there; in `short` are the parameters that are arrays of 32 bits here."""
    source = SOURCE.read_text(encoding="utf-8")
    signature = [(n, "*int32" if n in short else kind) for n, kind in SIGNATURES[name]]
    # The key holds the whole source, of which `kernel_key` leaves out what has docstrings
    key = kernel_key(source, source, repr(signature), repr(architecture), toolchain())
    path = source_file(directory, name, key, source)
    return KernelFile(path, name, source, signature, architecture)


def needed(tested: bool, packed: bool) -> list[str]:
    """Return the names of the kernels that pick groups; `tested`: another one marks them first, `packed`: their counts share words."""
    left_out = {COUNT if tested else MEASURE, *(() if packed else (UNPACK,))}
    return [name for name in SIGNATURES if name not in left_out]


def ranges(slots: int) -> tuple[int, int]:
    """Return into how many ranges slots are dealt out, and the slots of each: as many as a warp takes at a time, or several times that."""
    share = max(-(-slots // RANGES), LEAST_SHARE)
    share += -share % TAKEN
    return -(-slots // share), share
