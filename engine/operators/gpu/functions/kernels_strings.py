"""String functions with constant arguments; positions and lengths count characters (code points) from 1."""

from __future__ import annotations

import pylibcudf as plc

from ....errors import ExecutionError
from ....plan.expr import Call, Literal
from ...text_limits import MAX_BYTES, check_bytes, check_characters
from ..columns import (
    BOOL,
    INT32,
    INT64,
    TEXT,
    UINT32,
    cast,
    constant,
    reinterpret,
    scalar,
    select,
    true_mask,
)
from . import values as val
from .kernels_arithmetic import extremes
from .kernels_patterns import filled, literal_refusal, text_argument
from .letters import in_case

Op = plc.binaryop.BinaryOperator
_COUNT = plc.strings.attributes
Side = plc.strings.side_type.SideType

_LONGEST = 2**31 - 1  # characters; a bound beyond any string
_COUNTED = 1000  # from so many times or characters on, what a function will make is counted first
_SIDES = {"trim": Side.BOTH, "ltrim": Side.LEFT, "rtrim": Side.RIGHT}


def concat(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    if len(args) == 1:
        return args[0]
    table = plc.Table([val.as_column(a, scope.rows) for a in args])
    # Without a third argument a NULL would count as an empty string.
    return plc.strings.combine.concatenate(table, scalar("", TEXT), scalar(None, TEXT))


def concat_ws(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """NULLs are left out with their separator; a separator that is NULL makes all NULL."""
    separator, *texts = args
    if val.is_null_constant(separator):
        return val.null(call.type)
    if len(texts) == 1:  # libcudf wants two columns; a NULL is left out
        texts.append(val.null(call.type))
    table = plc.Table([val.as_column(t, scope.rows) for t in texts])
    combine = plc.strings.combine
    without, nothing, none = combine.SeparatorOnNulls.NO, scalar("", TEXT), scalar(None, TEXT)
    if isinstance(separator, val.Constant):
        return combine.concatenate(table, val.operand(separator), nothing, None, without)
    return combine.concatenate(table, separator, none, nothing, without)


def lower(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return in_case(val.as_column(args[0], scope.rows), upper=False)


def upper(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return in_case(val.as_column(args[0], scope.rows), upper=True)


def length(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return cast(plc.strings.attributes.count_characters(val.as_column(args[0], scope.rows)), INT64)


def strlen(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    return cast(plc.strings.attributes.count_bytes(val.as_column(args[0], scope.rows)), INT64)


def substring(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Characters from `start`: 0 is the place before the first, a negative one counts from the end.

    A negative length takes the characters before `start`.
    """
    column = val.as_column(args[0], scope.rows)
    start, count = _number(call, 1), _number(call, 2)
    check_characters("substring", start)
    check_characters("substring", count)
    begin = start if start < 0 else start - 1
    if len(call.args) < 3:
        return _slice(column, begin if start < 0 else max(begin, 0), None)
    first, last = min(begin, begin + count), max(begin, begin + count)
    if start < 0:
        # Places from the end stay so: what would be at or after the last character is no bound.
        return _slice(column, first, last if last < 0 else None)
    return _slice(column, max(first, 0), max(last, 0))


def left(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    check_characters("left", _number(call, 1))
    return _slice(val.as_column(args[0], scope.rows), 0, _number(call, 1))


def right(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    column = val.as_column(args[0], scope.rows)
    count = _number(call, 1)
    return _slice(column, 0, 0) if count == 0 else _slice(column, -count, None)


def _slice(column: plc.Column, start: int, stop: int | None) -> plc.Column:
    """Return the characters from `start` to before `stop`, from the end where negative; None is the end."""
    first = scalar(max(-_LONGEST, min(start, _LONGEST)), INT32)
    last = scalar(None if stop is None else max(-_LONGEST, min(stop, _LONGEST)), INT32)
    if start >= 0 and (stop is None or stop >= 0):
        return plc.strings.slice.slice_strings(column, first, last, scalar(1, INT32))
    # Bounds from the end differ from row to row.
    lengths = plc.strings.attributes.count_characters(column)
    begins = _bound(lengths, start)
    ends = lengths if stop is None else _bound(lengths, stop)
    ends = val.binary(ends, begins, Op.NULL_MAX, INT32)
    return plc.strings.slice.slice_strings(column, _known(begins), _known(ends))


def _bound(lengths: plc.Column, place: int) -> plc.Column:
    """Return a place in each string: min(place, length), or for a negative one max(length + place, 0)."""
    place = max(-_LONGEST, min(place, _LONGEST))
    if place >= 0:
        return val.binary(lengths, val.Constant(place, INT32), Op.NULL_MIN, INT32)
    moved = val.binary(lengths, val.Constant(place, INT32), Op.ADD, INT32)
    return val.binary(moved, val.Constant(0, INT32), Op.NULL_MAX, INT32)


def _known(places: plc.Column) -> plc.Column:
    """Slicing takes no NULL place; what it makes of a NULL string is NULL."""
    return plc.replace.replace_nulls(places, scalar(0, INT32)) if places.null_count() else places


def trim(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Spaces alone without a second argument; no characters remove nothing."""
    column = val.as_column(args[0], scope.rows)
    characters = text_argument(call, 1, " ")
    if not characters:
        return column
    return plc.strings.strip.strip(column, _SIDES[call.function], scalar(characters, TEXT))


def pad(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Cut or fill to a number of characters, by one fill character."""
    column = val.as_column(args[0], scope.rows)
    width, fill = max(_number(call, 1), 0), text_argument(call, 2)
    if not fill:
        lengths = plc.strings.attributes.count_characters(column)
        if scope.any(val.binary(lengths, val.Constant(width, INT32), Op.LESS, BOOL)):
            raise ExecutionError(
                "Insufficient padding: lpad and rpad need at least one character to fill with."
            )
        return _slice(column, 0, width)
    if width > _COUNTED:
        check_bytes(call.function, len(fill.encode()) * width * column.size())
    side = Side.LEFT if call.function == "lpad" else Side.RIGHT
    return plc.strings.padding.pad(_slice(column, 0, width), width, side, fill)


def repeat(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    column, count = val.as_column(args[0], scope.rows), max(_number(call, 1), 0)
    if count > _COUNTED:
        check_bytes("repeat", _bytes(column) * count)
    return plc.strings.repeat.repeat_strings(column, min(count, MAX_BYTES))


def _bytes(column: plc.Column) -> int:
    """At most the bytes of all strings together."""
    return extremes(plc.strings.attributes.count_bytes(column))[1] * column.size()


def replace(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    column = val.as_column(args[0], scope.rows)
    if not text_argument(call, 1):
        return column
    return plc.strings.replace.replace(column, val.operand(args[1]), val.operand(args[2]))


def reverse(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """ASCII here; the host keeps marks beside their letters."""
    column = val.as_column(args[0], scope.rows)
    characters, size = (count(column) for count in (_COUNT.count_characters, _COUNT.count_bytes))
    result = plc.strings.reverse.reverse(column)
    return val.settled(call, scope, column, result, val.binary(characters, size, Op.EQUAL, BOOL))


def split_part(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """The part with a number, from 1; '' where there are fewer."""
    column = val.as_column(args[0], scope.rows)
    place = _number(call, 2) - 1
    if place >= _LONGEST:
        return _slice(column, 0, 0)
    parts = plc.strings.split.split.split_part(column, val.operand(args[1]), place)
    return filled(parts, column)


def translate(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """Characters one by one; the first of equal ones to replace counts, and those without a replacement go."""
    old, new = text_argument(call, 1) or "", text_argument(call, 2) or ""
    table: dict[str, str | int] = {}
    for place, letter in enumerate(old):
        table.setdefault(letter, new[place] if place < len(new) else 0)
    column = val.as_column(args[0], scope.rows)
    return plc.strings.translate.translate(column, table) if table else column


def position(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """The place of the first occurrence, from 1; 0 for none and 1 for an empty needle."""
    column = val.as_column(args[0], scope.rows)
    if not text_argument(call, 1):
        one = constant(1, INT64, scope.rows)
        if not column.null_count():
            return one
        return select(plc.unary.is_valid(column), one, scalar(None, INT64))
    found = cast(plc.strings.find.find(column, val.operand(args[1])), INT64)
    return val.binary(found, val.Constant(1, INT64), Op.ADD, INT64)


def code_point(call: Call, scope: val.RowScope, args: tuple[val.Value, ...]) -> val.Value:
    """The code point of the first character; 0 for an empty string."""
    column = val.as_column(args[0], scope.rows)
    empty = val.binary(column, val.Constant("", TEXT), Op.EQUAL, BOOL)
    filled = select(true_mask(empty), scalar("\x00", TEXT), column)
    if column.null_count():
        filled = plc.replace.replace_nulls(filled, scalar("\x00", TEXT))
    heads = plc.strings.slice.slice_strings(
        filled, scalar(0, INT32), scalar(1, INT32), scalar(1, INT32)
    )
    points = _decoded(plc.strings.attributes.code_points(heads))
    if not column.null_count():
        return points
    return select(plc.unary.is_valid(column), points, scalar(None, INT32))


def _decoded(characters: plc.Column) -> plc.Column:
    """Return the code points of characters that come as their bytes in UTF-8, the first one highest."""
    encoded = cast(reinterpret(characters, UINT32), INT64)
    lengths = (0x80, 0x1_0000, 0x100_0000)  # what needs one, two, three bytes is below
    highest = extremes(encoded)[1]
    result = encoded
    # The bits of each byte but its mark: 5, 4 or 3 of the first one, 6 of the others.
    for limit, first in zip(lengths, (0x1F << 6, 0xF << 12, 0x7 << 18), strict=True):
        if highest < limit:
            break
        bits = [_bits(encoded, 2 * i, 0x3F << 6 * i) for i in range(first.bit_length() // 6)]
        point = _bits(encoded, 2 * len(bits), first)
        for part in bits:
            point = val.binary(point, part, Op.BITWISE_OR, INT64)
        longer = val.binary(encoded, val.Constant(limit, INT64), Op.GREATER_EQUAL, BOOL)
        result = select(longer, point, result)
    return cast(result, INT32)


def _bits(values: plc.Column, shift: int, mask: int) -> plc.Column:
    moved = val.binary(values, val.Constant(shift, INT64), Op.SHIFT_RIGHT, INT64)
    return val.binary(moved, val.Constant(mask, INT64), Op.BITWISE_AND, INT64)


def _number(call: Call, place: int) -> int:
    if place >= len(call.args):
        return 0
    argument = call.args[place]
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, int)
    return argument.value


def _pad_refusal(call: Call) -> str | None:
    reason = literal_refusal(call)
    if reason is None and len(text_argument(call, 2) or "") > 1:
        return f"{call.function}() with more than one character to fill with"
    return reason


def _split_refusal(call: Call) -> str | None:
    reason = literal_refusal(call)
    if reason is None and text_argument(call, 1) == "":
        return f"{call.function}() by an empty string"
    if reason is None and _number_or(call, 2, 1) < 1:
        return f"{call.function}() from the end"
    return reason


def _number_or(call: Call, place: int, default: int) -> int:
    """A literal number, or what stands for NULL."""
    argument = call.args[place]
    assert isinstance(argument, Literal)
    return default if argument.value is None else _number(call, place)


_LITERAL = (
    "substring", "left", "right", "trim", "ltrim", "rtrim", "repeat", "replace", "position",
    "translate",
)  # fmt: skip

KERNELS: dict[str, val.Kernel] = {
    "concat": concat,
    "concat_ws": concat_ws,
    "lower": lower,
    "upper": upper,
    "length": length,
    "strlen": strlen,
    "substring": substring,
    "left": left,
    "right": right,
    **dict.fromkeys(_SIDES, trim),
    "lpad": pad,
    "rpad": pad,
    "repeat": repeat,
    "replace": replace,
    "reverse": reverse,
    "position": position,
    "split_part": split_part,
    "translate": translate,
    "ascii": code_point,
}
REFUSALS = {
    **dict.fromkeys(_LITERAL, literal_refusal),
    "lpad": _pad_refusal,
    "rpad": _pad_refusal,
    "split_part": _split_refusal,
}
