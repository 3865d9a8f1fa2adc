"""Functions of TIMESTAMP_NS: those of the TIMESTAMP that it is cut to, and of the nanoseconds behind it.

pandas' frames have this type.  What is not here takes it as a TIMESTAMP, rounded, as in DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...errors import Span
from ..calendar import INFINITE_MICROS
from ..casts import cast, coerce
from ..expr import Call, Expr, Literal
from ..functions.dates import CLOCK_UNITS
from ..literals import literal
from ..types import BIGINT, INTERVAL, TIMESTAMP, TIMESTAMP_NS, VARCHAR, Kind
from .zoned_moments import Make, formatted

_DIGITS = re.compile(r"(?<!%)((?:%%)*)%n")


def of_nanoseconds(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    """Return a function, one argument of which is a TIMESTAMP_NS, by those of TIMESTAMP; None for another function."""
    rule = _RULES.get(name)
    return None if rule is None else rule(make, name, args, span)


def _moved(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    moment, interval = args if args[0].type == TIMESTAMP_NS else args[::-1]
    if interval.type.kind is not Kind.INTERVAL:
        return None
    cut = of_micros(make, moment)
    moved = coerce(make.call(name, [cut, interval], span), TIMESTAMP_NS)
    count = make.call("add", [ticks(moved), _behind(moment, cut)], span)
    is_finite = make.compare("lt", make.call("abs", [ticks(moment)]), literal(INFINITE_MICROS))
    finite = make.case([is_finite], [count], Literal(None, BIGINT))
    return make.call("coalesce", [make.call("make_timestamp_ns", [finite], span), moment])


def _formatted(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    moment, form = args
    cut = of_micros(make, moment)
    rest = [cast(_behind(moment, cut), VARCHAR), literal(3), Literal("0", VARCHAR)]
    micros = make.call(name, [cut, Literal("%f", VARCHAR)])
    shown = make.call("concat", [micros, make.call("lpad", rest)], span)
    return formatted(make, (moment, cut), form, (_DIGITS, shown), span)


def _of_cut(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    return make.call(name, [of_micros(make, args[0])], span)


_RULES: dict[str, Callable[..., Expr | None]] = {
    "add": _moved,
    "sub": _moved,
    "strftime": _formatted,
    "epoch": _of_cut,
    **dict.fromkeys(CLOCK_UNITS, _of_cut),
}


def of_micros(make: Make, moment: Expr) -> Expr:
    """Return a TIMESTAMP_NS as the TIMESTAMP before it, which a cast rounds."""
    near = cast(moment, TIMESTAMP)
    later = make.compare("gt", near, moment)
    before = make.call("sub", [near, cast(Literal("1 microsecond", VARCHAR), INTERVAL)])
    return make.case([later], [before], near)


def nanosecond(make: Make, moment: Expr) -> Expr:
    """Return the nanoseconds since the last whole minute."""
    cut = of_micros(make, moment)
    micros = make.call("mul", [make.call("microsecond", [cut]), literal(1000)])
    return make.call("add", [micros, _behind(moment, cut)])


def ticks(moment: Expr) -> Expr:
    """Return the integer that a moment is."""
    return Call("ticks", (moment,), BIGINT)


def _behind(moment: Expr, cut: Expr) -> Expr:
    return Call("sub", (ticks(moment), ticks(coerce(cut, TIMESTAMP_NS))), BIGINT)
