"""What + - * / % mean for dates, intervals, text, decimals that no decimal holds together, and a divisor of 0."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TypeMismatch
from ..casts import coerce, is_text_literal, literal_types
from ..coercion import loses_digits
from ..dialect import dialect
from ..expr import Call, Case, Expr, Literal
from ..temporal.ticks import PLAIN
from ..types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, NULL, DataType, Kind
from .row import FunctionRow

_OF_BITS = ("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
_OPERATORS = ("add", "sub", "mul", "div", "int_div", "mod")
# (kinds of the two sides, N for a number) -> function and whether to swap the arguments.
_D, _T, _C, _I, _N = "DATE", "TIMESTAMP", "TIME", "INTERVAL", "number"
_TEMPORAL: dict[tuple[str, str, str], tuple[str, bool]] = {
    ("add", _D, _I): ("add_interval", False),
    ("add", _I, _D): ("add_interval", True),
    ("add", _T, _I): ("add_interval", False),
    ("add", _I, _T): ("add_interval", True),
    ("add", _C, _I): ("add_interval_to_time", False),
    ("add", _I, _C): ("add_interval_to_time", True),
    ("sub", _C, _I): ("sub_interval_of_time", False),
    ("add", _D, _C): ("at_time", False),
    ("add", _C, _D): ("at_time", True),
    ("add", _D, _N): ("add_days", False),
    ("add", _N, _D): ("add_days", True),
    ("add", _I, _I): ("add_intervals", False),
    ("sub", _D, _I): ("sub_interval", False),
    ("sub", _T, _I): ("sub_interval", False),
    ("sub", _D, _N): ("sub_days", False),
    ("sub", _D, _D): ("date_minus_date", False),
    ("sub", _T, _T): ("timestamp_minus_timestamp", False),
    ("sub", _T, _D): ("timestamp_minus_timestamp", False),
    ("sub", _D, _T): ("timestamp_minus_timestamp", False),
    ("sub", _I, _I): ("sub_intervals", False),
    ("mul", _I, _N): ("mul_interval", False),
    ("mul", _N, _I): ("mul_interval", True),
    ("div", _I, _N): ("div_interval", False),
}
# What a text means before or behind what has no number
_TEXTS = {
    ("add", _T, "before"): INTERVAL,
    ("add", _T, "behind"): INTERVAL,
    ("sub", _I, "behind"): INTERVAL,
    ("sub", _C, "behind"): INTERVAL,
    ("div", _I, "behind"): DOUBLE,
}


def arithmetic(name: str, left: Expr, right: Expr) -> tuple[str, Sequence[Expr]]:
    """Return the function that an operator stands for with these operands, and its arguments.

    DATE + INTERVAL -> add_interval, INTERVAL + DATE -> add_interval with the operands swapped, x * '2' -> x * 2.
    """
    if name in _OF_BITS:
        left, right = _number(left, right, name), _number(right, left, name, behind=True)
    if name in _OPERATORS:
        left, right = _number(left, right, name), _number(right, left, name, behind=True)
        if name == "sub" and is_text_literal(left) and right.type.kind is Kind.DATE:
            left = coerce(left, DATE)
        sides = (name, *_sides((left, right)))
        if sides in _TEMPORAL:
            function, swap = _TEMPORAL[sides]
            return function, (right, left) if swap else (left, right)
    if name == "mod" and loses_digits(*literal_types((left, right))):
        name = "mod_of_decimals"
    return name, (left, right)


def _number(expr: Expr, other: Expr, name: str, behind: bool = False) -> Expr:
    """Return a text literal beside a number as a number; a DOUBLE where the other is neither integer nor FLOAT.

    Raises `TypeMismatch` where the text might as well be a date or an interval, as in DuckDB.
    """
    if not is_text_literal(expr):
        return expr
    if other.type == NULL and name != "mul" and (behind or name != "div"):
        return Literal(None, DOUBLE if name == "div" else BIGINT, expr.span)
    side = "behind" if behind else "before"
    meant = _TEXTS.get((name, _side(other.type.kind), side))
    if meant is not None:
        return coerce(expr, meant)
    if not other.type.is_numeric:
        return expr
    if _is_guess(name, other.type, behind):
        raise TypeMismatch(
            f"A text beside {other.type} may have several types here: cast it to the one it has.",
            expr.span,
        )
    whole = other.type.is_whole and name != "div"
    kept = whole or other.type.kind is Kind.FLOAT
    return coerce(expr, other.type if kept else DOUBLE)


def _is_guess(name: str, number: DataType, behind: bool) -> bool:
    """Whether a text before or behind a number has several meanings: '2' + 1 of days, '2' * 1.5 and '2' / 2 of an interval."""
    match name:
        case "add":
            return number == INTEGER
        case "sub":
            return number == INTEGER and not behind
        case "mul":
            return number in (BIGINT, DOUBLE) or (
                number.kind is Kind.DECIMAL and not number.is_whole
            )
        case "div":
            return number.kind is not Kind.FLOAT and not behind
        case "shift_left" | "shift_right":  # of bits
            return number == INTEGER and not behind
    return False


def _sides(args: Sequence[Expr]) -> tuple[str, str]:
    """Name the sides of an operator for `_TEMPORAL`; NULL counts as what the other side goes with."""
    names = [_N if a.type.is_numeric else _side(a.type.kind) for a in args]
    partner = {_D: _N, _T: _I, _I: _I}
    if names[0] == "NULL":
        names[0] = partner.get(names[1], names[0])
    if names[1] == "NULL":
        names[1] = partner.get(names[0], names[1])
    return names[0], names[1]


def _side(kind: Kind) -> str:
    return _T if kind in PLAIN else kind.name


def divided(row: FunctionRow, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the arguments of a function, those of a division by b with CASE WHEN b = 0 THEN NULL ELSE b END where 0 gives NULL."""
    if dialect().zero_fails or not row.by_zero:
        return args
    left, right = args
    if row.by_zero == "error if exact" and right.type.is_float:
        return args
    is_zero = Call("eq", (right, coerce(Literal(0, INTEGER), right.type)), BOOLEAN)
    null = Literal(None, right.type)
    return left, Case((is_zero,), (null,), right, right.type, right.span)
