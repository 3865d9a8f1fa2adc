"""What all methods of expressions share: an expression that knows no table yet, and others that are made of it.

Names of columns that dataframe calls make without an alias: those of the same SQL, for operators and calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ...errors import FuselineError, InvalidQuery, WrongArguments, check_text, shown
from ...plan import infer
from ...plan.composed.nested_literals import plain
from ...plan.composed.nested_values import list_value, struct_pack
from ...plan.expr import Expr, SortKey, Value
from ...plan.functions.operators import OPERATORS
from ...plan.text.expr_text import literal_text
from ...records import dataclass

if TYPE_CHECKING:
    from .expression import Expression


Resolve = Callable[[str], Expr]
Call = Callable[[str, Sequence[Expr]], Expr]


class NumPyScalar(Protocol):
    """A scalar or an array of no dimension."""

    @property
    def dtype(self) -> object: ...

    def item(self) -> object: ...


T = TypeVar("T")

# What may stand where an expression may: anything but an expression becomes a constant, or is refused
Operand: TypeAlias = (
    "Unbound | Value | timedelta | NumPyScalar | list[Any] | tuple[Any, ...] | dict[str, Any]"
)


@dataclass(frozen=True, eq=False)
class Unbound:
    """`bind` types the expression once the columns are known; `name` is its output name, or `rename_` makes one of the first column read."""

    bind: Callable[[Resolve], Expr]
    name: str
    descending: bool = False
    nulls_first_: bool | None = None
    rename_: Callable[[str], str] | None = None

    def _new(self, bind: Callable[[Resolve], Expr], name: str) -> Expression:
        """Return a plain expression: the class that has all methods says which."""
        raise NotImplementedError

    def _made(self, build: Callable[[list[Expr]], Expr], name: str, *others: Operand) -> Expression:
        """Return what `build` makes of this expression and others."""
        parts = [self, *map(operand, others)]
        return self._new(lambda resolve: build([p.bind(resolve) for p in parts]), name)

    def _call(self, function: str, *others: Operand, how: Call = infer.call) -> Expression:
        """Return a scalar function of this expression and others."""
        parts = [operand(o) for o in others]
        name = call_name(function, [self.name, *(p.name for p in parts)])
        return self._made(lambda bound: how(function, bound), name, *parts)


def operand(value: Operand) -> Unbound:
    """Return an expression as it is and anything else as a constant."""
    if isinstance(value, Unbound):
        return value
    value = plain(value)
    if isinstance(value, list | tuple | dict):
        return _nested(value)
    literal = infer.literal(value)
    return Unbound(lambda _: literal, literal_text(literal))


def _nested(value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> Unbound:
    """Return a list of values, or a struct of those of a dictionary, whose parts may be expressions."""
    is_struct = isinstance(value, dict)
    names: list[str] = [*value] if is_struct else []
    if is_struct and (not names or not all(isinstance(name, str) for name in names)):
        raise InvalidQuery("A STRUCT has at least one field, and fields are named by strings.")
    for name in names:
        check_text(name, "The name of a field")
    parts = [operand(part) for part in (value.values() if isinstance(value, dict) else value)]

    def bind(resolve: Resolve) -> Expr:
        bound = [part.bind(resolve) for part in parts]
        return struct_pack(names, bound, None) if is_struct else list_value(bound, None)

    if is_struct:
        listed = ", ".join(f"{n} := {p.name}" for n, p in zip(names, parts, strict=True))
        return Unbound(bind, f"struct_pack({listed})")
    return Unbound(bind, f"list_value({', '.join(part.name for part in parts)})")


def column_operand(value: Operand) -> Unbound:
    """Like `operand`, but a string names a column."""
    if isinstance(value, str):
        return Unbound(lambda resolve: resolve(value), value)
    return operand(value)


def column_operands(values: object) -> list[Unbound]:
    """Return one column or a list of them as expressions; none for None."""
    if values is None:
        return []
    if isinstance(values, list | tuple):
        return [column_operand(v) for v in values]
    if isinstance(values, Iterable) and not isinstance(values, str | Unbound):
        raise InvalidQuery(
            f"Columns are named by strings or expressions, or a list of them, not by {shown(values)}."
        )
    return [column_operand(values)]  # type: ignore[arg-type]


def sort_key(expression: Unbound, bound: Expr) -> SortKey:
    """Return one bound sort key; NULLs come last unless it says otherwise."""
    return SortKey(bound, expression.descending, bool(expression.nulls_first_))


def made_by(function: Callable[..., T], what: str, *args: object) -> T:
    """Return what a function of the caller makes; raises `WrongArguments` for what it raises, which is no fault of this package."""
    try:
        return function(*args)
    except FuselineError:
        raise
    except Exception as error:
        raise WrongArguments(
            f"The function that {what} was given raised {type(error).__name__}: {error}."
        ) from error


_SIGNS = {row.name: row.sign.upper() for row in OPERATORS} | {"ne": "!=", "like": "~~"}


def call_name(function: str, args: list[str]) -> str:
    """Return the name of a call: `add` of a and 1 is (a + 1), `upper` of a is upper(a)."""
    if len(args) == 2 and _SIGNS.get(function):
        return f"({args[0]} {_SIGNS[function]} {args[1]})"
    match function:
        case "neg":
            return f"(-({args[0]}))"
        case "not":
            return f"(NOT {args[0]})"
        case "is_null" | "is_not_null":
            return f"({args[0]} {function.replace('_', ' ').upper()})"
    return f"{function}({', '.join(args)})"
