"""Expression: all methods together, and the ways to make one: `col`, `lit`, `call`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Concatenate, NoReturn, ParamSpec, Self, TypeVar

from ...errors import InvalidQuery, shown
from ...fence import fenced
from ...plan import infer
from ...plan.expr import Expr
from ...plan.types import DataType, Kind
from ...records import dataclass
from ..api_hints import missing
from .accessors import ListMethods, MomentMethods, StructMethods, TextMethods
from .duckdb_methods import DuckDBMethods
from .operator_methods import AggregateMethods, OperatorMethods
from .selected import all_but, by_names, by_pattern, by_types, is_pattern
from .unbound import Call, Operand, Resolve, Unbound, call_name, operand
from .window_methods import WindowMethods

Arguments = ParamSpec("Arguments")
R = TypeVar("R")


@fenced
@dataclass(frozen=True, eq=False, repr=False)
class Expression(OperatorMethods, DuckDBMethods, AggregateMethods, WindowMethods):
    """An expression without a table: `bind` types it once the columns are known; `name` is its output name.

    `==`, `<` and so on build comparisons, `&`, `|`, `~` are AND, OR, NOT; plain Python values become literals.

    >>> (col("price") * (1 - col("discount"))).alias("net").name
    'net'
    """

    @property
    def str(self) -> TextMethods:
        """Functions of text."""
        return TextMethods(self)

    @property
    def dt(self) -> MomentMethods:
        """Functions of dates and timestamps."""
        return MomentMethods(self)

    @property
    def list(self) -> ListMethods:
        """Functions of lists."""
        return ListMethods(self)

    @property
    def struct(self) -> StructMethods:
        """Fields of structs."""
        return StructMethods(self)

    def pipe(
        self,
        function: Callable[Concatenate[Self, Arguments], R],
        *args: Arguments.args,
        **named: Arguments.kwargs,
    ) -> R:
        """Return what a function makes of the expression and other arguments."""
        return function(self, *args, **named)

    def __getattr__(self, name: builtins.str) -> NoReturn:
        """Say what a method of other libraries is called here."""
        raise missing(Expression, name)

    def __repr__(self) -> builtins.str:
        return f"<Expression {self.name}>"

    def _new(self, bind: Callable[[Resolve], Expr], name: builtins.str) -> Expression:
        return Expression(bind, name)


@fenced
def col(name: str, *more: str) -> Expression:
    """Return the column of that name (case-insensitive, as in SQL); of several names or a pattern (^...$) one after the other.

    >>> from fuseline import connect
    >>> frame = connect(device="cpu").sql("SELECT 1 AS a, 2 AS b, 3 AS c")
    >>> frame.with_columns(col("a", "b") * 10).fetchall()
    [(10, 20, 3)]
    """
    if more:
        return _selected(by_names((name, *more)))
    if not isinstance(name, str):
        raise InvalidQuery(
            f"A column is named by a string, not by {shown(name)}: lit(...) is a constant."
        )
    return _selected(by_pattern(name)) if is_pattern(name) else _selected(name)


@fenced
def all_() -> Expression:
    """Return every column, as `*` does in SQL."""
    return exclude()


@fenced
def exclude(*names: str) -> Expression:
    """Return every column but those of these names or patterns (^...$)."""
    return _selected(all_but(names))


@fenced
def numeric() -> Expression:
    """Return every column of numbers."""
    return _selected(by_types(["numeric"], lambda data_type: data_type.is_numeric))


@fenced
def of_type(*types: DataType | str) -> Expression:
    """Return every column of some types: `of_type("varchar", "date")`; "decimal" is one of any precision."""
    if not types or not all(isinstance(t, DataType | builtins.str) for t in types):
        raise InvalidQuery('of_type() takes names of types, such as "varchar".')
    asked = [t if isinstance(t, DataType) else infer.parse_type(t) for t in types]
    decimals = any(isinstance(t, str) and t.lower() == "decimal" for t in types)

    def matches(data_type: DataType) -> bool:
        is_decimal = data_type.kind is Kind.DECIMAL and not data_type.name
        return data_type in asked or (decimals and is_decimal)

    return _selected(by_types([f"{t}" for t in types], matches))


def _selected(name: str) -> Expression:
    return Expression(lambda resolve: resolve(name), f"{name}")


@fenced
def lit(value: Operand) -> Expression:
    """Return a constant: None, bool, int, float, Decimal, str, date, datetime, timedelta, a numpy scalar, a list or a dictionary of these."""
    return plain(operand(value))


def plain(made: Unbound) -> Expression:
    """Return an expression with all methods."""
    return made if isinstance(made, Expression) else Expression(made.bind, made.name)


def as_expression(value: Operand) -> Expression:
    """Return an expression as it is and anything else as a constant."""
    return plain(operand(value))


def as_column(value: Operand) -> Expression:
    """Like `as_expression`, but a string names a column."""
    return col(value) if isinstance(value, str) else as_expression(value)


@fenced
def call(function: str, *args: Operand, how: Call = infer.call) -> Expression:
    """Return a scalar function or operator over expressions and constants; `how` binds it."""
    operands = [operand(a) for a in args]

    def bind(resolve: Resolve) -> Expr:
        return how(function, [o.bind(resolve) for o in operands])

    return Expression(bind, call_name(function, [o.name for o in operands]))
