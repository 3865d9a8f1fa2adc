"""Values on the device that their types do not allow, as `value_checks` looks on the host: libcudf trusts them as Arrow does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylibcudf as plc

from .device_encode import TIMESTAMPS
from .value_checks import check_utf8, lost

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream

_BOOL = plc.DataType(plc.TypeId.BOOL8)
_TIMESTAMPS = {kind: ticks for ticks, kind in TIMESTAMPS.items()}


def check_device_timestamps(column: plc.Column, made: plc.Column, what: str) -> None:
    """Raise `FileError` where what was made of a column counts a coarser unit, and not the same moments.

    The work is over when this returns, on the default stream.
    """
    have, wanted = (_TIMESTAMPS.get(c.type().id()) for c in (column, made))
    if have is None or wanted is None or have <= wanted or not column.size():
        return
    again = plc.unary.cast(made, column.type())
    differ = plc.binaryop.binary_operation(
        again, column, plc.binaryop.BinaryOperator.NOT_EQUAL, _BOOL
    )
    if plc.reduce.reduce(differ, plc.aggregation.any(), _BOOL).to_py():
        raise lost(what, "ns")


INT8 = plc.DataType(plc.TypeId.INT8)
MOST_BYTES = 1 << 30  # of a column that libcudf is given at a time


def check_device_text(column: plc.Column, what: str, stream: Stream = None) -> None:
    """Raise `FileError` where a string is not UTF-8; ASCII is seen on the device, other text goes to the host and is read there.

    The work is over when this returns, on the stream that is given or the default one.
    """
    data = column.data() if column.type().id() == plc.TypeId.STRING and column.size() else None
    if data is None or _is_ascii(data, stream):
        return
    for array in _chunks(column.to_arrow()):
        check_utf8(array, what)


def _is_ascii(data: Stream, stream: Stream) -> bool:
    """Whether no byte is below zero, as a signed one; `data` may have other text around a slice's, which then is looked at too."""
    size = int(data.size)
    for first in range(0, size, MOST_BYTES):
        count = min(MOST_BYTES, size - first)
        part = data if count == size else data.byte_slice(slice(first, first + count))
        bytes_ = plc.Column(INT8, count, part, None, 0, 0, [])
        least = plc.reduce.reduce(bytes_, plc.aggregation.min(), INT8, stream=stream)
        if stream is not None:
            stream.synchronize()
        if int(least.to_py()) < 0:
            return False
    return True


def _chunks(array: object) -> list[object]:
    return list(array.chunks) if hasattr(array, "chunks") else [array]
