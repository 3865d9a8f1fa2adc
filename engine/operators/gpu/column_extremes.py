"""The least and the greatest number of columns, measured by a kernel with one wait for all; each answer of libcudf is several.

The oldest 50 of 15 M orders by two columns take 0.83 of the time on an H200.  Integers of 128 bits are measured as two words each, which
says enough where none is negative or takes more than 63 bits; else libcudf measures them.
"""

from __future__ import annotations

import decimal
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
COLUMN = ("rows", "width", "shift", "data", "bits", "nullable", "stride", "out", "blocks")
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
WIDE = plc.TypeId.DECIMAL128


def measured(columns: Sequence[plc.Column]) -> list[Bounds | None]:
    """Return the least and the greatest integer of each column, None of one without values."""
    parts = [_parts(column) for column in columns]
    code = machine_code(KERNEL, partial(column_kernel, KERNEL)) if parts else None
    if code is None or () in parts:
        return [*map(_answer_of, [*map(_asked, columns)])]
    found = iter(_measured(code, [lying for of_column in parts for lying in of_column]))
    bounds = []
    for column, of_column in zip(columns, parts, strict=True):
        low, *high = [next(found) for _ in of_column]
        is_enough = low is None or not high or (high[0] == (0, 0) and low[0] >= 0)
        bounds.append(low if is_enough else _answer_of(_asked(column)))
    return bounds


def _measured(code: bytes, lying: Sequence[tuple[int, ...]]) -> list[Bounds | None]:
    size = 8 * WORDS * len(lying)
    buffer = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)
    start = int(buffer.ptr)
    given = [start, size]
    for number, each in enumerate(lying):
        given += *each, start + 8 * WORDS * number, launch.fixed_blocks(code, KERNEL, each[0])
    blank = np.array(BLANK * len(lying), np.int64).view(np.uint8)
    words = exchanged(blank, _calls(code, len(lying)), given, size).view(np.int64).tolist()
    ends = zip(words[::WORDS], words[1::WORDS], strict=True)
    return [None if low > high else (low, high) for low, high in ends]


def _parts(column: plc.Column) -> tuple[tuple[int, ...], ...]:
    """What the kernel is told of a column, as `COLUMN` names it, of one of 128 bits twice; nothing of one that it does not read, or that begins behind its memory."""
    kind, rows = column.type().id(), column.size()
    if (kind not in WORDS_OF and kind != WIDE) or not rows or column.offset():
        return ()
    data, nullable = int(column.data().ptr), int(column.null_count() > 0)
    valid = int(column.null_mask().ptr) if nullable else data, nullable
    if kind == WIDE:  # the words of lower and of higher bits
        return tuple((rows, 8, 0, data + place, *valid, 2) for place in (0, 8))
    return ((rows, *WORDS_OF[kind], data, *valid, 1),)


@lru_cache(maxsize=16)
def _calls(code: bytes, columns: int) -> DriverCalls:
    """What the driver does for so many columns: `measured` gives the rest in this order."""
    host, start, size, *rest = map(LateArgument, range(3 + columns * len(COLUMN)))
    stream = stream_handle()
    calls = [DriverCall("cuMemcpyAsync", (start, host, size, stream))]
    for first in range(0, len(rest), len(COLUMN)):
        late = dict(zip(COLUMN, rest[first:], strict=False))
        given = {
            **late, **dict.fromkeys(DATA, late["data"]), "spacing": late["rows"],
            "out": launch.array_at(late["out"], WORDS, 8),
        }  # fmt: skip
        calls.append(launch.fixed_call(code, KERNEL, SIGNATURES[KERNEL], late["blocks"], given))
    calls.append(DriverCall("cuMemcpyAsync", (host, start, size, stream)))
    return driver_calls([*calls, DriverCall("cuStreamSynchronize", (stream,))])


def _asked(column: plc.Column) -> tuple[plc.Scalar, plc.Scalar] | None:
    """What libcudf will answer, None for a column without values."""
    if column.size() == column.null_count():
        return None
    if column.type().id() != WIDE:
        least, greatest = plc.reduce.minmax(column)
        return least, greatest
    least = plc.reduce.reduce(column, plc.aggregation.min(), column.type())
    return least, plc.reduce.reduce(column, plc.aggregation.max(), column.type())


def _answer_of(asked: tuple[plc.Scalar, plc.Scalar] | None) -> Bounds | None:
    with decimal.localcontext(prec=50):  # the default context rounds to 28 digits
        return None if asked is None else (int(asked[0].to_py()), int(asked[1].to_py()))
