"""CAST and TRY_CAST between all types, by DuckDB's rules of rounding and of what fits."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import ConversionError, OutOfRange
from ....plan import types as ty
from ....plan.arrow.arrow_arrays import array_from, from_numpy, truth_values
from ....plan.coercion import castable
from ....plan.temporal import ticks
from ..table import decode
from . import kernels_wide as decimals, kernels_wide as wide
from .json.json_columns import cast_json, transform
from .json.json_texts import makers
from .kernels_arithmetic import bounds
from .kernels_formats import parsed
from .kernels_numeric import half_away
from .kernels_print import printed
from .kernels_wide import doubles
from .nested import nested_casts
from .values import attempts, byte_maps, byte_strings, uuids
from .values.bit_strings import cast_bits
from .vectors import WIDE, Array, Kernel, Mask, Vector, dtype_of, first_row, null_constant

HUGEINT_OF_DUCKDB = range(-(2**127), 2**127)

# Values in the target's form, and where there is none (None: nowhere).
Converted = tuple[Array, Mask | None]


def cast(vector: Vector, target: ty.DataType, safe: bool) -> Vector:
    """Return values in another type; where there is none: NULL when `safe`, else `ConversionError`."""
    source = vector.type
    if source == target:
        return vector
    if vector.is_null or ty.Kind.NULL in (source.kind, target.kind):
        return null_constant(target)
    if vector.is_constant:
        return cast(_as_row(vector), target, safe).first()
    if ty.JSON in (source, target):
        return cast_json(vector, target, safe, cast)
    if source.is_enum:
        return cast(Vector(ty.VARCHAR, attempts.texts_of(vector)), target, safe)
    if ty.BIT in (source, target):
        return cast_bits(vector, target, safe)
    if source.is_nested or target.is_nested:
        return _nested(vector, target, safe)
    if ty.Kind.UUID in (source.kind, target.kind):
        return _uuids(vector, target, safe)
    if ty.Kind.BLOB in (source.kind, target.kind):
        return _bytes(vector, target, safe)
    if target.kind is ty.Kind.VARCHAR:
        return Vector(ty.VARCHAR, printed(vector))
    data, wrong = (
        _read(vector.data, target) if source.kind is ty.Kind.VARCHAR else _converted(vector, target)
    )
    valid = vector.mask
    if wrong is not None and wrong.any():
        wrong = wrong if valid is None else wrong & valid
        if wrong.any():
            if target == ty.HUGEINT:
                _refuse_39_digits(vector, wrong)
            if not safe:
                raise ConversionError(_message(vector, first_row(wrong), target))
            valid = ~wrong if valid is None else valid & ~wrong
    return Vector(target, data, valid)


def _bytes(vector: Vector, target: ty.DataType, safe: bool) -> Vector:
    """Bytes from and to text, of which there is no cast to anything else."""
    to_text, given = target.kind is ty.Kind.VARCHAR, decode(vector.data)
    arrow, convert = (
        (pa.string(), byte_maps.OF_BLOB) if to_text else (pa.binary(), byte_maps.TO_BLOB)
    )
    found = byte_maps.mapped(given, convert, arrow)
    if found is None:
        codes = pc.dictionary_encode(given)
        values = codes.dictionary.to_pylist()
        made = map(byte_strings.text_of if to_text else byte_strings.bytes_of, values)
        found = array_from(list(made), arrow).take(codes.indices)
    return _checked(vector, found, target, safe)


def _uuids(vector: Vector, target: ty.DataType, safe: bool) -> Vector:
    """A UUID from and to text and its 16 bytes, of which there is no cast to anything else."""
    if target.kind is ty.Kind.VARCHAR:
        return Vector(ty.VARCHAR, uuids.texts_of(vector.data))
    if target.kind is ty.Kind.BLOB:
        return Vector(target, vector.data.cast(pa.binary()))
    of = uuids.of_texts if vector.type.kind is ty.Kind.VARCHAR else uuids.of_bytes
    return _checked(vector, of(vector.data), target, safe)


def _read(texts: pa.Array, target: ty.DataType) -> Converted:
    return attempts.of_texts(texts, target) if target.is_enum else parsed(texts, target)


def _checked(vector: Vector, found: pa.Array, target: ty.DataType, safe: bool) -> Vector:
    """Return what was read of a vector; raises `ConversionError` for a value without a result unless `safe`."""
    wrong = truth_values(pc.and_(found.is_null(), vector.data.is_valid()))
    if wrong.any() and not safe:
        raise ConversionError(_message(vector, first_row(wrong), target))
    return Vector(target, found)


def _nested(vector: Vector, target: ty.DataType, safe: bool) -> Vector:
    def inside(part: Vector, kind: ty.DataType) -> Vector:
        return cast(part, kind, safe)

    if target.kind is ty.Kind.VARCHAR:
        return Vector(ty.VARCHAR, nested_casts.texts(vector.data, vector.type, inside))
    if vector.type == ty.VARCHAR and target == ty.list_of(ty.JSON):
        return cast(cast(vector, ty.JSON, safe), target, safe)
    if vector.type.kind is ty.Kind.VARCHAR:
        made = nested_casts.read(vector.data, target, safe, inside)
    else:
        made = nested_casts.between(vector.data, vector.type, target, inside)
    if target.is_array:
        made = nested_casts.of_length(made, target, safe)
    return Vector(target, made)


def _as_row(vector: Vector) -> Vector:
    array = vector.to_arrow(1)
    return Vector.from_arrow(array, vector.type)


def _refuse_39_digits(vector: Vector, wrong: Mask) -> None:
    """HUGEINT has 38 digits here, and NULL would be a wrong answer where DuckDB has a value of 39."""
    if vector.type.kind is ty.Kind.VARCHAR:
        texts = pc.unique(vector.data.filter(from_numpy(wrong))).to_pylist()
        found = (_integer_of(text) for text in texts if text is not None)
        values = [value for value in found if value is not None]
    elif vector.type.is_float:
        values = [int(v) for v in vector.data[wrong] if np.isfinite(v)]
    else:
        return
    for value in values:
        if value in HUGEINT_OF_DUCKDB and abs(value) >= 10**ty.MAX_DECIMAL_DIGITS:
            raise OutOfRange(
                f"{value} has 39 digits, and HUGEINT holds {ty.MAX_DECIMAL_DIGITS} here: cast to DOUBLE."
            )


def _integer_of(text: str) -> int | None:
    """Return the number of about 39 digits that a text stands for."""
    try:
        found = float(text)
        return int(ty.DIGITS.to_integral_value(Decimal(text))) if 1e37 < abs(found) < 1e40 else None
    except (ValueError, ArithmeticError):
        return None


def _message(vector: Vector, row: int, target: ty.DataType) -> str:
    one = vector.take(np.array([row]))
    text = cast(one, ty.VARCHAR, safe=True).data[0].as_py()
    if vector.type.kind is ty.Kind.VARCHAR:
        return f"Could not convert string '{text}' to {target}: use TRY_CAST to get NULL for such values."
    if not castable(vector.type, target):
        return f"{vector.type} value {text} cannot be a {target}, which the other side of the set operation is: cast one side."
    return (
        f"{vector.type} value {text} is out of range for {target}: "
        "cast to a wider type, or use TRY_CAST to get NULL for such values."
    )


def _converted(vector: Vector, target: ty.DataType) -> Converted:
    source = vector.type
    data = vector.data
    if not castable(source, target):  # of a set operation
        return np.zeros(len(data), dtype_of(target)), np.ones(len(data), bool)
    if target.kind is ty.Kind.BOOLEAN:
        return _to_boolean(data), None
    if target.is_temporal:
        return ticks.converted(data, source, target)
    if source.kind is ty.Kind.BOOLEAN:
        return _numbers(data.astype(np.int8), 0, target)
    if source.is_float:
        return _from_float(data, target)
    return _numbers(data, source.scale, target)


def _to_boolean(data: Array) -> Array:
    if data.dtype == WIDE:
        return (data["low"] != 0) | (data["high"] != 0)
    return data != 0


def _numbers(data: Array, scale: int, target: ty.DataType) -> Converted:
    """Integers and decimals, as unscaled values of `scale`."""
    if target.is_float:
        whole = scale == 0 and data.dtype != WIDE
        return (data if whole else doubles(data, scale)).astype(dtype_of(target)), None
    rescaled, lost = decimals.rescale(data, target.scale - scale)
    wrong = _outside(rescaled, target)
    wrong = lost if wrong is None else wrong if lost is None else wrong | lost
    return decimals.fitted(rescaled, target), wrong


def _outside(data: Array, target: ty.DataType) -> Mask | None:
    low, high = target.integer_range
    if data.dtype == WIDE:
        return wide.less(wide.wide_constant(high), data) | wide.less(data, wide.wide_constant(low))
    smallest, largest = bounds(data)
    if low <= smallest and largest <= high:
        return None
    info: np.iinfo = np.iinfo(data.dtype)
    wrong = np.zeros(data.shape, bool)
    if low > info.min:
        wrong |= data < data.dtype.type(low)
    if high < info.max:
        wrong |= data > data.dtype.type(high)
    return wrong


def _from_float(data: Array, target: ty.DataType) -> Converted:
    if target.is_float:
        values = data.astype(dtype_of(target))
        return values, np.isinf(values) & ~np.isinf(data)
    if target.is_decimal:
        limit = 10.0**target.precision
        if target == ty.HUGEINT:
            values = np.rint(data.astype(np.float64))
            wrong = ~(np.abs(values) <= limit)  # 1e38 lies a little below 10^38
        else:
            values = half_away(data.astype(np.float64) * 10.0**target.scale)
            wrong = ~(np.abs(values) < limit)
        values = np.where(wrong, 0.0, values)
        if target.is_wide_decimal:
            return wide.from_double(values), wrong
        return values.astype(np.int64), wrong
    values = np.rint(data).astype(np.float64)
    low, high = target.integer_range
    wrong = ~((values >= float(low)) & (values < float(high + 1)))
    return np.where(wrong, 0.0, values).astype(dtype_of(target)), wrong


KERNELS: dict[str, Kernel] = {  # which cast what values of JSON have inside
    **makers(cast),
    "json_transform": transform(cast, strict=False),
    "json_transform_strict": transform(cast, strict=True),
}
