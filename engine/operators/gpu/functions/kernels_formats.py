"""strftime and strptime, with the specifiers that mean the same to libcudf and DuckDB; other rows by `kernels_host`."""

from __future__ import annotations

import functools

import pyarrow as pa
import pylibcudf as plc

from ....errors import ExecutionError
from ....plan.expr import Call, Literal
from ....plan.functions.formats import (
    DAY_NAMES,
    MONTH_NAMES,
    SHORT_DAYS,
    SHORT_MONTHS,
    specifiers,
)
from ..columns import TEXT, empty
from ..table import device_type
from .kernels_host import settled
from .kernels_parse import read_by
from .kernels_print import in_four_digit_years
from .values import Kernel, RowScope, Value, as_column

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
    names = _names() if any(letter in _NAMED for letter in letters) else empty(TEXT)
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
        pa.array(["AM", "PM", *DAY_NAMES, *SHORT_DAYS, *MONTH_NAMES, *SHORT_MONTHS])
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
