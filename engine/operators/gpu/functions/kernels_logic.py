"""Three-valued logic, comparisons and IN lists."""

from __future__ import annotations

import math
from functools import lru_cache, reduce

import pylibcudf as plc

from ....plan.arrow.arrow_arrays import array_from
from ....plan.expr import Call, InList
from .. import columns as col
from . import values as val

Op = plc.binaryop.BinaryOperator

_OPERATORS = {
    "eq": Op.EQUAL,
    "ne": Op.NOT_EQUAL,
    "lt": Op.LESS,
    "le": Op.LESS_EQUAL,
    "gt": Op.GREATER,
    "ge": Op.GREATER_EQUAL,
}
# Up to so many values of an IN list are compared one by one; more go into a hash set.
FEW_VALUES = 3


def conjunction(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return reduce(lambda a, b: _combined(a, b, Op.LOGICAL_AND, Op.NULL_LOGICAL_AND), args)


def disjunction(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return reduce(lambda a, b: _combined(a, b, Op.LOGICAL_OR, Op.NULL_LOGICAL_OR), args)


def _combined(
    left: val.Value,
    right: val.Value,
    plain: plc.binaryop.BinaryOperator,
    aware: plc.binaryop.BinaryOperator,
) -> val.Value:
    """The operator that knows NULL is the slower one."""
    if isinstance(left, val.Constant) and isinstance(right, val.Constant):
        return _folded(left, right, decisive=plain == Op.LOGICAL_OR)
    nullable = any(
        val.is_null_constant(v) or (not isinstance(v, val.Constant) and v.null_count())
        for v in (left, right)
    )
    return val.binary(left, right, aware if nullable else plain, col.BOOL)


def _folded(left: val.Constant, right: val.Constant, decisive: bool) -> val.Constant:
    found = (left.value, right.value)
    if decisive in found:
        return val.Constant(decisive, col.BOOL)
    return val.Constant(None if None in found else not decisive, col.BOOL)


def negation(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return col.negate(val.as_column(args[0], scope.rows))


def is_null(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    column = val.as_column(args[0], scope.rows)
    return (
        plc.unary.is_null(column)
        if column.null_count()
        else col.constant(False, col.BOOL, scope.rows)
    )


def is_not_null(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    column = val.as_column(args[0], scope.rows)
    return (
        plc.unary.is_valid(column)
        if column.null_count()
        else col.constant(True, col.BOOL, scope.rows)
    )


def comparison(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return compare(call.function, args[0], args[1], scope.rows)


def compare(function: str, left: val.Value, right: val.Value, rows: int) -> plc.Column:
    """Compare values of one type; NaN equals NaN and is above every number."""
    if val.is_null_constant(left) or val.is_null_constant(right):
        return col.constant(None, col.BOOL, rows)
    if not _holds_float(left):
        return val.binary(val.integers(left), val.integers(right), _OPERATORS[function], col.BOOL)
    if _is_nan(left) or _is_nan(right):
        left, right = val.as_column(left, rows), val.as_column(right, rows)
    if function in ("eq", "ne"):
        if not isinstance(left, val.Constant) and not isinstance(right, val.Constant):
            left, right = col.as_key(left), col.as_key(right)
        return val.binary(left, right, _OPERATORS[function], col.BOOL)
    return _ordered_floats(function, left, right)


def _ordered_floats(function: str, left: val.Value, right: val.Value) -> plc.Column:
    """The hardware says FALSE whenever NaN is compared; what is TRUE of NaN is added."""
    plain = val.binary(left, right, _OPERATORS[function], col.BOOL)
    greater, other = (left, right) if function in ("gt", "ge") else (right, left)
    if isinstance(greater, val.Constant):
        return plain
    nan = plc.unary.is_nan(greater)
    if function in ("lt", "gt") and not isinstance(other, val.Constant):
        nan = val.binary(nan, col.negate(plc.unary.is_nan(other)), Op.LOGICAL_AND, col.BOOL)
    # NULL in either argument makes `plain` NULL, and NULL OR TRUE must stay so here.
    return val.binary(plain, nan, Op.LOGICAL_OR, col.BOOL)


def _holds_float(value: val.Value) -> bool:
    if isinstance(value, val.Constant):
        return value.type.id() in (plc.TypeId.FLOAT32, plc.TypeId.FLOAT64)
    return col.is_float(value)


def _is_nan(value: val.Value) -> bool:
    return (
        isinstance(value, val.Constant)
        and isinstance(value.value, float)
        and math.isnan(value.value)
    )


def is_not_distinct(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    left, right = (col.as_key(val.as_column(a, scope.rows)) for a in args)
    return plc.binaryop.binary_operation(left, right, Op.NULL_EQUALS, col.BOOL)


def is_distinct(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return col.negate(val.operand(is_not_distinct(call, scope, args)))


def greatest(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return _extreme("gt", scope, args)


def least(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return _extreme("lt", scope, args)


def _extreme(better: str, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """NULL arguments are left out."""
    best, *others = [val.as_column(a, scope.rows) for a in args if not val.is_null_constant(a)] or [
        val.as_column(args[0], scope.rows)
    ]
    for other in others:
        wins = col.true_mask(compare(better, best, other, scope.rows))
        if other.null_count():
            wins = val.binary(wins, plc.unary.is_null(other), Op.LOGICAL_OR, col.BOOL)
        best = col.select(wins, best, other)
    return best


def in_list(expr: InList, scope: val.RowScope, column: plc.Column) -> plc.Column:
    """TRUE for a value of the list, NULL for NULL, and NULL for a miss when NULL is in the list."""
    found_null = any(v.value is None for v in expr.values)
    values = [val.literal(v) for v in expr.values if v.value is not None]
    if not values:
        return col.constant(None, col.BOOL, scope.rows)
    if len(values) <= FEW_VALUES:
        tests = [compare("eq", column, v, scope.rows) for v in values]
        found = reduce(lambda a, b: val.binary(a, b, Op.LOGICAL_OR, col.BOOL), tests)
    else:
        found = _among(column, values)
    if not found_null:
        return found
    return col.where_true(found, found)


def _among(column: plc.Column, values: list[val.Constant]) -> plc.Column:
    size = sum(len(v.value) if isinstance(v.value, str) else 8 for v in values)
    found = plc.search.contains(col.kept(_haystack, size)(tuple(values)), col.as_key(column))
    if not column.null_count():
        return found
    return col.where_true(col.true_mask(found), plc.unary.is_valid(column))


@lru_cache(maxsize=256)
def _haystack(values: tuple[val.Constant, ...]) -> plc.Column:
    """Return constants as a column, in one copy to the device; of a list that was used before, in none."""
    data_type = val.integer_type(values[0].type)
    if data_type.id() == plc.TypeId.DECIMAL128:
        return col.as_key(plc.concatenate.concatenate([val.as_column(v, 1) for v in values]))
    plain = [int(v.value) if isinstance(v.value, bool) else v.value for v in values]
    return col.as_key(plc.Column.from_arrow(array_from(plain, data_type.to_arrow())))


KERNELS = {
    "and": conjunction,
    "or": disjunction,
    "not": negation,
    "is_null": is_null,
    "is_not_null": is_not_null,
    **dict.fromkeys(_OPERATORS, comparison),
    "is_distinct": is_distinct,
    "is_not_distinct": is_not_distinct,
    "greatest": greatest,
    "least": least,
}
