"""The least and the greatest number of columns, measured by a kernel with one wait for all; each answer of libcudf is several.

The oldest 50 of 15 M orders by two columns take 0.83 of the time on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.handwritten.column_kernels import SIGNATURES, column_kernel
from ...codegen.ranges import I64_MAX
from ..integer_bounds import Bounds
from .memory.buffers import exchanged, stream_handle
from .pipeline import launch
from .pipeline.driver_calls import DriverCall, DriverCalls, LateArgument, driver_calls
from .pipeline.fixed_kernels import machine_code

KERNEL = "column_measure"
WORDS = 3  # of a column: its extremes, and a value that nobody asks for
BLANK = [I64_MAX, -I64_MAX - 1, 0]
# What differs from column to column
COLUMN = ("rows", "width", "shift", "data", "bits", "nullable", "out", "blocks")
DATA = ("words8", "words16", "words32", "words64")
WORDS_OF = {  # bytes, and what extends the sign of a word to 64 bits
    plc.TypeId.INT8: (1, 56),
    plc.TypeId.INT16: (2, 48),
    plc.TypeId.INT32: (4, 32),
    plc.TypeId.INT64: (8, 0),
    plc.TypeId.UINT8: (1, 0),
    plc.TypeId.UINT16: (2, 0),
    plc.TypeId.UINT32: (4, 0),
}


def measured(columns: Sequence[plc.Column]) -> list[Bounds | None]:
    """Return the least and the greatest integer of each column, None of one without values."""
    lying = [_lying(column) for column in columns]
    code = machine_code(KERNEL, partial(column_kernel, KERNEL)) if lying else None
    if code is None or None in lying:
        return _by_libcudf(columns)
    size = 8 * WORDS * len(columns)
    buffer = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
    start = int(buffer.ptr)
    given = [start, size]
    for number, each in enumerate(lying):
        assert each is not None
        given += *each, start + 8 * WORDS * number, launch.fixed_blocks(code, KERNEL, each[0])
    blank = np.array(BLANK * len(columns), np.int64).view(np.uint8)
    words = exchanged(blank, _calls(code, len(columns)), given, size).view(np.int64).tolist()
    ends = zip(words[::WORDS], words[1::WORDS], strict=True)
    return [None if low > high else (low, high) for low, high in ends]


def _lying(column: plc.Column) -> tuple[int, ...] | None:
    """What the kernel is told of a column, as `COLUMN` names it; None of one that it does not read, or that begins behind its memory."""
    kind, rows = column.type().id(), column.size()
    if kind not in WORDS_OF or not rows or column.offset():
        return None
    data, nullable = int(column.data().ptr), int(column.null_count() > 0)
    return rows, *WORDS_OF[kind], data, int(column.null_mask().ptr) if nullable else data, nullable


@lru_cache(maxsize=16)
def _calls(code: bytes, columns: int) -> DriverCalls:
    """What the driver does for so many columns: `measured` gives the rest in this order."""
    host, start, size, *rest = map(LateArgument, range(3 + columns * len(COLUMN)))
    stream = stream_handle()
    calls = [DriverCall("cuMemcpyAsync", (start, host, size, stream))]
    for first in range(0, len(rest), len(COLUMN)):
        late = dict(zip(COLUMN, rest[first:], strict=False))
        given = {
            **late, **dict.fromkeys(DATA, late["data"]), "stride": 1, "spacing": late["rows"],
            "out": launch.array_at(late["out"], WORDS, 8),
        }  # fmt: skip
        calls.append(launch.fixed_call(code, KERNEL, SIGNATURES[KERNEL], late["blocks"], given))
    calls.append(DriverCall("cuMemcpyAsync", (host, start, size, stream)))
    return driver_calls([*calls, DriverCall("cuStreamSynchronize", (stream,))])


def _by_libcudf(columns: Sequence[plc.Column]) -> list[Bounds | None]:
    some = [c.size() > c.null_count() for c in columns]
    # All are being measured before the first answer is waited for
    started = [plc.reduce.minmax(c) if s else None for c, s in zip(columns, some, strict=True)]
    return [
        None if ends is None else (int(ends[0].to_py()), int(ends[1].to_py())) for ends in started
    ]
