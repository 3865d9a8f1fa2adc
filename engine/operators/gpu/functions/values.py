"""Values of an expression while it is computed: device columns and constants, the rows in which they matter,
and those that libcudf computes otherwise than DuckDB: usually none, which the host computes.

A kernel marks the rows of which it is not sure (a date beyond the year 9999, a number in scientific notation).  Their argument goes
to the host, and the results, or the error, come back; the query's profile counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

import pylibcudf as plc

from ....plan.expr import Call, Cast, ColumnRef, Expr, Literal, new_column, physical
from ....plan.types import DataType, Kind
from ....plan.udf.python_function import PythonCall
from ....records import dataclass
from ....storage.columns.device_encode import SAME_BITS
from .. import columns, host_backend, table as tables
from ..dictionaries import Coded
from ..late_materialization import LateColumns
from ..table import Table, count_true, device_type, to_device


@dataclass(frozen=True)
class Constant:
    """A value for all rows: None, or as `columns.scalar` takes it (unscaled decimals, days, microseconds)."""

    value: Any
    type: plc.DataType


Value: TypeAlias = "plc.Column | Constant"
Kernel: TypeAlias = Callable[[Call, "RowScope", tuple[Value, ...]], Value]  # computes a function


@dataclass
class RowScope:
    """The table that expressions read, what has been computed of it, and in which rows errors count.

    `active` gives a BOOL8 column without NULL, made when it is first needed; None stands for all rows.
    """

    table: Table
    active: Callable[[], plc.Column] | None = None
    parent: RowScope | None = None
    known: dict[Expr, Value] = field(default_factory=dict)
    extremes: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.table.num_rows

    @cached_property
    def has_codes(self) -> bool:
        """Whether any strings of the table lie as codes, or will when they are fetched."""
        columns = self.table.columns
        if type(columns) is LateColumns:
            return columns.has_codes
        return any(isinstance(c, Coded) for c in columns.values())

    def where(self, condition: Callable[[], plc.Column]) -> RowScope:
        """Return the scope of the rows, among these, for which a BOOL8 column is TRUE."""
        outer = self.active

        def active() -> plc.Column:
            inner = columns.true_mask(condition())
            return inner if outer is None else columns.both(outer(), inner)

        return RowScope(self.table, active, self, {}, self.extremes)

    def find(self, expr: Expr) -> Value | None:
        """Return what was computed for an expression, here or in a scope of more rows."""
        scope: RowScope | None = self
        while scope is not None:
            if expr in scope.known:
                return scope.known[expr]
            scope = scope.parent
        return None

    def any(self, wrong: plc.Column) -> bool:
        """Whether a BOOL8 column is TRUE in an active row; rows of NULL do not count."""
        if not count_true(wrong):
            return False
        return (
            self.active is None
            or count_true(columns.both(columns.true_mask(wrong), self.active())) > 0
        )


def literal(expr: Literal) -> Constant:
    """Return a literal as a constant; an INTERVAL has no device type, and its kernel reads the literal itself."""
    if expr.type.kind is Kind.INTERVAL:
        return Constant(expr.value, columns.INT64)
    return Constant(physical(expr.value, expr.type), device_type(expr.type))


def operand(value: Value) -> plc.Column | plc.Scalar:
    """Return a value as libcudf's operations take it: a column or a device scalar."""
    return columns.scalar(value.value, value.type) if isinstance(value, Constant) else value


def as_column(value: Value, rows: int) -> plc.Column:
    """Return a value as a column of `rows` rows."""
    return columns.constant(value.value, value.type, rows) if isinstance(value, Constant) else value


def binary(
    left: Value, right: Value, operator: plc.binaryop.BinaryOperator, data_type: plc.DataType
) -> plc.Column:
    """Apply one of libcudf's binary operators to values, not both of them constants."""
    return columns.binary(operand(left), operand(right), operator, data_type)


def is_null_constant(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def integers(value: Value, data_type: plc.DataType | None = None) -> Value:
    """Return the integers behind numbers, dates and truth values, by default in the width they have."""
    if isinstance(value, Constant):
        plain = int(value.value) if isinstance(value.value, bool) else value.value
        return Constant(plain, data_type or integer_type(value.type))
    if value.type().id() == plc.TypeId.DECIMAL128:
        bits = columns.reinterpret(value, columns.HUGE)
    else:
        bits = columns.as_integers(value)
    return bits if data_type is None else columns.cast(bits, data_type)


def integer_type(data_type: plc.DataType) -> plc.DataType:
    """Return the type of the integers behind values of a type."""
    return _INTEGERS.get(data_type.id(), data_type)


_INTEGERS = {
    **{kind: plc.DataType(bits) for kind, bits in SAME_BITS.items()},
    plc.TypeId.DECIMAL128: columns.HUGE,
}


def validity(value: Value, rows: int) -> plc.Column:
    """Return whether each row is not NULL."""
    if isinstance(value, Constant):
        return columns.constant(value.value is not None, columns.BOOL, rows)
    return plc.unary.is_valid(value)


def null(data_type: DataType) -> Constant:
    return Constant(None, device_type(data_type))


def settled(
    expr: Expr,
    scope: RowScope,
    column: plc.Column,
    result: plc.Column,
    usual: plc.Column | None,
    argument: int = 0,
) -> plc.Column:
    """Return `result` with the values that are not NULL and not `usual` computed on the host; None stands for all.

    `expr` is a function or cast of which one argument, usually the first, is `column` and the others are literals.  Rows that are not active are
    left alone, so that they cannot fail.
    """
    if usual is None:
        return result
    odd = columns.negate(columns.true_mask(usual))
    if column.null_count():
        odd = columns.both(odd, plc.unary.is_valid(column))
    if not count_true(odd):
        return result
    if scope.active is not None:
        odd = columns.both(odd, scope.active())
    return recomputed(expr, {argument: column}, result, odd)


def recomputed(
    expr: Expr, arguments: Mapping[int, plc.Column], result: plc.Column, odd: plc.Column
) -> plc.Column:
    """Return `result` with its values where `odd` is TRUE computed on the host, of arguments by their places; the others are literals."""
    rows = plc.stream_compaction.apply_retention_mask(
        plc.Table([columns.sequence(result.size())]), odd
    ).columns()[0]
    if not rows.size():
        return result
    given = plc.Table(list(arguments.values()))
    some = plc.copying.gather(given, rows, tables.DONT_CHECK).columns()
    values = _on_the_host(expr, dict(zip(arguments, some, strict=True)), rows.size())
    return plc.copying.scatter(plc.Table([values]), rows, plc.Table([result])).columns()[0]


def _on_the_host(expr: Expr, arguments: Mapping[int, plc.Column], rows: int) -> plc.Column:
    columns = {place: new_column("value", expr.children[place].type) for place in arguments}
    held = Table({columns[place].id: values for place, values in arguments.items()}, rows)
    named = tuple(columns.values())
    children = [
        ColumnRef(columns[place]) if place in columns else child
        for place, child in enumerate(expr.children)
    ]
    again, given = expr.with_children(children), tables.to_arrow(held, named)
    return to_device(host_backend.evaluate(_what(expr), again, named, given), expr.type)


def _what(expr: Expr) -> str:
    if isinstance(expr, Call | PythonCall):
        return f"{expr.function if isinstance(expr, Call) else expr.function.name}()"
    return f"CAST AS {expr.type}" if isinstance(expr, Cast) else type(expr).__name__
