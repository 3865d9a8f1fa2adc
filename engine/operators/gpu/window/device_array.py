"""Device columns that answer the functions of NumPy which the arithmetic of windows calls, so that it stands once for both backends.

Each function is one call of libcudf; nothing waits for the device but `any`, `all`, `min`, `max` and lengths that depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pylibcudf as plc

from ....plan.arrow.arrow_arrays import array_from
from ...windows.frames import Values
from .. import columns as col
from ..aggregate.groups import pick
from ..table import concat_columns

Op = plc.binaryop.BinaryOperator
Operand: TypeAlias = object  # a DeviceArray, a number, or an array of NumPy's of constants

_ARITHMETIC: dict[object, plc.binaryop.BinaryOperator] = {
    np.add: Op.ADD,
    np.subtract: Op.SUB,
    np.multiply: Op.MUL,
    np.maximum: Op.NULL_MAX,
    np.minimum: Op.NULL_MIN,
    np.floor_divide: Op.DIV,  # of integers that are not negative
    np.right_shift: Op.SHIFT_RIGHT,
}
_COMPARISONS: dict[object, plc.binaryop.BinaryOperator] = {
    np.less: Op.LESS,
    np.less_equal: Op.LESS_EQUAL,
    np.greater: Op.GREATER,
    np.greater_equal: Op.GREATER_EQUAL,
    np.equal: Op.EQUAL,
    np.not_equal: Op.NOT_EQUAL,
}
_LOGIC: dict[object, tuple[plc.binaryop.BinaryOperator, plc.binaryop.BinaryOperator]] = {
    np.bitwise_and: (Op.LOGICAL_AND, Op.BITWISE_AND),
    np.bitwise_or: (Op.LOGICAL_OR, Op.BITWISE_OR),
    np.bitwise_xor: (Op.NOT_EQUAL, Op.BITWISE_XOR),
}


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A column without NULL of INT64, HUGE, FLOAT64 or BOOL8."""

    def __init__(self, column: plc.Column) -> None:
        self.column = column

    def __len__(self) -> int:
        return int(self.column.size())

    def __getitem__(self, chosen: DeviceArray | slice) -> DeviceArray:
        """Return the values at places that are there, in a range of them, or where a mask is true."""
        if isinstance(chosen, slice):
            start, stop, step = chosen.indices(len(self))
            assert step == 1
            if stop <= start:
                return DeviceArray(plc.column_factories.make_empty_column(self.column.type()))
            return DeviceArray(plc.copying.slice(self.column, [start, stop])[0])
        if chosen.is_mask:
            return DeviceArray(_kept(self.column, chosen.column))
        return DeviceArray(pick(self.column, as_rows(chosen)))

    @property
    def is_mask(self) -> bool:
        return bool(self.column.type().id() == plc.TypeId.BOOL8)

    @property
    def is_float(self) -> bool:
        return bool(self.column.type().id() == plc.TypeId.FLOAT64)

    def any(self) -> bool:
        return len(self) > 0 and self._reduced(plc.aggregation.max()) != 0

    def all(self) -> bool:
        return len(self) == 0 or self._reduced(plc.aggregation.min()) != 0

    def min(self) -> int:
        return self._reduced(plc.aggregation.min())

    def max(self) -> int:
        return self._reduced(plc.aggregation.max())

    def sum(self) -> int:
        return self._reduced(plc.aggregation.sum()) if len(self) else 0

    def _reduced(self, aggregation: plc.aggregation.Aggregation) -> int:
        """Reduce integers or a mask on the device and wait for the answer."""
        numbers = col.cast(self.column, col.INT64) if self.is_mask else self.column
        return int(plc.reduce.reduce(numbers, aggregation, numbers.type()).to_py())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand) -> DeviceArray:
        if method != "__call__":
            raise NotImplementedError(f"{ufunc.__name__}.{method}")
        if ufunc is np.invert:
            return _inverted(self)
        if ufunc is np.negative:
            return DeviceArray(_binary(0, self, Op.SUB))
        if ufunc is np.sqrt:
            return DeviceArray(plc.unary.unary_operation(self.column, plc.unary.UnaryOperator.SQRT))
        left, right = inputs
        if ufunc in _COMPARISONS:
            return DeviceArray(_binary(left, right, _COMPARISONS[ufunc], col.BOOL))
        if ufunc in _LOGIC:
            both_masks = _is_mask(left) and _is_mask(right)
            of_masks, of_bits = _LOGIC[ufunc]
            if both_masks:
                return DeviceArray(_binary(left, right, of_masks, col.BOOL))
            return DeviceArray(_binary(left, right, of_bits))
        if ufunc is np.true_divide:
            return DeviceArray(_binary(_as_float(left), _as_float(right), Op.DIV))
        return DeviceArray(_binary(left, right, _ARITHMETIC[ufunc]))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        return _FUNCTIONS[function](*args, **kwargs)


