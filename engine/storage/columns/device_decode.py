"""Encoded device columns back into the GPU backend's physical form, on the device, value for value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylibcudf as plc

from .device_encode import INT64, SAME_BITS, cast_to, operate, reinterpret

if TYPE_CHECKING:
    from .encodings import EncodedColumn, Encoding

Operator = plc.binaryop.BinaryOperator
# Types whose values lie in 64-bit codes by another name, beside `SAME_BITS`
REGISTERS = {
    **SAME_BITS,
    plc.TypeId.DECIMAL128: plc.TypeId.INT64,
    plc.TypeId.UINT64: plc.TypeId.INT64,
}


def codes_of(column: EncodedColumn) -> plc.Column:
    """Return a column's codes with its NULLs, over the same buffers."""
    codes = column.codes
    return plc.Column(
        codes.type(), column.rows, codes.data(), column.validity, column.nulls, codes.offset(), []
    )


def decode_on_device(codes: plc.Column, encoding: Encoding, data_type: plc.DataType) -> plc.Column:
    """Return the values of all or some of a column's codes (`codes_of`); strings are not among what it decodes."""
    if encoding.is_float:
        return codes
    base, step = encoding.base, encoding.step
    values = codes
    if base or step > 1:
        # No product or sum leaves 64 bits: none is beyond the highest value's distance from the lowest
        values = cast_to(values, INT64)
        values = values if step == 1 else operate(values, Operator.MUL, step)
        values = values if base == 0 else operate(values, Operator.ADD, base)
    register = plc.DataType(REGISTERS.get(data_type.id(), data_type.id()))
    values = cast_to(values, register)
    if data_type.id() == plc.TypeId.DECIMAL128:
        narrow = reinterpret(values, plc.DataType(plc.TypeId.DECIMAL64, data_type.scale()))
        return plc.unary.cast(narrow, data_type)
    return reinterpret(values, data_type)
