"""Device columns, in the GPU backend's physical form, into their narrowest encoding, on the device.

`EncodedColumn.codes` is a pylibcudf column that owns its buffer, `validity` the span of a bitmap.  Buffers begin at a multiple
of `PADDING` bytes.  A kernel's last word may reach up to 7 bytes beyond the values: RMM rounds allocations up to 256 bytes, and
an aligned word that holds a value never leaves its page.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any

import pyarrow as pa
import pylibcudf as plc

from ...plan.arrow.arrow_arrays import array_from
from ...plan.types import DataType, Kind
from . import encodings as enc
from .encode import SAMPLE, most_values
from .value_checks import check_narrow_decimals

I64_MAX = 2**63 - 1
MOST_STRINGS = 1 << 22  # values of a dictionary, which lies on the host

BOOL8 = plc.DataType(plc.TypeId.BOOL8)
INT32 = plc.DataType(plc.TypeId.INT32)
INT64 = plc.DataType(plc.TypeId.INT64)
FLOATS = {4: plc.DataType(plc.TypeId.FLOAT32), 8: plc.DataType(plc.TypeId.FLOAT64)}
UNSIGNED = {
    1: plc.DataType(plc.TypeId.UINT8),
    2: plc.DataType(plc.TypeId.UINT16),
    4: plc.DataType(plc.TypeId.UINT32),
}
# By the ticks of a second.  A TIME is to operators a moment of 1970's first day, and in Parquet a duration
TIMESTAMPS = {
    1: plc.TypeId.TIMESTAMP_SECONDS,
    10**3: plc.TypeId.TIMESTAMP_MILLISECONDS,
    10**6: plc.TypeId.TIMESTAMP_MICROSECONDS,
    10**9: plc.TypeId.TIMESTAMP_NANOSECONDS,
}
DURATIONS = {
    10**3: plc.TypeId.DURATION_MILLISECONDS,
    10**6: plc.TypeId.DURATION_MICROSECONDS,
    10**9: plc.TypeId.DURATION_NANOSECONDS,
}
# Types that are integers by another name
SAME_BITS = {
    plc.TypeId.BOOL8: plc.TypeId.UINT8,
    plc.TypeId.TIMESTAMP_DAYS: plc.TypeId.INT32,
    **dict.fromkeys(TIMESTAMPS.values(), plc.TypeId.INT64),
    plc.TypeId.DECIMAL64: plc.TypeId.INT64,
}
Operator = plc.binaryop.BinaryOperator
UNCHECKED = plc.copying.OutOfBoundsPolicy.DONT_CHECK


def encode_on_device(column: plc.Column, data_type: DataType) -> enc.EncodedColumn | None:
    """Return a column encoded, or None for what no kernel reads: many different strings, decimals beyond 64 bits."""
    if data_type.is_ranked or data_type.kind in (Kind.INTERVAL, Kind.NULL):
        return None
    column = aligned(column)
    if data_type.kind is Kind.VARCHAR:
        return _strings(column, data_type)
    fixed = enc.fixed_encoding(data_type)
    if fixed is not None and fixed.is_float:
        return encoded_as(data_type, fixed, column, column)
    if column.size() == column.null_count():
        return encoded_as(data_type, enc.TRUTHS, column, _zeros(column.size()))
    integers = _integers(column, data_type)
    return None if integers is None else _narrow(column, integers, data_type)


def _integers(column: plc.Column, data_type: DataType) -> plc.Column | None:
    """The register form of values as integers: unscaled decimals, days, microseconds; None beyond 64 bits."""
    if data_type.is_wide_decimal:
        return _low_half(column)
    same = SAME_BITS.get(column.type().id())
    if same is not None:
        return reinterpret(column, plc.DataType(same))
    if data_type.kind is Kind.UBIGINT:
        _, high = _extremes(column)
        return reinterpret(column, INT64) if high <= I64_MAX else None
    return column


def _low_half(column: plc.Column) -> plc.Column | None:
    """128-bit decimals in 64 bits, if all fit."""
    wide = column.type()
    narrow = plc.unary.cast(column, plc.DataType(plc.TypeId.DECIMAL64, wide.scale()))
    back = plc.unary.cast(narrow, wide)
    same = plc.binaryop.binary_operation(back, column, Operator.EQUAL, BOOL8)
    if not plc.reduce.reduce(same, plc.aggregation.all(), BOOL8).to_py():
        return None
    return reinterpret(narrow, INT64)


def _narrow(column: plc.Column, integers: plc.Column, data_type: DataType) -> enc.EncodedColumn:
    low, high = _extremes(integers)
    if data_type.is_decimal:
        check_narrow_decimals(low, high, data_type)
    if data_type.kind is Kind.BOOLEAN:
        codes = _without_nulls(integers, 0)
        return encoded_as(data_type, enc.TRUTHS, column, codes, low, high)
    values = _without_nulls(cast_to(integers, INT64), low)
    # Differences beyond 63 bits would wrap, and no step makes a narrow code of them
    differences = None if high - low > I64_MAX else _subtract(values, low)
    step = 1 if differences is None else _step(differences, low, high)
    encoding = enc.narrow_for(low, high, step)
    if encoding.width == 8 or differences is None:
        whole = _without_nulls(cast_to(integers, INT64), 0)
        return encoded_as(data_type, enc.REGISTER, column, aligned(whole), low, high)
    codes = differences if step == 1 else operate(differences, Operator.DIV, step)
    codes = plc.unary.cast(codes, UNSIGNED[encoding.width])
    return encoded_as(data_type, encoding, column, codes, low, high)


def _extremes(column: plc.Column) -> tuple[int, int]:
    low, high = plc.reduce.minmax(column)
    return int(low.to_py()), int(high.to_py())


def _step(differences: plc.Column, low: int, high: int) -> int:
    """The greatest number that divides all differences from the lowest value, if it makes codes narrower, else 1.

    Guessed from a sample, then checked.
    """
    if enc.narrow_for(low, high, 1).width == 1:
        return 1
    step = enc.likely_step(_sample(differences), 0, high - low)
    while step > 1:
        rest = operate(differences, Operator.MOD, step)
        _, worst = _extremes(rest)
        if worst == 0:
            return step
        step = enc.useful_step(low, high, gcd(step, worst))
    return 1


def _sample(column: plc.Column) -> enc.Array:
    """Some values, evenly spread, on the host."""
    return enc.numbers(_picked(column, SAMPLE).to_arrow())


def _picked(column: plc.Column, count: int) -> plc.Column:
    places = spread(column.size(), count)
    (picked,) = plc.copying.gather(plc.Table([column]), places, UNCHECKED).columns()
    return picked


def spread(rows: int, count: int) -> plc.Column:
    """Return the numbers of some rows, evenly spread: `count` of them or up to twice as many, all where there are fewer."""
    stride = max(1, rows // count)
    return plc.filling.sequence(-(-rows // stride), _scalar(0, INT32), _scalar(stride, INT32))


def with_order(column: enc.EncodedColumn) -> enc.EncodedColumn:
    """Look whether values ascend, or at least never fall nor repeat often: a sample first, which few columns pass that may."""
    if not column.may_be_clustered:
        return column
    sample, codes = _sample(column.codes), column.codes
    if bool((sample[1:] < sample[:-1]).any()):
        return column
    ascending = bool((sample[1:] > sample[:-1]).all()) and _all_rows(codes, Operator.LESS, 1)
    clustered = ascending or (
        _all_rows(codes, Operator.LESS_EQUAL, 1)
        and _all_rows(codes, Operator.NOT_EQUAL, enc.MOST_ALIKE)
    )
    return replace(column, ascending=ascending, clustered=clustered)


def _all_rows(codes: plc.Column, operator: plc.binaryop.BinaryOperator, distance: int) -> bool:
    """Whether something holds of each row and the one that comes so many rows after it."""
    rows = codes.size()
    if rows <= distance:
        return True
    before, after = plc.copying.slice(codes, [0, rows - distance, distance, rows])
    held = plc.binaryop.binary_operation(before, after, operator, BOOL8)
    return bool(plc.reduce.reduce(held, plc.aggregation.all(), BOOL8).to_py())


# Strings


def _strings(column: plc.Column, data_type: DataType) -> enc.EncodedColumn | None:
    if column.size() == column.null_count():
        return encoded_as(
            data_type, enc.Dictionary(_no_strings(), 1), column, _zeros(column.size())
        )
    limit = most_values_of(column)
    if not limit:
        return None
    keys, codes = plc.transform.encode(plc.Table([column]))
    if keys.num_rows() > min(limit, MOST_STRINGS):
        return None
    return _coded(column, codes, keys.columns()[0], data_type)


def encode_codes(codes: plc.Column, keys: plc.Column, data_type: DataType) -> enc.EncodedColumn:
    """Return strings encoded that are codes already: places in different keys, ascending, NULL where the string is."""
    codes = aligned(codes)
    return _coded(codes, codes, keys, data_type)


def _coded(
    column: plc.Column, codes: plc.Column, keys: plc.Column, data_type: DataType
) -> enc.EncodedColumn:
    """Put codes into the narrowest width; `column` has the NULLs.  Both sort strings by their bytes, as Arrow does."""
    values = keys.to_arrow().drop_null().cast(_no_strings().type)
    width = enc.code_width(len(values))
    if column.null_count():
        zero = _scalar(0, codes.type())
        codes = plc.copying.copy_if_else(codes, zero, plc.unary.is_valid(column))
    return encoded_as(data_type, enc.Dictionary(values, width), column, _unsigned(codes, width))


def _unsigned(codes: plc.Column, width: int) -> plc.Column:
    """Codes in an unsigned type; those of the same width are the same bytes, since none is negative."""
    wanted = UNSIGNED[width]
    same = {1: plc.TypeId.INT8, 2: plc.TypeId.INT16, 4: plc.TypeId.INT32}[width]
    return (
        reinterpret(codes, wanted) if codes.type().id() == same else plc.unary.cast(codes, wanted)
    )


def most_values_of(column: plc.Column) -> int:
    """Return up to how many different strings are made a dictionary, 0 for never."""
    return most_values(column.size(), partial(_sampled, column))


def _sampled(column: plc.Column, rows: int) -> tuple[int, int]:
    """Look at so many rows as `encode` does on the host: how many they are, and how many strings differ."""
    sample = column if column.size() <= rows else _picked(column, rows)
    differing = plc.reduce.distinct_count(
        sample, plc.types.NullPolicy.EXCLUDE, plc.types.NanPolicy.NAN_IS_VALID
    )
    return sample.size(), int(differing)


def _no_strings() -> pa.Array:
    import pyarrow as pa

    return array_from([], pa.string())


# Columns


def encoded_as(
    data_type: DataType,
    encoding: enc.Encoding,
    column: plc.Column,
    codes: plc.Column,
    low: int | None = None,
    high: int | None = None,
) -> enc.EncodedColumn:
    """Put the codes of a column together with its NULLs; `low` and `high` hold its integers."""
    nulls = column.null_count()
    bitmap = column.null_mask() if nulls else None
    return enc.EncodedColumn(data_type, encoding, column.size(), codes, bitmap, nulls, low, high)


def code_type(encoding: enc.Encoding) -> plc.DataType:
    """Return libcudf's type of an encoding's codes."""
    width = encoding.width
    return FLOATS[width] if encoding.is_float else UNSIGNED.get(width, INT64)


def codes_at(data: Any, encoding: enc.Encoding, rows: int) -> plc.Column:
    """Return codes that lie in some memory."""
    return plc.Column(code_type(encoding), rows, data, None, 0, 0, [])


def aligned(column: plc.Column) -> plc.Column:
    """The column itself, or a copy where it begins within a buffer or between words."""
    data, mask = column.data(), column.null_mask()
    begins = column.offset() == 0 and (data is None or data.ptr % enc.PADDING == 0)
    return column if begins and (mask is None or mask.ptr % enc.PADDING == 0) else column.copy()


def reinterpret(column: plc.Column, data_type: plc.DataType) -> plc.Column:
    """Return the same bits as another fixed-width type of the same width, without copying."""
    return plc.Column(
        data_type,
        column.size(),
        column.data(),
        column.null_mask(),
        column.null_count(),
        column.offset(),
        [],
    )


def cast_to(column: plc.Column, data_type: plc.DataType) -> plc.Column:
    return column if column.type().id() == data_type.id() else plc.unary.cast(column, data_type)


def _without_nulls(column: plc.Column, value: int) -> plc.Column:
    if not column.null_count():
        return column
    return plc.replace.replace_nulls(column, _scalar(value, column.type()))


def _subtract(column: plc.Column, value: int) -> plc.Column:
    return column if value == 0 else operate(column, Operator.SUB, value)


def operate(column: plc.Column, operator: plc.binaryop.BinaryOperator, value: int) -> plc.Column:
    return plc.binaryop.binary_operation(column, _scalar(value, INT64), operator, INT64)


def _zeros(rows: int) -> plc.Column:
    if rows == 0:
        return plc.column_factories.make_empty_column(UNSIGNED[1])
    return plc.Column.from_scalar(_scalar(0, UNSIGNED[1]), rows)


def _scalar(value: int, data_type: plc.DataType) -> plc.Scalar:
    return plc.Scalar.from_py(value, data_type)
