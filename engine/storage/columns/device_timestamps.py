"""Whether timestamps on the device are whole microseconds, as `timestamps` looks on the host."""

from __future__ import annotations

import pylibcudf as plc

from .timestamps import lost

_MICROSECONDS = plc.DataType(plc.TypeId.TIMESTAMP_MICROSECONDS)
_BOOL = plc.DataType(plc.TypeId.BOOL8)


def check_device_timestamps(column: plc.Column, what: str) -> None:
    """Raise `DataError` where nanoseconds are no whole microseconds; coarser units lose nothing.

    The work is over when this returns, on the default stream.
    """
    if column.type().id() != plc.TypeId.TIMESTAMP_NANOSECONDS or not column.size():
        return
    again = plc.unary.cast(plc.unary.cast(column, _MICROSECONDS), column.type())
    differ = plc.binaryop.binary_operation(
        again, column, plc.binaryop.BinaryOperator.NOT_EQUAL, _BOOL
    )
    if plc.reduce.reduce(differ, plc.aggregation.any(), _BOOL).to_py():
        raise lost(what, "ns")
