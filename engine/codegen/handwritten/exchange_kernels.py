"""The kernels of `functions_exchange` as files: their parameters, what a job consists of, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_exchange.py")
COUNT, SCATTER = "exchange_count", "exchange_scatter"
MOST_SLOTS = 32  # since each is counted by a lane of a warp
NO_SLOT = 255  # of rows that go nowhere
# Of rows: so many that warps, of which a device holds a few thousand at a time, have nearly the same to do
RANGES = 1 << 15
# A job's words: the bytes of a value, 0 for a byte that says whether there is one; where values lie; their bitmap, and its first bit
JOB_WORDS = 4

_RANGES: Signature = parameters("rows warps share slots int64, to *uint8")
SIGNATURES: dict[str, Signature] = {
    COUNT: [
        *_RANGES,
        *parameters(
            "numbers *uint32, mask int64, owners *uint8, nullable int64, bitmaps *int64, "
            "memory8 *uint8, counts *int64"
        ),
    ],
    SCATTER: [
        *_RANGES,
        *parameters(
            "ends *int64, columns int64, jobs bases *int64, memory8 *uint8, memory16 *int16, "
            "memory32 *int32, memory64 *int64"
        ),
    ],
}


exchange_kernel = kernels_of(SOURCE, SIGNATURES)