def as_array(column: plc.Column) -> Values:
    """Return a column of one of the types of `DeviceArray` as an array."""
    return DeviceArray(column)  # type: ignore[return-value]


def column_of(array: Values | DeviceArray) -> plc.Column:
    """Undo `as_array`."""
    held: object = array
    assert isinstance(held, DeviceArray)
    return held.column


def as_rows(places: Values | DeviceArray) -> plc.Column:
    """Return places as row numbers, as libcudf gathers by."""
    return col.cast(column_of(places), col.INT32)


def _kept(column: plc.Column, mask: plc.Column) -> plc.Column:
    kept = plc.stream_compaction.apply_retention_mask(plc.Table([column]), mask)
    return kept.columns()[0]


def _is_mask(value: Operand) -> bool:
    return value.is_mask if isinstance(value, DeviceArray) else isinstance(value, bool | np.bool_)


def _as_float(value: Operand) -> Operand:
    if isinstance(value, DeviceArray):
        return DeviceArray(col.cast(value.column, col.FLOAT64))
    return float(value)  # type: ignore[arg-type]


def _inverted(array: DeviceArray) -> DeviceArray:
    """NOT of a mask; of integers -1 - x, which turns their order round, in 128 bits too."""
    return DeviceArray(col.negate(array.column) if array.is_mask else _binary(-1, array, Op.SUB))


def _common(values: Sequence[Operand]) -> plc.DataType:
    """Return the type in which values meet: the widest that any of them has."""
    rank = {
        plc.TypeId.BOOL8: 0,
        plc.TypeId.INT64: 1,
        plc.TypeId.DECIMAL128: 2,
        plc.TypeId.FLOAT64: 3,
    }
    found = col.BOOL
    for value in values:
        if isinstance(value, DeviceArray):
            own = value.column.type()
        elif isinstance(value, bool | np.bool_):
            own = col.BOOL
        else:
            own = col.FLOAT64 if isinstance(value, float) else col.INT64
        found = own if rank[own.id()] > rank[found.id()] else found
    return found


def _operand(value: Operand, data_type: plc.DataType) -> plc.Column | plc.Scalar:
    if isinstance(value, DeviceArray):
        return col.cast(value.column, data_type)
    if col.same_type(data_type, col.BOOL):
        return col.scalar(bool(value), col.BOOL)
    number: float = value  # type: ignore[assignment]
    return col.scalar(
        float(number) if col.same_type(data_type, col.FLOAT64) else int(number), data_type
    )


def _binary(
    left: Operand,
    right: Operand,
    operator: plc.binaryop.BinaryOperator,
    result: plc.DataType | None = None,
) -> plc.Column:
    met = _common([left, right])
    if result is None and col.same_type(met, col.BOOL):
        met = col.INT64  # masks that are added
    return col.binary(_operand(left, met), _operand(right, met), operator, result or met)


def _where(condition: Operand, yes: Operand, no: Operand) -> DeviceArray:
    met = _common([yes, no])
    if not isinstance(condition, DeviceArray):  # of a constant number
        size = max(len(v) for v in (yes, no) if isinstance(v, DeviceArray))
        condition = DeviceArray(col.constant(bool(condition), col.BOOL, size))
    if not len(condition):
        return DeviceArray(plc.column_factories.make_empty_column(met))
    return DeviceArray(col.select(condition.column, _operand(yes, met), _operand(no, met)))


def _clip(values: Operand, low: Operand, high: Operand) -> DeviceArray:
    return DeviceArray(_binary(DeviceArray(_binary(values, low, Op.NULL_MAX)), high, Op.NULL_MIN))


def _cumsum(values: DeviceArray) -> DeviceArray:
    numbers = col.cast(values.column, col.INT64) if values.is_mask else values.column
    return DeviceArray(prefix_sums(numbers))


def prefix_sums(column: plc.Column) -> plc.Column:
    if not column.size():
        return column
    return plc.reduce.scan(column, plc.aggregation.sum(), plc.reduce.ScanType.INCLUSIVE)


def _concatenate(parts: Sequence[Operand]) -> DeviceArray:
    columns = [
        p.column if isinstance(p, DeviceArray) else plc.Column.from_arrow(array_from(p))
        for p in parts
    ]
    return DeviceArray(concat_columns(columns))


def _flatnonzero(mask: DeviceArray) -> DeviceArray:
    return DeviceArray(_kept(col.sequence(len(mask), data_type=col.INT64), mask.column))


def _full_like(like: DeviceArray, value: object) -> DeviceArray:
    return DeviceArray(col.constant(value, like.column.type(), len(like)))


def _zeros_like(like: DeviceArray) -> DeviceArray:
    return _full_like(like, 0.0 if like.is_float else 0)


_FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    np.where: _where,
    np.clip: _clip,
    np.cumsum: _cumsum,
    np.concatenate: _concatenate,
    np.flatnonzero: _flatnonzero,
    np.full_like: _full_like,
    np.zeros_like: _zeros_like,
    np.any: DeviceArray.any,
}
