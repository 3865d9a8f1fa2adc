"""Values of an expression over the rows of one chunk, as kernels see them, and functions of Arrow arrays as kernels.

A fixed-width type is a numpy array (a view of Arrow's buffer where nothing had to be computed) with validity apart; VARCHAR, BLOB, UUID,
LIST and STRUCT are Arrow arrays that hold their own validity.  A value that is the same in all rows is kept as one: numpy data without
dimensions, a Python `str`, or an Arrow scalar of bytes or a nested type.  Values under a NULL are arbitrary, and no kernel may raise because of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.arrow.arrow_arrays import from_numpy, scalar_from
from ....plan.expr import Call, Interval, Value, physical
from ....plan.types import BOOLEAN, VARCHAR, DataType, Kind
from ....records import dataclass
from .. import table as tables
from .interval_records import SPAN

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

Kernel: TypeAlias = Callable[[Call, tuple["Vector", ...]], "Vector"]  # computes a function

WIDE = np.dtype([("low", "<u8"), ("high", "<i8")])  # decimal128: two's complement in two limbs
NO_ROW: Mask = np.zeros((), bool)  # the validity of a constant NULL

_DTYPES: dict[Kind, npt.DTypeLike] = {
    Kind.NULL: np.bool_,
    Kind.BOOLEAN: np.bool_,
    Kind.TINYINT: np.int8,
    Kind.SMALLINT: np.int16,
    Kind.INTEGER: np.int32,
    Kind.BIGINT: np.int64,
    Kind.UTINYINT: np.uint8,
    Kind.USMALLINT: np.uint16,
    Kind.UINTEGER: np.uint32,
    Kind.UBIGINT: np.uint64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
    Kind.DATE: np.int32,
    Kind.INTERVAL: SPAN,
}


def dtype_of(data_type: DataType) -> np.dtype[Any]:
    """Return the numpy type of a fixed-width SQL type; a DECIMAL holds its unscaled value."""
    if data_type.is_ticks:
        return np.dtype(np.int64)
    if data_type.is_decimal:
        return WIDE if data_type.is_wide_decimal else np.dtype(np.int64)
    return np.dtype(_DTYPES[data_type.kind])


@dataclass(frozen=True, slots=True)
class Vector:
    """Values of one type: `data` as the module says, `valid` None where no value is NULL.

    `valid` without dimensions means that every row is NULL; it is never set for an Arrow array of strings.
    """

    type: DataType
    data: Any
    valid: Mask | None = None

    @property
    def is_constant(self) -> bool:
        return isinstance(self.data, str | pa.Scalar) or (
            not isinstance(self.data, pa.Array) and self.data.ndim == 0
        )

    @property
    def is_null(self) -> bool:
        """Every row is NULL and the vector says so without a look at its rows."""
        return self.valid is not None and self.valid.ndim == 0

    @property
    def mask(self) -> Mask | None:
        """Where the values are not NULL, for strings too."""
        if isinstance(self.data, pa.Array):
            return tables.validity(self.data)
        return self.valid

    @property
    def length(self) -> int:
        """The number of rows; 1 for a constant."""
        return 1 if self.is_constant else len(self.data)

    @property
    def text(self) -> pa.Array | pa.Scalar:
        """Strings as an argument for pyarrow.compute."""
        return scalar_from(self.data, pa.string()) if isinstance(self.data, str) else self.data

    def take(self, indices: npt.NDArray[np.int64]) -> Vector:
        if isinstance(self.data, pa.Array):
            return replace(self, data=pc.take(self.data, from_numpy(indices), boundscheck=False))
        data = self.data if self.is_constant else self.data[indices]
        valid = self.valid
        return replace(
            self, data=data, valid=valid if valid is None or not valid.ndim else valid[indices]
        )

    def first(self) -> Vector:
        """Return the first row as a constant."""
        mask = self.mask
        if mask is not None and (not mask.ndim or not mask[0]):
            return null_constant(self.type)
        if isinstance(self.data, pa.Array):
            found = self.data[0]
            return Vector(self.type, found if self.type.is_ranked else found.as_py())
        return Vector(self.type, self.data if self.is_constant else np.asarray(self.data[0]))

    def to_arrow(self, num_rows: int) -> pa.Array:
        """Return the physical Arrow array of `num_rows` rows."""
        if self.type.kind is Kind.NULL:
            return pa.nulls(num_rows)
        arrow = tables.physical_type(self.type)
        if self.is_null or not num_rows:
            return pa.nulls(num_rows, arrow)
        if isinstance(self.data, str | pa.Scalar):
            return pa.repeat(self.text, num_rows)
        if isinstance(self.data, pa.Array):
            return self.data
        data, valid = self.data, self.valid
        if data.ndim == 0:
            data = np.full(num_rows, data)
        return from_numpy(data, valid, arrow)

    @classmethod
    def from_arrow(cls, array: pa.Array, data_type: DataType) -> Self:
        """View a physical array; dictionaries are decoded."""
        if data_type.kind is Kind.NULL:
            return cls(data_type, np.zeros((), bool), NO_ROW)
        if data_type.kind is Kind.VARCHAR:
            return cls(data_type, tables.decode(array))
        if data_type.is_ranked:
            return cls(data_type, array)
        valid = tables.validity(array)
        if data_type.is_wide_decimal:
            return cls(data_type, tables.decimal_limbs(array).view(WIDE).reshape(-1), valid)
        if data_type.kind is Kind.INTERVAL:
            return cls(data_type, tables.spans_of(array), valid)
        return cls(data_type, tables.to_numpy(array), valid)


def null_constant(data_type: DataType) -> Vector:
    """NULL in every row."""
    if data_type.kind is Kind.VARCHAR:
        return Vector(data_type, "", NO_ROW)
    if data_type.is_ranked:
        return Vector(data_type, scalar_from(None, tables.physical_type(data_type)), NO_ROW)
    return Vector(data_type, np.zeros((), dtype_of(data_type)), NO_ROW)


def constant(value: Value, data_type: DataType) -> Vector:
    """The value of a literal in every row."""
    if value is None or data_type.kind is Kind.NULL:
        return null_constant(data_type)
    if isinstance(value, str):
        return Vector(data_type, value)
    if isinstance(value, bytes):
        return Vector(data_type, scalar_from(value, tables.physical_type(data_type)))
    if isinstance(value, Interval):
        return Vector(data_type, np.array((value.months, value.days, value.micros), SPAN))
    found = physical(value, data_type)
    if data_type.is_wide_decimal:
        assert isinstance(found, int)
        return Vector(data_type, np.array(wide_limbs(found), WIDE))
    return Vector(data_type, np.array(found, dtype_of(data_type)))


def wide_limbs(unscaled: int) -> tuple[int, int]:
    """Return the low limb, unsigned, and the high limb of a 128-bit integer."""
    return unscaled & (2**64 - 1), unscaled >> 64


def both_valid(*vectors: Vector) -> Mask | None:
    """Where no argument is NULL; None when that is everywhere."""
    valid: Mask | None = None
    for vector in vectors:
        mask = vector.mask
        if mask is not None:
            valid = mask if valid is None else valid & mask
    return valid


def booleans(data: Array, valid: Mask | None = None) -> Vector:
    return Vector(BOOLEAN, data, valid)


def from_text(data: pa.Array | str) -> Vector:
    """Wrap strings that pyarrow.compute returned: an array, or a scalar when all its arguments were."""
    if isinstance(data, pa.Scalar):
        value = data.as_py()
        return null_constant(VARCHAR) if value is None else Vector(VARCHAR, value)
    return Vector(VARCHAR, data)


def first_row(bad: Array) -> int:
    """The row of the first TRUE, for messages; 0 for constants."""
    return int(np.argmax(bad)) if bad.ndim else 0


def at(data: Array, row: int) -> Any:
    """The Python value in `row`, of a constant too."""
    return data.item() if data.ndim == 0 else data[row].item()


ArrayFunction: TypeAlias = Callable[[Call, list[pa.Array]], pa.Array]


def over_arrays(function: ArrayFunction) -> Kernel:
    """Make a kernel of a function over arrays of one length, in physical form, which gives another."""

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        varying = [v for v in args if not v.is_constant]
        count = len(varying[0].data) if varying else 1
        if call.type.kind is Kind.NULL:  # of NULL, as a list of any type
            made = pa.nulls(count)
        else:
            made = function(call, [v.to_arrow(count) for v in args])
        vector = Vector.from_arrow(made, call.type)
        return vector if varying else vector.first()

    return kernel
