"""strftime and strptime, with the specifiers that mean the same to libcudf and DuckDB, and text as values; the host computes other rows.

A parser returns values and in which rows they are right.  What libcudf makes of a malformed string is undefined, so that a string
counts as understood only after a check: of its characters, or by printing what was read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pylibcudf as plc

from ....errors import ExecutionError
from ....plan.arrow.arrow_arrays import array_from
from ....plan.expr import Call, Cast, Literal
from ....plan.functions.strptime import DAY_NAMES, MONTH_NAMES, SHORT_DAYS, SHORT_MONTHS, specifiers
from ....plan.types import DataType, Kind
from .. import columns as col
from ..table import count_true, device_type
from .kernels_print import in_four_digit_years
from .values import Constant, Kernel, RowScope, Value, as_column, binary, integers, settled

Op = plc.binaryop.BinaryOperator
Parsed = tuple[plc.Column, plc.Column]

_NUMBER = r"^[+-]?[0-9]*\.?[0-9]+$"
_TIMESTAMPS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%6f",
    "%Y-%m-%d %H:%M:%S.%3f",
    "%Y-%m-%d %H:%M:%S.%9f",
)
_INT64_DIGITS = 18
_HUGE_DIGITS = 38
# A quotient of numbers that a float holds exactly is rounded once: mantissas and powers of ten up to these.
_EXACT = {Kind.DOUBLE: (1 << 53, 22), Kind.FLOAT: (1 << 24, 10)}


def parsed(expr: Cast, scope: RowScope, column: plc.Column) -> plc.Column:
    """Return strings cast to another type."""
    target = expr.type
    if column.null_count() == column.size():
        return col.null_column(column.size(), device_type(target))
    result, usual = _parser(target)(column, target)
    return settled(expr, scope, column, result, usual)


def _parser(target: DataType) -> Callable[[plc.Column, DataType], Parsed]:
    match target.kind:
        case Kind.BOOLEAN:
            return _booleans
        case Kind.FLOAT | Kind.DOUBLE:
            return _floats
        case Kind.DECIMAL:
            return _decimals
        case Kind.DATE:
            return _dates
        case _ if target.is_ticks:
            return _timestamps
    return _integers


def _booleans(text: plc.Column, target: DataType) -> Parsed:
    true, false = (
        binary(text, Constant(w, col.TEXT), Op.EQUAL, col.BOOL) for w in ("true", "false")
    )
    return true, binary(true, false, Op.LOGICAL_OR, col.BOOL)


def _integers(text: plc.Column, target: DataType) -> Parsed:
    convert = plc.strings.convert.convert_integers
    usual = col.true_mask(convert.is_integer(text, col.INT64))
    values = convert.to_integers(text, col.INT64)
    low, high = target.integer_range
    if low > -(1 << 63):
        usual = col.both(usual, _at_least(values, low))
    if high < (1 << 63) - 1:
        usual = col.both(usual, _at_most(values, high))
    return col.cast(values, device_type(target)), usual


def _decimals(text: plc.Column, target: DataType) -> Parsed:
    """Digits that need no rounding and cannot overflow the type that they are read as."""
    digits = _HUGE_DIGITS if target.is_wide_decimal else _INT64_DIGITS
    usual = col.both(_is_number(text), _at_most(_decimal_places(text), target.scale))
    lengths = plc.strings.attributes.count_characters(text)
    usual = col.both(usual, _at_most(lengths, digits - target.scale))
    values = plc.strings.convert.convert_fixed_point.to_fixed_point(text, device_type(target))
    if target.precision < digits:
        unscaled = as_column(integers(values), text.size())
        low, high = target.integer_range
        usual = col.both(usual, col.both(_at_least(unscaled, low), _at_most(unscaled, high)))
    return values, usual


def _floats(text: plc.Column, target: DataType) -> Parsed:
    """Digits divided by a power of ten, where both are exact; zeros with a sign are unusual."""
    largest, power = _EXACT[target.kind]
    places = _decimal_places(text)
    lengths = plc.strings.attributes.count_characters(text)
    usual = col.both(_is_number(text), _at_most(lengths, _INT64_DIGITS))
    usual = col.both(usual, _at_most(places, power))
    digits = plc.strings.replace.replace(text, col.scalar(".", col.TEXT), col.scalar("", col.TEXT))
    mantissas = plc.strings.convert.convert_integers.to_integers(digits, col.INT64)
    usual = col.both(usual, col.both(_at_least(mantissas, -largest), _at_most(mantissas, largest)))
    zero = binary(mantissas, Constant(0, col.INT64), Op.EQUAL, col.BOOL)
    signed = plc.strings.find.starts_with(text, col.scalar("-", col.TEXT))
    usual = col.both(usual, col.negate(col.both(col.true_mask(zero), col.true_mask(signed))))
    places = binary(places, Constant(0, col.INT32), Op.NULL_MAX, col.INT32)
    places = binary(places, Constant(power, col.INT32), Op.NULL_MIN, col.INT32)
    unit = plc.copying.gather(
        plc.Table([_powers_of_ten()]), places, plc.copying.OutOfBoundsPolicy.DONT_CHECK
    ).columns()[0]
    values = binary(col.cast(mantissas, col.FLOAT64), unit, Op.DIV, col.FLOAT64)
    return col.cast(values, device_type(target)), usual


@functools.cache
def _powers_of_ten() -> plc.Column:
    return plc.Column.from_arrow(array_from([10.0**i for i in range(_EXACT[Kind.DOUBLE][1] + 1)]))


def _is_number(text: plc.Column) -> plc.Column:
    flags = plc.strings.regex_flags.RegexFlags.DEFAULT
    program = plc.strings.regex_program.RegexProgram.create(_NUMBER, flags)
    return col.true_mask(plc.strings.contains.contains_re(text, program))


def _decimal_places(text: plc.Column) -> plc.Column:
    """Return how many characters come after the point, as INT32 without NULL; 0 without a point."""
    lengths = plc.strings.attributes.count_characters(text)
    points = plc.strings.find.find(text, col.scalar(".", col.TEXT))
    behind = binary(lengths, points, Op.SUB, col.INT32)
    behind = binary(behind, Constant(1, col.INT32), Op.SUB, col.INT32)
    has_point = col.true_mask(binary(points, Constant(0, col.INT32), Op.GREATER_EQUAL, col.BOOL))
    places = col.select(has_point, behind, col.scalar(0, col.INT32))
    return (
        plc.replace.replace_nulls(places, col.scalar(0, col.INT32))
        if places.null_count()
        else places
    )


def _at_most(values: plc.Column, limit: int) -> plc.Column:
    return col.true_mask(binary(values, Constant(limit, values.type()), Op.LESS_EQUAL, col.BOOL))


def _at_least(values: plc.Column, limit: int) -> plc.Column:
    return col.true_mask(binary(values, Constant(limit, values.type()), Op.GREATER_EQUAL, col.BOOL))


def _dates(text: plc.Column, target: DataType) -> Parsed:
    return read_by(text, "%Y-%m-%d", device_type(target))


def _timestamps(text: plc.Column, target: DataType) -> Parsed:
    """One layout after the other, as long as there are strings that fit none."""
    data_type = device_type(target)
    wanted = text.size() - text.null_count()
    result, usual = read_by(text, _TIMESTAMPS[0], data_type)
    for layout in _TIMESTAMPS[1:]:
        if count_true(usual) == wanted:
            break
        values, fits = read_by(text, layout, data_type)
        result = col.select(fits, values, result)
        usual = binary(usual, fits, Op.LOGICAL_OR, col.BOOL)
    return result, usual


def read_by(text: plc.Column, layout: str, data_type: plc.DataType) -> Parsed:
    """Read dates or timestamps by a layout of libcudf; right are those that print as they were written."""
    convert = plc.strings.convert.convert_datetime
    values = convert.to_timestamps(text, data_type, layout)
    again = convert.from_timestamps(values, layout, col.empty(col.TEXT))
    return values, col.true_mask(binary(again, text, Op.EQUAL, col.BOOL))


_FRACTIONS = {"f": "6f", "g": "3f", "n": "9f"}
_NAMED = ("p", "a", "A", "b", "B", "h")
_WRITTEN = {
    **{letter: letter for letter in "YmdHIMSjyuwUWVGpaAbB"},
    **_FRACTIONS,
    "h": "b",
}
_READ = {**{letter: letter for letter in "YmdHMS"}, "f": "6f"}


def strftime(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    layout = _translated(call, _WRITTEN)
    assert layout is not None
    text, letters = layout
    names = _names() if any(letter in _NAMED for letter in letters) else col.empty(col.TEXT)
    convert = plc.strings.convert.convert_datetime
    found = convert.from_timestamps(column, text, names)
    return settled(call, scope, column, found, in_four_digit_years(column))


def strptime(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """Also try_strptime: the host says what malformed strings give, an error or NULL."""
    column = as_column(args[0], scope.rows)
    layout = _translated(call, _READ)
    assert layout is not None
    values, usual = read_by(column, layout[0], device_type(call.type))
    return settled(call, scope, column, values, usual)


@functools.cache
def _names() -> plc.Column:
    """Words in the order in which libcudf expects them."""
    return plc.Column.from_arrow(
        array_from(["AM", "PM", *DAY_NAMES, *SHORT_DAYS, *MONTH_NAMES, *SHORT_MONTHS])
    )


def _translated(call: Call, known: dict[str, str]) -> tuple[str, list[str]] | None:
    """Return a format as libcudf writes it, and its specifiers; None for one that libcudf does not understand alike."""
    literal = call.args[1]
    if not isinstance(literal, Literal) or not isinstance(literal.value, str):
        return None
    text: list[str] = []
    letters: list[str] = []
    try:
        for kind, part in specifiers(literal.value):
            if kind == "text" and part.isascii() and "%" not in part:
                text.append(part)
            elif kind == "spec" and part in known:
                text.append(f"%{known[part]}")
                letters.append(part)
            else:
                return None
    except ExecutionError:  # which the CPU raises when the query runs
        return None
    # libcudf has one width for all fractions of a format.
    if sum(letter in _FRACTIONS for letter in letters) > 1:
        return None
    return "".join(text), letters


def _write_refusal(call: Call) -> str | None:
    return None if _translated(call, _WRITTEN) else f"{call.function}() with this format"


def _read_refusal(call: Call) -> str | None:
    """Only whole dates, each part of them said once."""
    layout = _translated(call, _READ)
    if layout is None or not {"Y", "m", "d"} <= set(layout[1]):
        return f"{call.function}() with this format"
    return None if len(layout[1]) == len(set(layout[1])) else f"{call.function}() with this format"


KERNELS: dict[str, Kernel] = {"strftime": strftime, "strptime": strptime, "try_strptime": strptime}
REFUSALS = {
    "strftime": _write_refusal,
    "strptime": _read_refusal,
    "try_strptime": _read_refusal,
}
