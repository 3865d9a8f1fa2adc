"""Arguments of scalar functions that have to be constants, and what these may be, as DuckDB checks them before any row."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Sequence

from ...errors import InvalidQuery, OutOfRange, Span
from ..casts import coerce
from ..expr import Call, Cast, Expr, Literal
from ..literals import convert
from ..types import BIGINT, HUGEINT, MAX_DECIMAL_DIGITS, UBIGINT, DataType, decimal
from . import constants
from .row import FunctionRow

_FIRST = {  # position of the first argument that has to be a constant
    "strftime": 1,
    "strptime": 1,
    "try_strptime": 1,
    "regexp_matches": 2,
    "regexp_full_match": 2,
    "regexp_replace": 3,
    "regexp_extract": 2,
    "regexp_extract_all": 2,
    "string_split_regex": 2,
}
_OPTIONS = {
    "regexp_matches": 2,
    "regexp_full_match": 2,
    "regexp_replace": 3,
    "regexp_extract": 3,
    "regexp_extract_all": 3,
    "string_split_regex": 2,
}
# SQL name -> the arguments that are looked at while a query is bound, where they are constants
_MOST = 10_000
_KNOWN = {
    **{name: range(first, _MOST) for name, first in _FIRST.items()},
    "strftime": range(_MOST),  # of which the format may come first
    **dict.fromkeys(("round", "round_even", "roundbankers", "trunc", "ceil", "floor"), range(1, 2)),
    **dict.fromkeys(("date_trunc", "datetrunc", "date_part", "datepart"), range(1)),
    **dict.fromkeys(("date_diff", "datediff", "date_sub", "datesub"), range(1)),
    **dict.fromkeys(("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"), range(1, _MOST)),
    **dict.fromkeys(("struct_extract", "struct_extract_at", "array_extract", "list_extract", "list_element"), range(1, 2)),
    **dict.fromkeys(("json_transform", "from_json", "json_transform_strict", "from_json_strict"), range(1, 2)),
    **dict.fromkeys(("json_extract", "json_extract_string", "json_extract_path", "json_extract_path_text"), range(1, 2)),
    "array_length": range(1, 2),
    "current_schemas": range(1),
    "decimal_division": range(2, 3),
}  # fmt: skip
REGULAR_EXPRESSIONS = frozenset(_OPTIONS)
_GROUP = 2  # of regexp_extract
LARGEST_GROUP = 9
_NO_GROUP = -1


def places_of_constants(name: str) -> Container[int]:
    """Return the places of those arguments of a scalar function that have to be constants, or decide about its type if they are."""
    return _KNOWN.get(name.lower(), ())


def checked(call: Call) -> Call:
    """Return a call whose constant arguments are constants of allowed values."""
    first = _FIRST.get(call.function, len(call.args))
    if first < len(call.args):
        rest = tuple(constant(arg) for arg in call.args[first:])
        call = dataclasses.replace(call, args=(*call.args[:first], *rest))
    for arg in call.args[first:]:
        if not isinstance(arg, Literal):
            raise InvalidQuery(f"This argument of {call.function} has to be a constant.", arg.span)
    if call.function not in _OPTIONS:
        return call
    _check_options(call.function, call.args[_OPTIONS[call.function] :])
    if call.function == "regexp_extract":
        return _with_group(call, call.args[_GROUP:])
    return call


def constant(expr: Expr) -> Expr:
    """Return a cast of a constant as a constant: 2::TINYINT is 2."""
    if isinstance(expr, Cast) and not expr.safe:
        operand = constant(expr.operand)
        if isinstance(operand, Literal):
            return Literal(convert(operand.value, operand.type, expr.type), expr.type, expr.span)
    return expr


def _check_options(function: str, rest: Sequence[Expr]) -> None:
    for options in rest:
        assert isinstance(options, Literal)
        if options.value is None:
            raise InvalidQuery(f"The options of {function} must not be NULL.", options.span)
        assert isinstance(options.value, str)
        for letter in options.value:
            if letter not in "cilmnpsg \t\n":
                raise InvalidQuery(
                    f"Unrecognized regular expression option '{letter}': use c, i, l, m, n, p, s or g.",
                    options.span,
                )
        if "g" in options.value and function != "regexp_replace":
            raise InvalidQuery(
                "The option 'g' (replace every match) is for regexp_replace alone.", options.span
            )


def _with_group(call: Call, rest: Sequence[Expr]) -> Call:
    """The group NULL is one that no pattern has: '' for what is not NULL, after the pattern is read."""
    if not rest:
        return call
    group = rest[0]
    assert isinstance(group, Literal)
    if group.value is None:
        nowhere = dataclasses.replace(group, value=_NO_GROUP)
        return dataclasses.replace(
            call, args=(*call.args[:_GROUP], nowhere, *call.args[_GROUP + 1 :])
        )
    assert isinstance(group.value, int)
    if not 0 <= group.value <= LARGEST_GROUP:
        raise OutOfRange(
            f"The group of regexp_extract has to be between 0 and {LARGEST_GROUP}.", group.span
        )
    return call


def check_constants(row: FunctionRow, args: tuple[Expr, ...]) -> None:
    for place, word in constants(row.signature).items():
        given, is_fraction = args[place], word == "fraction"
        if not isinstance(given, Literal) or (is_fraction and given.value is None):
            raise InvalidQuery(f"The {word} of {row.name} has to be a constant.", given.span)
        if is_fraction and not (isinstance(given.value, float) and 0 <= given.value <= 1):
            raise InvalidQuery(f"The fraction of {row.name} has to be between 0 and 1.", given.span)


def signed_of(kind: DataType) -> DataType:
    """Return the type in which integers without a sign are rounded; others stay."""
    if kind.is_signed_integer:
        return kind
    return HUGEINT if kind == UBIGINT else BIGINT


def rounded(name: str, args: Sequence[Expr], result: DataType, span: Span | None) -> Expr:
    """Return the call with typed arguments; what has no such digits stays as it is, decimals take their new scale."""
    number, *written = args
    digits = [constant(d) for d in written]
    free = name == "round_even" and number.type.is_whole
    if digits and number.type.is_decimal and not (free or isinstance(digits[0], Literal)):
        family = "HUGEINT" if number.type.is_whole else "DECIMAL"
        raise InvalidQuery(
            f"The digits of {name} have to be a constant for a {family}.", digits[0].span
        )
    if not number.type.is_decimal or number.type.is_whole:
        keep = number.type.is_whole and (not digits or _constant_digits(digits[0]) >= 0)
        return number if keep else Call(name, (number, *digits), result, span)
    count = _constant_digits(digits[0]) if digits else 0
    if name == "round" and not number.type.scale and -number.type.precision <= count < 0:
        wider = decimal(min(number.type.precision + 1, MAX_DECIMAL_DIGITS), 0)
        return Call(name, (coerce(number, wider), *digits), wider, span)
    if count >= number.type.scale:
        return number
    result = decimal(number.type.precision, max(0, count))
    return Call(name, (number, *digits), result, span)


def _constant_digits(digits: Expr) -> int:
    """Return a literal number of digits, -1 for one that is not known."""
    return digits.value if isinstance(digits, Literal) and isinstance(digits.value, int) else -1
