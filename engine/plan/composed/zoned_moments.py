"""Functions of moments with a time zone: those of what clocks of the session's zone show, and of time that goes by.

Months and days are counted by clocks, hours and less by time: over a day of 23 hours, a day is one and 24 hours are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...errors import Span
from ..calendar import INFINITE_MICROS
from ..casts import cast, coerce, local_time
from ..expr import Call, Cast, Expr, Interval, Literal
from ..functions.dates import CLOCK_UNITS, LOCAL
from ..literals import literal
from ..temporal import zones
from ..types import INTEGER, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind, list_of

_OFFSET = re.compile(r"(?<!%)((?:%%)*)%z")
_NAME = re.compile(r"(?<!%)((?:%%)*)%Z")
_SHOWN_OFFSET = "[+-][0-9:]+$"  # of a moment as text


class Make(NamedTuple):
    """What makes expressions: `infer` gives itself, since it calls what is here."""

    call: Callable[..., Expr]
    case: Callable[..., Expr]
    compare: Callable[..., Expr]


def in_the_sessions_zone(
    make: Make, name: str, args: Sequence[Expr], span: Span | None
) -> Expr | None:
    """Return a function of moments, one of which has a zone, as functions of those that have none; None for another function."""
    rule = _RULES.get(name, _by_clocks if name in LOCAL else None)
    return None if rule is None else rule(make, name, args, span)


def _by_clocks(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    found = make.call(name, [_local(a) for a in args], span)
    return coerce(found, TIMESTAMPTZ) if found.type.kind is Kind.TIMESTAMP else found


def _added(make: Make, _: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    moment, interval = args if args[0].type == TIMESTAMPTZ else args[::-1]
    is_interval = interval.type.kind is Kind.INTERVAL
    return _moved(make, moment, interval, False, span) if is_interval else None


def _subtracted(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    if args[1].type.kind is Kind.INTERVAL:
        return _moved(make, args[0], args[1], True, span)
    if zones.session() in zones.UTC_NAMES:
        return _by_clocks(make, name, args, span)
    end, start = (coerce(arg, TIMESTAMPTZ) for arg in args)
    is_back = make.compare("lt", end, start, span)
    # From the earlier one on, whose clocks say when days are over
    earlier = make.case([is_back], [end], start, span)
    later = make.case([is_back], [start], end, span)
    found = _difference(make, earlier, later, span)
    found = make.case([is_back], [make.call("neg", [found], span)], found, span)
    without = make.call(
        name, [_utc(end), _utc(start)], span
    )  # which says what infinite ones cannot be
    return _of_finite(make, [end, start], found, without, span)


def _counted(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    return _between(make, name, args[0], [coerce(a, TIMESTAMPTZ) for a in args[1:]], span)


def _formatted(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Format what clocks show; the zone's name is in the format, and its offset is that of the row's moment."""
    moment, form = args
    if not isinstance(form, Literal) or not isinstance(form.value, str):
        return make.call(name, [_local(moment), form], span)
    text = _NAME.sub(rf"\1{zones.session()}", form.value)
    if zones.session() in zones.UTC_NAMES:
        text = _OFFSET.sub(r"\1+00", text)
    shown = cast(moment, VARCHAR)
    offset = make.call("regexp_extract", [shown, Literal(_SHOWN_OFFSET, VARCHAR)], span)
    form = Literal(text, VARCHAR, form.span)
    return formatted(make, (moment, _local(moment)), form, (_OFFSET, offset), span)


def formatted(
    make: Make,
    moments: tuple[Expr, Expr],
    form: Expr,
    spliced: tuple[re.Pattern[str], Expr],
    span: Span | None,
) -> Expr:
    """Format the second of two moments, and have a text where a pattern matches a constant format; what is infinite is shown as the first is."""
    moment, shown = moments
    pattern, between = spliced
    given = form.value if isinstance(form, Literal) else None
    parts = pattern.sub("\\1\0", given).split("\0") if isinstance(given, str) else []
    if len(parts) < 2:
        return make.call("strftime", [shown, form], span)
    made = [
        make.call("strftime", [shown, part], span) if part.value else part
        for part in (Literal(part, VARCHAR, form.span) for part in parts)
    ]
    texts = [text for part in made for text in (between, part)][1:]
    found = make.call("concat", texts, span)
    return _of_finite(make, [moment], found, cast(moment, VARCHAR), span)


