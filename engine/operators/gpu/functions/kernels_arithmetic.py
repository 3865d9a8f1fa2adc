"""Arithmetic whose results are exact or raise: + - * // % and negation; `/` and floats follow IEEE 754.

libcudf wraps silently.  Whether a result can leave its type is decided once for a column: from types and literals, else from the
smallest and largest values of the columns that an expression is made of.  Only when that proves nothing is the operation done in
128 bits and each row checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pylibcudf as plc

from ....errors import ExecutionError, OutOfRange
from ....plan.expr import Call, Case, Cast, Column, ColumnRef, Expr, Literal
from ....plan.types import room_for
from ...integer_bounds import INT64_RANGE, NAMES, Bounds, combined, inside, rescaled, type_bounds
from .. import columns as col
from ..column_extremes import measured
from ..dictionaries import Held
from ..late_materialization import bounds_of
from ..table import device_type
from .values import (
    Constant,
    RowScope,
    Value,
    as_column,
    binary,
    integer_type,
    integers,
    is_null_constant,
    validity,
)

Op = plc.binaryop.BinaryOperator
Unary = plc.unary.UnaryOperator

_OPERATORS = {"add": Op.ADD, "sub": Op.SUB, "mul": Op.MUL}
# 128-bit results that a double puts below this are far enough from 2^127 to have been computed without wrapping.
_SAFE_HUGE = 1.6e38


def exact(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """+, - and *."""
    left, right = args
    operator = _OPERATORS[call.function]
    result_type = device_type(call.type)
    if is_null_constant(left) or is_null_constant(right):
        return col.constant(None, result_type, scope.rows)
    if call.type.is_float:
        return binary(left, right, operator, result_type)
    limits = call.type.integer_range
    found = combined(call.function, type_bounds(call.args[0]), type_bounds(call.args[1]))
    if not inside(found, limits):
        found = combined(call.function, *(proven(a, scope.table.columns) for a in call.args))
    if not inside(found, limits):
        found = combined(call.function, *(bounds(a, scope) for a in call.args))
    width = integer_type(result_type)
    if not inside(found, limits):
        return col.reinterpret(_checked(call, scope, left, right), result_type)
    if width.id() == col.HUGE.id() and inside(found, INT64_RANGE) and _narrow(left, right):
        narrow = binary(integers(left, col.INT64), integers(right, col.INT64), operator, col.INT64)
        return col.reinterpret(col.cast(narrow, col.HUGE), result_type)
    result = binary(integers(left, width), integers(right, width), operator, width)
    return col.reinterpret(result, result_type)


def _narrow(*values: Value) -> bool:
    """Whether the integers behind values have 64 bits at most."""
    return all(_type_of(v).id() != plc.TypeId.DECIMAL128 for v in values)


def _type_of(value: Value) -> plc.DataType:
    return value.type if isinstance(value, Constant) else value.type()


def _checked(call: Call, scope: RowScope, left: Value, right: Value) -> plc.Column:
    """Compute in 128 bits and raise `OutOfRange` for a result in an active row that its type does not hold."""
    operator = _OPERATORS[call.function]
    message = f"Overflow in {NAMES[call.function]} of {call.type}: {room_for(call.type)}"
    a, b = integers(left, col.HUGE), integers(right, col.HUGE)
    if not _narrow(left, right):
        rough = binary(_double(a), _double(b), operator, col.FLOAT64)
        size = plc.unary.unary_operation(rough, Unary.ABS)
        if scope.any(binary(size, Constant(_SAFE_HUGE, col.FLOAT64), Op.GREATER, col.BOOL)):
            raise OutOfRange(message)
    result = binary(a, b, operator, col.HUGE)
    if scope.any(outside(result, call.type.integer_range)):
        raise OutOfRange(message)
    return col.cast(result, integer_type(device_type(call.type)))


def _double(value: Value) -> Value:
    if isinstance(value, Constant):
        return Constant(float(value.value), col.FLOAT64)
    return col.cast(value, col.FLOAT64)


def outside(huge: plc.Column, limits: Bounds) -> plc.Column:
    """Return whether each value of a HUGE column is beyond some limits."""
    above = binary(huge, Constant(limits[1], col.HUGE), Op.GREATER, col.BOOL)
    below = binary(huge, Constant(limits[0], col.HUGE), Op.LESS, col.BOOL)
    return binary(above, below, Op.LOGICAL_OR, col.BOOL)


def bounds(expr: Expr, scope: RowScope) -> Bounds:
    """Return bounds of the integers behind an expression, from the extremes of the columns that it is made of."""

    def measured(column: Column) -> Bounds:
        if column.id not in scope.extremes:
            scope.extremes[column.id] = extremes(scope.table[column])
        return scope.extremes[column.id]

    return _bounds(expr, measured)


def proven(expr: Expr, columns: Mapping[int, Held]) -> Bounds:
    """Return bounds of the integers behind an expression, from what is known of the columns without a look at them."""
    return _bounds(expr, lambda c: bounds_of(columns, c.id) or c.type.integer_range)


def proven_of(expr: Expr, columns: Mapping[int, Held]) -> Bounds | None:
    """Return `proven`, None for an expression of another type than integers and decimals."""
    is_exact = expr.type.is_integer or expr.type.is_decimal
    return proven(expr, columns) if is_exact else None


def _bounds(expr: Expr, of_column: Callable[[Column], Bounds]) -> Bounds:
    match expr:
        case Literal():
            return type_bounds(expr)
        case ColumnRef(column=column):
            return of_column(column)
        case Cast(operand=inner) if inner.type.is_integer or inner.type.is_decimal:
            return rescaled(_bounds(inner, of_column), inner.type, expr.type)
        case Call(function="add" | "sub" | "mul", args=args):
            found = combined(expr.function, *(_bounds(a, of_column) for a in args))
            low, high = expr.type.integer_range
            return max(found[0], low), min(found[1], high)
        case Call(function="coalesce", args=values):
            return around([_bounds(v, of_column) for v in values])
        case Case(results=results, default=default):
            return around([_bounds(v, of_column) for v in (*results, default)])
    return expr.type.integer_range


def around(found: Sequence[Bounds]) -> Bounds:
    """Return the interval that holds all of several."""
    return min(low for low, _ in found), max(high for _, high in found)


def extremes(column: plc.Column) -> Bounds:
    """Return the smallest and the largest of the integers behind a column, 0 and 0 for none."""
    return extremes_of([column])[0]


def extremes_of(columns: Sequence[plc.Column]) -> list[Bounds]:
    """Return the extremes of several columns, 0 and 0 of those without values."""
    return [ends or (0, 0) for ends in measured([integers(column) for column in columns])]


def negation(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    if call.type.is_float:
        return plc.unary.unary_operation(column, Unary.NEGATE)
    return _from_zero(call, scope, column)


def _from_zero(call: Call, scope: RowScope, column: plc.Column) -> plc.Column:
    """Return 0 - x."""
    result_type = device_type(call.type)
    width = integer_type(result_type)
    values = integers(column)
    limits = call.type.integer_range
    if not inside(combined("sub", (0, 0), call.args[0].type.integer_range), limits):
        low, high = extremes(column)
        if not inside((-high, -low), limits):
            edge = Op.EQUAL if limits[0] else Op.NOT_EQUAL
            if scope.any(binary(values, Constant(limits[0], width), edge, col.BOOL)):
                raise OutOfRange(
                    f"Overflow in negation of {call.type}: cast the argument to a wider type."
                )
    return col.reinterpret(binary(Constant(0, width), values, Op.SUB, width), result_type)


def absolute(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    if call.type.is_float:
        return plc.unary.unary_operation(column, Unary.ABS)
    if call.type.integer_range[0] == 0:
        return column
    width = integer_type(device_type(call.type))
    values = integers(column)
    limit = call.type.integer_range[0]
    at_edge = not call.type.is_decimal and extremes(column)[0] == limit
    if at_edge and scope.any(binary(values, Constant(limit, width), Op.EQUAL, col.BOOL)):
        raise OutOfRange(f"Overflow in abs() of {call.type}: cast the argument to a wider type.")
    negative = binary(values, Constant(0, width), Op.LESS, col.BOOL)
    opposite = binary(Constant(0, width), values, Op.SUB, width)
    return col.reinterpret(_choose(negative, opposite, values), device_type(call.type))


def _choose(condition: plc.Column, yes: plc.Column, no: plc.Column) -> plc.Column:
    """`select` by a condition that may be NULL, where both answers are NULL too."""
    return col.select(col.true_mask(condition), yes, no)


def sign(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """-1, 0 or 1; NaN gives 0."""
    column = as_column(args[0], scope.rows)
    values = column if call.args[0].type.is_float else integers(column)
    data_type = values.type()
    zero = Constant(0.0 if call.args[0].type.is_float else 0, data_type)
    tiny = device_type(call.type)
    above = col.cast(binary(values, zero, Op.GREATER, col.BOOL), tiny)
    below = col.cast(binary(values, zero, Op.LESS, col.BOOL), tiny)
    return binary(above, below, Op.SUB, tiny)


def divide(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return binary(args[0], args[1], Op.DIV, device_type(call.type))


def integer_division(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """`//`: integers truncate toward zero; floats divide as `/` does, but not by zero."""
    left, right = args
    _refuse_zero(call, scope, left, right)
    if call.type.is_float:
        return divide(call, scope, args)
    result_type = device_type(call.type)
    width = integer_type(result_type)
    _refuse_smallest_by_minus_one(call, scope, left, right)
    result = binary(integers(left, width), integers(right, width), Op.DIV, width)
    return col.reinterpret(result, result_type)


def modulo(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """`%`: the result has the sign of the dividend; a float modulo zero is NaN."""
    left, right = args
    result_type = device_type(call.type)
    if call.type.is_float:
        return binary(left, right, Op.MOD, result_type)
    _refuse_zero(call, scope, left, right)
    width = integer_type(result_type)
    divisor = integers(right, width)
    if not call.type.is_decimal and call.type.integer_range[0] < 0:
        divisor = _size(
            divisor
        )  # what is left has the sign of the dividend, and the smallest by -1 leaves 0
    return col.reinterpret(binary(integers(left, width), divisor, Op.MOD, width), result_type)


def _size(value: Value) -> Value:
    if isinstance(value, Constant):
        return Constant(abs(value.value), value.type)
    return plc.unary.unary_operation(value, Unary.ABS)


def modulo_of_decimals(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """`%` of decimals that are doubles by now: zero is refused as for decimals."""
    _refuse_zero(call, scope, *args)
    return modulo(call, scope, args)


def _refuse_zero(call: Call, scope: RowScope, dividend: Value, divisor: Value) -> None:
    """Raise `ExecutionError` for a zero in an active row whose dividend is not NULL."""
    if isinstance(divisor, Constant):
        if divisor.value:
            return
        zero = col.constant(True, col.BOOL, scope.rows)
    else:
        values = divisor if call.type.is_float else integers(divisor)
        nothing = Constant(0.0 if call.type.is_float else 0, values.type())
        zero = binary(values, nothing, Op.EQUAL, col.BOOL)
    if scope.any(zero) and scope.any(col.both(col.true_mask(zero), validity(dividend, scope.rows))):
        sign = "//" if call.function == "int_div" else "%"
        raise ExecutionError(
            f"Division by zero in expression (x {sign} 0): "
            "use nullif(divisor, 0) to get NULL for such rows."
        )


def _refuse_smallest_by_minus_one(call: Call, scope: RowScope, left: Value, right: Value) -> None:
    low = call.type.integer_range[0]
    if low == 0 or call.type.is_decimal or (isinstance(right, Constant) and right.value != -1):
        return
    if isinstance(left, Constant) and left.value != low:
        return
    width = integer_type(device_type(call.type))
    smallest = binary(as_column(left, scope.rows), Constant(low, width), Op.EQUAL, col.BOOL)
    by_minus_one = binary(as_column(right, scope.rows), Constant(-1, width), Op.EQUAL, col.BOOL)
    if scope.any(binary(smallest, by_minus_one, Op.LOGICAL_AND, col.BOOL)):
        raise OutOfRange(f"Overflow in division of {low} / -1: cast the argument to a wider type.")


def bits(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    operator = {
        "bit_and": Op.BITWISE_AND,
        "bit_or": Op.BITWISE_OR,
        "bit_xor": Op.BITWISE_XOR,
    }[call.function]
    return binary(args[0], args[1], operator, device_type(call.type))


def bit_not(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return plc.unary.unary_operation(as_column(args[0], scope.rows), Unary.BIT_INVERT)


KERNELS = {
    "add": exact,
    "sub": exact,
    "mul": exact,
    "div": divide,
    "int_div": integer_division,
    "mod": modulo,
    "mod_of_decimals": modulo_of_decimals,
    "neg": negation,
    "abs": absolute,
    "sign": sign,
    "bit_and": bits,
    "bit_or": bits,
    "bit_xor": bits,
    "bit_not": bit_not,
}
