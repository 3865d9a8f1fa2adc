"""What a kernel reached, against what its device can: the bandwidth of a copy, measured and remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Literal as OneOf

from ..operators.context import PipelineReceipt
from ..plan.physical import Device
from ..storage.spill_folders import make_folder, read_file, write_file

FILE = "bandwidth.json"  # device name -> bytes a second, in the kernel cache's directory
# Seconds of a run that does nothing: launches, threads, the way back of the result
FIXED_SECONDS: dict[Device, float] = {"gpu": 20e-6, "cpu": 100e-6}
MEMORY_SHARE = 0.5  # of the bandwidth, from which on memory is what a kernel waits for

Bound = OneOf["transfer", "compile", "latency", "memory", "compute"]


def bound(receipt: PipelineReceipt, bandwidth: float, device: Device) -> Bound:
    """Return what took the time of a pipeline that ran as a kernel.

    transfer  reading and encoding columns that were not in the cache took longest
    compile   generating the kernel and compiling it or reading it from disk took longest
    latency   the kernel's bytes pass in less time than a run costs that does nothing
    memory    it moved at least half of the bandwidth
    compute   none of these
    """
    # A kernel that was in memory only had to be looked up
    compiling = 0.0 if receipt.origin == "memory" else receipt.compile_seconds
    longest = max(receipt.load_seconds, compiling, receipt.seconds)
    if longest == receipt.load_seconds:
        return "transfer"
    if longest == compiling:
        return "compile"
    if receipt.bytes < bandwidth * FIXED_SECONDS[device]:
        return "latency"
    return "memory" if receipt.bandwidth >= MEMORY_SHARE * bandwidth else "compute"


def remembered(directory: Path, name: str, measure: Callable[[], float]) -> float:
    """Return the bandwidth of a device as it was measured first; a file that cannot be read or written is done without."""
    return _known(directory, name) or measured(directory, name, measure)


def measured(directory: Path, name: str, measure: Callable[[], float]) -> float:
    """Measure the bandwidth of a device now; remember and return the largest so far, as other work only makes copies slower."""
    value = max(measure(), _known(directory, name))
    with suppress(OSError):
        _write(directory / FILE, {**_read(directory / FILE), name: round(value)})
    return value


def _known(directory: Path, name: str) -> float:
    found = _read(directory / FILE).get(name)
    return found if isinstance(found, float) and 0 < found < inf else 0.0


def _read(path: Path) -> dict[str, object]:
    with suppress(OSError, ValueError, RecursionError):
        stored = json.loads(
            read_file(path), parse_int=float
        )  # which has no number that is too large
        if isinstance(stored, dict):
            return stored
    return {}


def _write(path: Path, content: dict[str, object]) -> None:
    """Write in one step, so that another process never reads half a file."""
    make_folder(path.parent)
    write_file(path, json.dumps(content, indent=1).encode())
