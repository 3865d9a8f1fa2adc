"""The kernels of `functions_groups` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature, parameters
from ..compile.kernel_files import KernelFile, kernel_file

SOURCE = Path(__file__).with_name("functions_groups.py")
COUNT, MEASURE, PLACES, UNPACK = "group_count", "group_measure", "group_places", "group_unpack"
MEASURED = 4  # arrays that one launch takes
RANGES = 1 << 13  # at most: warps that a device holds at a time
LEAST_SHARE = 256
TAKEN = 128  # slots that a warp takes at a time
WORD = 32  # slots of a word of bits

_RANGES: Signature = parameters("slots warps share int64")
_EXTREMES: Signature = [
    *parameters("bits *int32, measured int64"),
    *[(f"values{i}", "*int64") for i in range(MEASURED)],
    *parameters("counts *int64, state [int64]"),
]


SIGNATURES: dict[str, Signature] = {
    COUNT: [*_RANGES, *parameters("flags *int64, least int64"), *_EXTREMES],
    MEASURE: [*_RANGES, *_EXTREMES],
    PLACES: parameters("warps int64, counts *int64, state [int64]"),
    UNPACK: parameters("slots width int64, packed counts *int32, lost [int64]"),
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
    """Return the names of the kernels that find groups; `tested`: another one marks them first, `packed`: their counts share words."""
    left_out = {COUNT if tested else MEASURE, *(() if packed else (UNPACK,))}
    return [name for name in SIGNATURES if name not in left_out]


def ranges(slots: int, most: int = RANGES) -> tuple[int, int]:
    """Return into how many ranges slots are dealt out, and the slots of each: as many as a warp takes at a time, or several times that."""
    share = max(-(-slots // most), LEAST_SHARE)
    share += -share % TAKEN
    return -(-slots // share), share