def _finite_by_clocks(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    found = _by_clocks(make, name, args, span)
    return _of_finite(make, args, found, Literal(None, found.type), span)


def _series(make: Make, name: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    """Count in UTC where that is what the clocks of the zone do, else give the zone too."""
    if len(args) != len(("start", "stop", "step")):
        return None
    step = args[2].value if isinstance(args[2], Literal) else None
    in_utc = zones.session() in zones.UTC_NAMES
    if isinstance(step, Interval):  # where the order of its parts matters, UTC is a zone, too
        in_utc = not (step.months and step.micros) if in_utc else not (step.months or step.days)
    moments = [_utc(coerce(end, TIMESTAMPTZ)) for end in args[:2]]
    found = make.call(name, [*moments, args[2]], span)
    if not in_utc and isinstance(found, Call):
        zone = Literal(zones.session(), VARCHAR)
        found = Call(found.function, (*found.args, zone), found.type, span)
    return Cast(found, list_of(TIMESTAMPTZ), span=span)


_RULES: dict[str, Callable[..., Expr | None]] = {
    "epoch": lambda make, name, args, span: make.call(name, [_utc(a) for a in args], span),
    "add": _added,
    "sub": _subtracted,
    "date_diff": _counted,
    "date_sub": _counted,
    "strftime": _formatted,
    "julian": _finite_by_clocks,
    "list_of_range": _series,
    "list_of_generate_series": _series,
    "age": _by_clocks,
}


def _local(arg: Expr) -> Expr:
    return local_time(arg) if arg.type == TIMESTAMPTZ else arg


def _utc(arg: Expr) -> Expr:
    return Cast(arg, TIMESTAMP) if arg.type == TIMESTAMPTZ else arg


def _between(make: Make, name: str, unit: Expr, moments: Sequence[Expr], span: Span | None) -> Expr:
    assert isinstance(unit, Literal)
    if unit.value not in CLOCK_UNITS:
        found = make.call(name, [unit, *map(_local, moments)], span)
    else:
        ends = moments
        if name == "date_diff" and unit.value == "hour":  # which clocks begin at their own minute
            ends = [make.call("date_trunc", [unit, moment], span) for moment in moments]
            name = "date_sub"
        found = make.call(name, [unit, *map(_utc, ends)], span)
    return _of_finite(make, moments, found, Literal(None, found.type), span)


def _of_finite(
    make: Make, moments: Sequence[Expr], found: Expr, otherwise: Expr, span: Span | None
) -> Expr:
    ends = (INFINITE_MICROS, -INFINITE_MICROS)
    finite = [make.compare("ne", m, Literal(end, m.type), span) for m in moments for end in ends]
    return make.case([make.call("and", finite, span)], [found], otherwise, span)


def _moved(make: Make, moment: Expr, interval: Expr, back: bool, span: Span | None) -> Expr:
    """Add an interval: months, days and then time; of one with a negative part time comes first, as in DuckDB."""
    if not isinstance(interval, Literal):
        interval = make.call("neg", [interval], span) if back else interval
        return _of_finite(
            make, [moment], _moved_by_parts(make, moment, interval, span), moment, span
        )
    if interval.value is None:
        return Literal(None, TIMESTAMPTZ, span)
    assert isinstance(interval.value, Interval)
    value, sign = interval.value, -1 if back else 1
    months, days, micros = (sign * n for n in (value.months, value.days, value.micros))
    parts = [Interval(months, 0, 0), Interval(0, days, 0), Interval(0, 0, micros)]
    steps = list(zip((_by_months, _by_days, _by_time), parts, strict=True))
    found = moment
    for step, part in [steps[2], *steps[:2]] if min(months, days, micros) < 0 else steps:
        if part != Interval():
            found = step(make, found, Literal(part, INTERVAL), span)
    return _of_finite(make, [moment], found, moment, span)


def _moved_by_parts(make: Make, moment: Expr, interval: Expr, span: Span | None) -> Expr:
    year, month, day, hour, minute, micros = (
        make.call(part, [interval], span)
        for part in ("year", "month", "day", "hour", "minute", "microsecond")
    )
    count = make.call("add", [make.call("mul", [year, literal(12)], span), month], span)
    months, days = make.call("to_months", [count], span), make.call("to_days", [day], span)
    clock = make.call("sub", [make.call("sub", [interval, months], span), days], span)
    negative = [
        make.compare("lt", part, literal(0), span) for part in (count, day, hour, minute, micros)
    ]
    none = make.compare("eq", count, literal(0), span)

    def by_calendar(begin: Expr) -> Expr:
        # No month changes nothing, though clocks may show a time twice
        later = make.case([none], [begin], _by_months(make, begin, months, span), span)
        return _by_days(make, later, days, span)

    time_first = by_calendar(_by_time(make, moment, clock, span))
    time_last = _by_time(make, by_calendar(moment), clock, span)
    return make.case([make.call("or", negative, span)], [time_first], time_last, span)


def _by_months(make: Make, moment: Expr, interval: Expr, span: Span | None) -> Expr:
    return coerce(make.call("add", [local_time(moment), interval], span), TIMESTAMPTZ)


def _by_days(make: Make, moment: Expr, interval: Expr, span: Span | None) -> Expr:
    """Add days, which keep the offset where clocks show the time of day twice."""
    shown = make.call("add", [local_time(moment), interval], span)
    if zones.session() in zones.UTC_NAMES:
        return coerce(shown, TIMESTAMPTZ)
    later = _by_time(make, moment, interval, span)
    same = make.compare("eq", local_time(later), shown, span)
    return make.case([same], [later], coerce(shown, TIMESTAMPTZ), span)


def _by_time(make: Make, moment: Expr, interval: Expr, span: Span | None) -> Expr:
    moved = make.call("add", [Cast(moment, TIMESTAMP), interval], span)
    return Cast(moved, TIMESTAMPTZ, span=span)


def _difference(make: Make, start: Expr, end: Expr, span: Span | None) -> Expr:
    """Whole days of the calendar from one moment to another, and the time that is left."""
    day, micro = (Literal(unit, VARCHAR) for unit in ("day", "microsecond"))
    count = make.call("date_sub", [day, _local(start), _local(end)], span)
    days = make.call("to_days", [cast(count, INTEGER)], span)
    moved = _by_days(make, start, days, span)
    rest = make.call("date_sub", [micro, _utc(moved), _utc(end)], span)
    return make.call("add", [days, make.call("to_microseconds", [rest], span)], span)
