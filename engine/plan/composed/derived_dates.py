"""Functions of dates, timestamps, zones and intervals that are others, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time

from ...errors import Span, TypeMismatch
from .. import infer
from ..casts import local_time
from ..coercion import implicit
from ..expr import Call, Cast, Expr, Literal
from ..literals import literal
from ..temporal import zones
from ..temporal.ticks import PLAIN
from ..types import BIGINT, DATE, DOUBLE, TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ, VARCHAR, Kind
from .nanoseconds import nanosecond, of_micros, ticks

_DAYS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_FIRST_BUCKET = datetime(2000, 1, 3)
_CLOCK = {"hour": 3_600_000_000, "minute": 60_000_000, "microsecond": 1}


def _sum(terms: Sequence[tuple[Expr, int]], span: Span | None) -> Expr:
    """Return the sum of products."""
    made: Expr = infer.literal(0)
    for value, factor in terms:
        product = infer.call("mul", [value, infer.literal(factor)], span)
        made = infer.call("add", [made, product], span)
    return made


def _micros_of_interval(arg: Expr, span: Span | None) -> Expr:
    """The microseconds of an INTERVAL, whose months have 30 days."""
    day = 86_400_000_000
    factors = {"year": 360 * day, "month": 30 * day, "day": day}
    factors |= _CLOCK
    return _sum([(infer.call(part, [arg], span), f) for part, f in factors.items()], span)


def _epoch_us(args: Sequence[Expr], span: Span | None) -> Expr:
    if args[0].type.kind is Kind.INTERVAL:
        return _micros_of_interval(args[0], span)
    if args[0].type.kind is Kind.TIME:
        return _sum([(infer.call(part, args, span), f) for part, f in _CLOCK.items()], span)
    if args[0].type == TIMESTAMP_NS:
        args = [of_micros(infer.MAKE, args[0])]
    if args[0].type.kind is Kind.TIMESTAMPTZ:
        epoch = Literal(0, TIMESTAMPTZ)
        return infer.call("date_diff", [Literal("microsecond", VARCHAR), epoch, args[0]], span)
    epoch = Literal(datetime(1970, 1, 1), TIMESTAMP)
    return infer.call("date_diff", [Literal("microsecond", VARCHAR), epoch, args[0]], span)


def _epoch_ms(args: Sequence[Expr], span: Span | None) -> Expr:
    """Milliseconds of a timestamp, rounded half away from 1970; of a number the timestamp that it counts to."""
    thousand = infer.literal(1000)
    if args[0].type.is_numeric:
        return _from_ms(args, span)
    micros = _epoch_us(args, span)
    if args[0].type.kind in (Kind.INTERVAL, Kind.TIME):
        return infer.call("int_div", [micros, thousand], span)
    half = [infer.call("mod", [micros, thousand], span), infer.literal(500)]
    whole = infer.call("int_div", [micros, thousand], span)
    return infer.call("add", [whole, infer.call("int_div", half, span)], span)


def _from_ms(args: Sequence[Expr], span: Span | None) -> Expr:
    if not implicit(args[0].type, BIGINT):
        raise TypeMismatch(f"epoch_ms(BIGINT) does not take {args[0].type}: cast it.", span)
    micros = infer.call("mul", [infer.coerce(args[0], BIGINT), infer.literal(1000)], span)
    return infer.call("make_timestamp", [micros], span)


def _thousand_of(
    build: Callable[[Sequence[Expr], Span | None], Expr], exactly: Callable[[Expr], Expr]
) -> Callable[..., Expr]:
    """Of microseconds; `exactly` makes those of a TIMESTAMP_NS."""

    def built(args: Sequence[Expr], span: Span | None) -> Expr:
        if args[0].type == TIMESTAMP_NS:
            return exactly(args[0])
        return infer.call("mul", [build(args, span), infer.literal(1000)], span)

    return built


def _era(args: Sequence[Expr], span: Span | None) -> Expr:
    """0 before Christ, else 1."""
    if args[0].type.kind is Kind.INTERVAL:
        raise TypeMismatch("era(TIMESTAMP) does not take an INTERVAL.", span)
    year = infer.call("year", args, span)
    after = infer.compare("gt", year, infer.literal(0), span)
    return infer.cast(after, BIGINT, span=span)


def _age(args: Sequence[Expr], span: Span | None) -> Expr:
    """Of one moment: until the beginning of today."""
    today = Literal(datetime.combine(zones.today(), time.min), TIMESTAMP)
    return infer.call("age", args if len(args) > 1 else [today, *args], span)


def _moment(value: Callable[[], datetime | time | date]) -> Callable[..., Expr]:
    return lambda _, span: literal(value(), span)


def _time_bucket(args: Sequence[Expr], span: Span | None) -> Expr:
    """time_bucket(width, x[, offset | origin]): an offset moves x to the buckets, and the bucket back; a DATE stays one."""
    width, value, *rest = args
    if value.type.kind is Kind.TIMESTAMPTZ:
        return _zoned_bucket(width, value, rest, span)
    if rest and rest[0].type.kind is Kind.INTERVAL:
        moved = infer.call("sub", [value, *rest], span)
        found = infer.call("add", [infer.call("time_bucket", [width, moved], span), *rest], span)
    else:
        found = infer.call("time_bucket", args, span)
    return infer.cast(found, DATE, span=span) if value.type.kind is Kind.DATE else found


def _zoned_bucket(width: Expr, value: Expr, rest: Sequence[Expr], span: Span | None) -> Expr:
    """Buckets of moments are those of the clocks of UTC, or of a zone that is named: days and months by its clocks, time from its midnight on."""
    if rest and rest[0].type.kind is Kind.VARCHAR:
        (zone,) = rest
        local = infer.call("timezone", [zone, value], span)
        by_clock = infer.call("timezone", [zone, _time_bucket([width, local], span)], span)
        origin = infer.call("timezone", [zone, literal(_FIRST_BUCKET, span)], span)
        by_time = _zoned_bucket(width, value, [origin], span)
        parts = [infer.call(part, [width], span) for part in ("year", "month", "day")]
        is_time = [infer.compare("eq", part, infer.literal(0), span) for part in parts]
        return infer.case([infer.call("and", is_time)], [by_time], by_clock, span)
    in_utc = [Cast(e, TIMESTAMP) if e.type == TIMESTAMPTZ else e for e in (value, *rest)]
    return Cast(_time_bucket([width, *in_utc], span), TIMESTAMPTZ, span=span)


def _of_moments(name: str, comparison: str, logic: str) -> Callable[..., Expr]:
    """A test for infinity, which two values of each type of moments are."""

    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        if args[0].type.kind not in _DAYS:
            return infer.call(name, args, span)
        ends = [infer.cast(Literal(t, VARCHAR), args[0].type) for t in ("infinity", "-infinity")]
        return infer.call(logic, [infer.compare(comparison, args[0], e, span) for e in ends], span)

    return build


DERIVED_DATES = {
    "epoch_us": (_epoch_us, 1, 1, "epoch_us(TIMESTAMP | INTERVAL)"),
    "epoch_ms": (_epoch_ms, 1, 1, "epoch_ms(TIMESTAMP | INTERVAL | BIGINT)"),
    "epoch_ns": (_thousand_of(_epoch_us, ticks), 1, 1, "epoch_ns(TIMESTAMP | INTERVAL)"),
    "nanosecond": (
        _thousand_of(
            lambda args, span: infer.call("microsecond", args, span),
            lambda moment: nanosecond(infer.MAKE, moment),
        ),
        1,
        1,
        "nanosecond(TIMESTAMP | INTERVAL)",
    ),
    "make_timestamp_ms": (_from_ms, 1, 1, "make_timestamp_ms(BIGINT)"),
    "era": (_era, 1, 1, "era(TIMESTAMP)"),
    "age": (_age, 1, 2, "age(TIMESTAMP[, TIMESTAMP])"),
    "time_bucket": (
        _time_bucket,
        2,
        3,
        "time_bucket(INTERVAL, TIMESTAMP | TIMESTAMPTZ[, TIMESTAMP | INTERVAL | VARCHAR])",
    ),
    "current_date": (_moment(zones.today), 0, 0, "current_date()"),
    "today": (_moment(zones.today), 0, 0, "today()"),
    **{
        name: (_moment(zones.now), 0, 0, f"{name}()")
        for name in ("now", "get_current_timestamp", "transaction_timestamp")
    },
    "current_localtimestamp": (_moment(zones.local_now), 0, 0, "current_localtimestamp()"),
    "current_localtime": (
        _moment(lambda: zones.local_now().time()),
        0,
        0,
        "current_localtime()",
    ),
    "isfinite": (_of_moments("isfinite", "ne", "and"), 1, 1, "isfinite(DOUBLE | TIMESTAMP)"),
    "isinf": (_of_moments("isinf", "eq", "or"), 1, 1, "isinf(DOUBLE | TIMESTAMP)"),
}


def _offset(args: Sequence[Expr], span: Span | None) -> Expr:
    """The seconds that clocks of the session's zone are ahead of UTC: 0 for what has no zone."""
    (value,) = args
    if value.type == TIMESTAMPTZ:
        unit = Literal("second", VARCHAR)
        return infer.call("date_diff", [unit, Cast(value, TIMESTAMP), local_time(value)], span)
    if value.type.kind in PLAIN:
        return infer.call("date_diff", [Literal("second", VARCHAR), value, value], span)
    if value.type.kind not in (Kind.TIME, Kind.NULL):
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
