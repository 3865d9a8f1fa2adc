"""Constants of the SQL text: numbers, strings, intervals, parameters."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import infer
from fuseline.plan.expr import Expr, Interval, Literal, Value
from fuseline.plan.functions.dates import PARTS, UNITS
from fuseline.plan.literals import number
from fuseline.plan.shapes.guards import computed
from fuseline.plan.text.interval_reading import interval, parse_interval, spread
from fuseline.plan.text.number_text import NoSuchValue
from fuseline.plan.types import BIGINT, BIT, BLOB, BOOLEAN, DOUBLE, INTERVAL, VARCHAR, Kind
from fuseline.sql.parsing.pieces import span_of
from fuseline.sql.parsing.text_shape import SlotNode
from fuseline.sql.parsing.unread import use

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuseline.sql.binding.scope import Scope

_PLURALS = {"century": "centuries", "millennium": "millennia"}  # the others add an s


def bind_literal(node: exp.Literal) -> Literal:
    """Return a number or string.  sqlglot writes `.5` anew as `0.5`, which then has no place in the text."""
    place = span_of(node)
    if isinstance(node, SlotNode):
        return node.slot(place)
    if node.is_string:
        return Literal(node.this, VARCHAR, place)
    written = place is not None or not node.name.startswith("0.")
    return number(node.name, leading_zero=written, span=place)


def bind_text(node: exp.Expr) -> Literal:
    """Return a dollar-quoted or escaped string."""
    return Literal(node.name, VARCHAR, span_of(node))


def bind_digits(node: exp.HexString) -> Literal:
    """Return the bytes of X'AB12'."""
    place = span_of(node)
    try:
        return Literal(bytes.fromhex(node.name), BLOB, place)
    except ValueError:
        raise err.ParseError(
            f"'{node.name}' is no BLOB: it is written X'AB12', with two hexadecimal digits for each byte.",
            place,
        ) from None


def bind_bits(node: exp.BitString) -> Expr:
    """Return the bits of B'101'."""
    return infer.cast(Literal(node.name, VARCHAR, span_of(node)), BIT)


def bind_boolean(node: exp.Boolean) -> Literal:
    return Literal(bool(node.this), BOOLEAN, span_of(node))


def bind_parameter(node: exp.Expr, scope: Scope) -> Expr:
    """Return the value given for `?`, `$1` or `$name`, typed as it is in Python, or the column of such values."""
    place = span_of(node)
    if isinstance(node.this, exp.Expr):
        use(node.this)
    return scope.parameters.expression(parameter_key(node), place)


def parameter_key(node: exp.Expr) -> int | str:
    """Return the number of `?` and `$1`, or the name of `$name`."""
    return int(node.name) if node.name.isdigit() else node.name


def bind_interval(node: exp.Interval, scope: Scope) -> Expr:
    """Return INTERVAL '3' month, INTERVAL 3 DAY, INTERVAL '1 day 2 hours' or INTERVAL (x) unit."""
    place = span_of(node)
    unit = node.args.get("unit")
    value = node.this
    if unit is not None:
        use(unit)
    if not isinstance(value, exp.Literal):
        return _computed_interval(value, unit, scope)
    use(value)
    if isinstance(value, SlotNode):
        return _interval_of_slot(value.slot(place), unit, bool(node.args.get("fraction_in_string")))
    if unit is None:
        return _constant(lambda: parse_interval(value.name), value.name, place)
    name = _unit(unit, place)
    if node.args.get("fraction_in_string"):
        return _constant(lambda: spread(Decimal(value.name), name), value.name, place)
    return _constant(lambda: interval(Decimal(value.name), name), value.name, place)


def _interval_of_slot(given: Literal, unit: exp.Expr | None, is_spread: bool) -> Literal:
    """Return the interval of a literal that other texts have another value of."""
    name = None if unit is None else _unit(unit, given.span)
    try:
        return computed(_interval, given, name, is_spread, data_type=INTERVAL, span=given.span)
    except (NoSuchValue, ArithmeticError):
        raise _no_interval(str(given.value), given.span) from None


def _interval(value: Value, unit: str | None, is_spread: bool) -> Interval:
    if unit is None:
        return parse_interval(str(value))
    assert isinstance(value, int | Decimal | float | str)
    return (spread if is_spread else interval)(Decimal(str(value)), unit)


def _unit(node: exp.Expr, place: err.Span | None) -> str:
    """Return the unit's canonical name; a span of two units is refused as in DuckDB."""
    written = node.name.lower()
    known = PARTS.get(written)
    if known not in UNITS:
        raise err.UnknownName(
            f'There is no interval unit "{written or node.sql()}".{err.nearest(written, UNITS)}',
            span_of(node) or place,
        )
    return known


def _constant(read: Callable[[], Interval], text: str, place: err.Span | None) -> Literal:
    try:
        return Literal(read(), INTERVAL, place)
    except (NoSuchValue, ArithmeticError):
        raise _no_interval(text, place) from None


def _no_interval(text: str, place: err.Span | None) -> err.ConversionError:
    return err.ConversionError(
        f"'{text}' cannot be read as INTERVAL: it is written INTERVAL '3' month or '3 months 2 days'.",
        place,
    )


def _computed_interval(node: exp.Expr, unit: exp.Expr | None, scope: Scope) -> Expr:
    """INTERVAL (x) day -> to_days(x): units above the second take whole numbers, cut as in DuckDB."""
    value = scope.bind(node)
    place = span_of(node)
    if unit is None:
        return infer.cast(value, INTERVAL, span=place)
    name = _unit(unit, place)
    if isinstance(value, Literal) and isinstance(value.value, int | Decimal):
        number = Decimal(value.value)
        return _constant(lambda: interval(number, name), str(number), place)
    function = f"to_{_PLURALS.get(name, name + 's')}"
    if value.type.kind is Kind.VARCHAR:
        value = infer.cast(value, DOUBLE)
    if name not in ("second", "millisecond") and not value.type.is_integer:
        value = infer.cast(infer.call("trunc", [value], place), BIGINT, span=place)
    return infer.call(function, [value], place)
