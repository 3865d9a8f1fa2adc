"""Functions whose result is a moment with a time zone, or its offset, as SQL calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import Span, TypeMismatch
from .. import infer
from ..casts import local_time
from ..expr import Call, Cast, Expr, Literal
from ..temporal.ticks import PLAIN
from ..types import BIGINT, DOUBLE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind


def _offset(args: Sequence[Expr], span: Span | None) -> Expr:
    """The seconds that clocks of the session's zone are ahead of UTC: 0 for what has no zone."""
    (value,) = args
    if value.type == TIMESTAMPTZ:
        unit = Literal("second", VARCHAR)
        return infer.call("date_diff", [unit, Cast(value, TIMESTAMP), local_time(value)], span)
    if value.type.kind not in (*PLAIN, Kind.TIME, Kind.NULL):
        raise TypeMismatch(
            f"{value.type} has no time zone: this takes a TIMESTAMP or a TIME.", span
        )
    unknown = infer.call("is_null", [value], span)
    return infer.case([unknown], [Literal(None, BIGINT)], Literal(0, BIGINT), span)


def _offset_part(divisor: int, most: int) -> Callable[..., Expr]:
    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        parts = infer.call("int_div", [_offset(args, span), infer.literal(divisor)], span)
        return infer.call("mod", [parts, infer.literal(most)], span)

    return build


def _timezone(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of one argument its offset, of a zone and a moment what clocks show there."""
    return _offset(args, span) if len(args) == 1 else infer.call("timezone", args, span)


def _to_timestamp(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of seconds since 1970, rounded to microseconds."""
    million = Literal(1_000_000.0, DOUBLE)
    micros = infer.call("mul", [infer.coerce(args[0], DOUBLE), million], span)
    whole = infer.cast(infer.call("round", [micros], span), BIGINT, span=span)
    return Cast(infer.call("make_timestamp", [whole], span), TIMESTAMPTZ, span=span)


def _make_timestamptz(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of the parts that clocks show in a zone, by default the session's, or of microseconds since 1970."""
    if len(args) == 1:
        return Cast(infer.call("make_timestamp", args, span), TIMESTAMPTZ)
    if len(args) not in (6, 7):
        raise TypeMismatch(f"make_timestamptz takes 1, 6 or 7 arguments, not {len(args)}.", span)
    shown = infer.call("make_timestamp", args[:6], span)
    if len(args) == 6:
        return infer.cast(shown, TIMESTAMPTZ, span=span)
    return Call("timezone", (infer.coerce(args[6], VARCHAR), shown), TIMESTAMPTZ, span)


OFFSETS = ("timezone", "timezone_hour", "timezone_minute")  # also parts of a moment
ZONED_FUNCTIONS = {
    "timezone": (_timezone, 1, 2, "timezone(VARCHAR, TIMESTAMP | TIMESTAMP WITH TIME ZONE)"),
    "timezone_hour": (_offset_part(3600, 100), 1, 1, "timezone_hour(TIMESTAMP WITH TIME ZONE)"),
    "timezone_minute": (_offset_part(60, 60), 1, 1, "timezone_minute(TIMESTAMP WITH TIME ZONE)"),
    "to_timestamp": (_to_timestamp, 1, 1, "to_timestamp(DOUBLE)"),
    "make_timestamptz": (
        _make_timestamptz,
        1,
        7,
        "make_timestamptz(BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE[, VARCHAR])",
    ),
}
