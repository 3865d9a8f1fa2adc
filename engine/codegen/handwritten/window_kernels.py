"""The kernels of `functions_windows` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature, parameters
from ..compile.kernel_files import KernelFile, kernel_file

SOURCE = Path(__file__).with_name("functions_windows.py")
CHANGES, HEADS, STARTS, STOPS = "window_changes", "window_heads", "window_starts", "window_stops"
SUMS, RUNNING, SCATTER = "window_sums", "window_running", "window_scatter"
MOVED, TAKEN, ENDS = "window_moved", "window_taken", "window_ends"
# What `window_starts` writes
START, PEER_START, NUMBER, RANK, DENSE_RANK = range(5)
# How `window_running` combines
ADDED, LEAST, GREATEST = range(3)
LAST_HEADS, FIRST_HEADS, FIRST_PEERS, STATES = 0, 3, 4, 5  # places in the state, of a word a range

_RANGES: Signature = parameters("rows warps share int64")
_HEADS: Signature = parameters("heads peers *uint8")
_VALUES: Signature = parameters("heads *uint8, state *int64, how none int64, values sums *int64")
SIGNATURES: dict[str, Signature] = {
    CHANGES: [*parameters("rows narrow below int64, keys32 *int32, keys64 *int64"), *_HEADS],
    HEADS: [*_RANGES, *_HEADS, ("state", "*int64")],
    STARTS: [*_RANGES, *_HEADS, *parameters("state *int64, what int64, out *int64")],
    STOPS: [*_RANGES, *parameters("flags *uint8, firsts out *int64")],
    SUMS: [*_RANGES, *_VALUES],
    RUNNING: [*_RANGES, *_VALUES, ("out", "*int64")],
    SCATTER: parameters("rows words int64, order *int32, values out *int64"),
    MOVED: parameters("rows away int64, bounds out *int64"),
    TAKEN: parameters("rows nowhere int64, order *int32, stays int64, places *int64, out *int32"),
    ENDS: parameters("rows int64, stops words out *int64"),
}
OF_VALUES = ("none", "values", "sums", "out")


def signature_of(name: str, double: bool = False) -> Signature:
    """Return the parameters of a kernel; with `double` values are of FLOAT64."""
    if not double:
        return SIGNATURES[name]
    return [
        (n, kind.replace("int64", "float64") if n in OF_VALUES else kind)
        for n, kind in SIGNATURES[name]
    ]


@cache
def window_kernel(
    name: str, directory: Path, architecture: Architecture, double: bool = False
) -> KernelFile:
    """Return a kernel."""
    source = SOURCE.read_text(encoding="utf-8")
    return kernel_file(name, source, signature_of(name, double), directory, architecture)
