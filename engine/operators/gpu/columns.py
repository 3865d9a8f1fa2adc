"""Small steps on single device columns: constants, casts, views of the same bits, masks of validity.

Nothing here knows SQL types; `table` maps those to libcudf's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import pylibcudf as plc

from ...storage.columns.device_encode import (
    SAME_BITS,
    TIMESTAMPS,
    reinterpret as reinterpret,
)

BOOL = plc.DataType(plc.TypeId.BOOL8)
TEXT = plc.DataType(plc.TypeId.STRING)
UINT32 = plc.DataType(plc.TypeId.UINT32)
EQUAL = plc.types.NullEquality.EQUAL
INT32 = plc.DataType(plc.TypeId.INT32)
INT64 = plc.DataType(plc.TypeId.INT64)
FLOAT64 = plc.DataType(plc.TypeId.FLOAT64)
HUGE = plc.DataType(plc.TypeId.DECIMAL128, 0)  # a 128-bit integer
KEPT_BYTES = 1 << 14  # of a constant that stays on the device for later queries

Op = plc.binaryop.BinaryOperator
T = TypeVar("T")

STRING, DECIMAL128 = plc.TypeId.STRING, plc.TypeId.DECIMAL128
WIDE = 16  # bytes of a DECIMAL128
# What values are on the host, as numbers
NUMBERS = {
    plc.TypeId.BOOL8: np.uint8,
    plc.TypeId.INT8: np.int8,
    plc.TypeId.INT16: np.int16,
    plc.TypeId.INT32: np.int32,
    plc.TypeId.INT64: np.int64,
    plc.TypeId.UINT8: np.uint8,
    plc.TypeId.UINT16: np.uint16,
    plc.TypeId.UINT32: np.uint32,
    plc.TypeId.UINT64: np.uint64,
    plc.TypeId.FLOAT32: np.float32,
    plc.TypeId.FLOAT64: np.float64,
    plc.TypeId.TIMESTAMP_DAYS: np.int32,
    **dict.fromkeys(TIMESTAMPS.values(), np.int64),
    plc.TypeId.DECIMAL64: np.int64,
}
_BITS_OF = {
    **SAME_BITS,
    plc.TypeId.FLOAT32: plc.TypeId.INT32,
    plc.TypeId.FLOAT64: plc.TypeId.INT64,
    plc.TypeId.DECIMAL32: plc.TypeId.INT32,
}
_FLOATS = (plc.TypeId.FLOAT32, plc.TypeId.FLOAT64)
_EPOCH_TYPES = (plc.TypeId.TIMESTAMP_DAYS, *TIMESTAMPS.values())


def address_of(column: plc.Column, width: int) -> int:
    """Return where values of `width` bytes begin."""
    return int(column.data().ptr) + int(column.offset()) * width


def is_float(column: plc.Column) -> bool:
    return column.type().id() in _FLOATS


def same_type(a: plc.DataType, b: plc.DataType) -> bool:
    return a.id() == b.id() and a.scale() == b.scale()


def width_of(kind: plc.TypeId) -> int:
    """Return the bytes of a value; 0 for types that no value on the host is made of."""
    if kind == DECIMAL128:
        return WIDE
    return np.dtype(NUMBERS[kind]).itemsize if kind in NUMBERS else 0


def as_integers(column: plc.Column) -> plc.Column:
    """Return the bits of a 32- or 64-bit number, date or truth value as integers, other columns as they are."""
    bits = _BITS_OF.get(column.type().id())
    return column if bits is None else reinterpret(column, plc.DataType(bits))


def as_key(column: plc.Column) -> plc.Column:
    """Return a column in which SQL's equality of keys is equality of bits: NaN = NaN and -0.0 = 0.0.

    libcudf has a faster path for one key of integers than for decimals and dates, and its comparison of floats in
    that path does not hold NaN equal.
    """
    if is_float(column):
        column = plc.replace.normalize_nans_and_zeros(column)
    return as_integers(column)


def cast(column: plc.Column, data_type: plc.DataType) -> plc.Column:
    """Convert to another type, or return the column itself when it has that type."""
    if same_type(column.type(), data_type):
        return column
    return plc.unary.cast(column, data_type)


def kept(make: functools._lru_cache_wrapper[T], size: int) -> Callable[..., T]:
    """Return a function that keeps what it makes on the device for later queries, without keeping it where it is large."""
    return make if size <= KEPT_BYTES else make.__wrapped__


@functools.lru_cache(maxsize=4096)
def _scalar(value: Any, text: str, type_id: object, scale: int) -> plc.Scalar:
    data_type = plc.DataType(type_id, scale)
    if value is None:
        return plc.Scalar.from_py(None, data_type)
    if type_id in _EPOCH_TYPES:
        bits = plc.DataType(_BITS_OF[type_id])
        column = plc.Column.from_scalar(plc.Scalar.from_py(value, bits), 1)
        return reinterpret(column, data_type).to_scalar()
    if type_id == plc.TypeId.DECIMAL64:
        column = plc.Column.from_scalar(plc.Scalar.from_py(value, INT64), 1)
        return reinterpret(column, data_type).to_scalar()
    if type_id == plc.TypeId.DECIMAL128:
        digits = tuple(int(d) for d in str(abs(value)))
        return plc.Scalar.from_py(Decimal((int(value < 0), digits, scale)))
    return plc.Scalar.from_py(value, data_type)


def scalar(value: object, data_type: plc.DataType) -> plc.Scalar:
    """Return a device scalar; equal ones are made once, since each is an allocation and a copy.

    `value` is None, a Python value, or for decimals, dates and timestamps the integer behind them: the unscaled value, days,
    microseconds.
    """
    # 0.0 and -0.0 are equal and so share a slot of the cache unless their text is part of the key.
    text = repr(value)
    return kept(_scalar, len(text))(value, text, data_type.id(), data_type.scale())


def constant(value: object, data_type: plc.DataType, size: int) -> plc.Column:
    """Return a column of `size` equal values; `value` as for `scalar`."""
    if not size:
        return empty(data_type)
    return plc.Column.from_scalar(scalar(value, data_type), size)


def null_column(size: int, data_type: plc.DataType) -> plc.Column:
    return constant(None, data_type, size)


def empty(data_type: plc.DataType) -> plc.Column:
    return plc.column_factories.make_empty_column(data_type)


def sequence(
    size: int, start: int = 0, step: int = 1, data_type: plc.DataType = INT32
) -> plc.Column:
    """Return start, start + step, ..."""
    if not size:
        return empty(data_type)
    return plc.filling.sequence(size, scalar(start, data_type), scalar(step, data_type))


def binary(
    left: plc.Column | plc.Scalar,
    right: plc.Column | plc.Scalar,
    operator: plc.binaryop.BinaryOperator,
    data_type: plc.DataType,
) -> plc.Column:
    """`plc.binaryop.binary_operation` by its shorter name; one of the operands may be a scalar."""
    return plc.binaryop.binary_operation(left, right, operator, data_type)


def mean(total: plc.Column, count: plc.Column, unit: float) -> plc.Column:
    """Divide an exact sum once, by how many units it counts; beside a double libcudf makes doubles of integers, not of decimals."""
    if unit == 1:
        divisor = cast(count, FLOAT64)
    else:
        divisor = binary(_number(count), scalar(float(unit), FLOAT64), Op.MUL, FLOAT64)
    return binary(_number(total), divisor, Op.DIV, FLOAT64)


def _number(column: plc.Column) -> plc.Column:
    return cast(column, FLOAT64) if column.type().id() == DECIMAL128 else column


def without_nulls(column: plc.Column, value: object) -> plc.Column:
    """Replace NULL by a value, which is as for `scalar`."""
    if not column.null_count():
        return column
    return plc.replace.replace_nulls(column, scalar(value, column.type()))


def negate(mask: plc.Column) -> plc.Column:
    """Return NOT of a BOOL8 column."""
    return plc.unary.unary_operation(mask, plc.unary.UnaryOperator.NOT)


def true_mask(mask: plc.Column) -> plc.Column:
    """Return a BOOL8 column without NULL: TRUE where `mask` is."""
    return without_nulls(mask, False)


def both(left: plc.Column, right: plc.Column) -> plc.Column:
    """Return AND of two BOOL8 columns without NULL."""
    return binary(left, right, Op.LOGICAL_AND, BOOL)


def where_true(column: plc.Column, keep: plc.Column) -> plc.Column:
    """Return `column` with NULL wherever `keep` is not TRUE; the values are shared, only the mask is new."""
    if not column.size():
        return column
    mask, nulls = plc.transform.bools_to_mask(keep)
    if not nulls:
        return column
    if column.offset():
        column = column.copy()  # masks count from the first value, buffers from the offset
    if column.null_count():
        flags = constant(True, BOOL, column.size()).with_mask(mask, nulls)
        buffer, nulls = plc.null_mask.bitmask_and([column, flags])
        mask = plc.gpumemoryview(buffer)
    return column.with_mask(mask, nulls)


def select(
    condition: plc.Column, yes: plc.Column | plc.Scalar, no: plc.Column | plc.Scalar
) -> plc.Column:
    """Return `yes` where a condition without NULL is TRUE, else `no`; either may be a scalar."""
    return plc.copying.copy_if_else(yes, no, condition)
