"""Time zones: local time of moments in UTC and back, the zone of the session whose statement is being planned, and its time.

Python's `zoneinfo` has the rules; here they are a sorted table of the moments at which a zone's offset changes.

Statements have it as a constant, so that filters on it skip files and blocks; a plan made with it is not kept for the next run.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from ...errors import InvalidQuery, nearest
from ...records import dataclass
from ..calendar import EPOCH, INFINITE_MICROS
from ..text.number_text import parse_moment
from .ticks import Array

PER_SECOND = 1_000_000
# The calendar repeats after 400 years, and rules do from 2037 on
FIRST_YEAR, LAST_YEAR = 1840, 2437
CYCLE = 146_097 * 86_400 * PER_SECOND  # 400 years
WEEK = 7 * 86_400
UTC_NAMES = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT")
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_HOURS = re.compile(r"(?:(?i:gmt)|UTC)([+-]\d{1,2})")
MOST_HOURS = 14  # of a zone from UTC


@dataclass(frozen=True, eq=False)
class Zone:
    """Offsets from UTC in microseconds: `offsets[i]` from the moment `begins[i]` on."""

    name: str
    begins: Array
    offsets: Array

    def local(self, utc: Array) -> Array:
        """Return what clocks show at moments in UTC."""
        place = np.searchsorted(self.begins, _within(utc), side="right") - 1
        shown = utc + self.offsets[np.maximum(place, 0)]
        return np.where(np.abs(utc) == INFINITE_MICROS, utc, shown)

    def utc(self, local: Array) -> Array:
        """Return the moments at which clocks show something: the later of two, and in a gap as if they had not been changed."""
        begins = self.begins + self.offsets
        place = np.searchsorted(begins, _within(local), side="right") - 1
        moments = local - self.offsets[np.maximum(place, 0)]
        return np.where(np.abs(local) == INFINITE_MICROS, local, moments)


def _second(year: int) -> int:
    return (datetime(year, 1, 1) - EPOCH) // timedelta(seconds=1)


END = _second(LAST_YEAR) * PER_SECOND  # up to where the tables go


def _within(moments: Array) -> Array:
    """Return moments, those behind the table as many cycles earlier as they need."""
    behind = np.maximum(moments - END, 0)
    return moments - -(-behind // CYCLE) * CYCLE


def zone(name: str) -> Zone:
    """Return a zone by its name, in any case, or by hours as GMT+2 or UTC-11; raises `InvalidQuery` for one that does not exist."""
    hours = _HOURS.fullmatch(name)
    if hours is not None and abs(int(hours[1])) <= MOST_HOURS:
        begin, ahead = _second(FIRST_YEAR) * PER_SECOND, int(hours[1]) * 3600 * PER_SECOND
        return Zone(name, np.array([begin], np.int64), np.array([ahead], np.int64))
    return _table(_own_name(name))


def _own_name(name: str) -> str:
    known: str | None = None
    with suppress(ValueError, OSError, KeyError):
        known = ZoneInfo(name).key
    known = known or zone_names().get(name.lower())
    if known is None:
        hint = (
            nearest(name, zone_names().values()) or " Zones are called Europe/Berlin, for example."
        )
        if not zone_names():
            hint = " This machine has no table of zones: pip install tzdata."
        raise InvalidQuery(f'There is no time zone "{name}".{hint}')
    return known


@cache
def zone_names() -> dict[str, str]:
    """Return the names of all zones by what they are in lower case."""
    return {name.lower(): name for name in sorted(available_timezones())}


@cache
def _table(name: str) -> Zone:
    rules = ZoneInfo(name)

    def offset(second: int) -> timedelta:
        return datetime.fromtimestamp(second, rules).utcoffset() or timedelta(0)

    first, last = (_second(year) for year in (FIRST_YEAR, LAST_YEAR))
    begins, offsets = [first], [offset(first)]
    for start in range(first, last, WEEK):
        low, high = start, start + WEEK
        if (after := offset(high)) == offsets[-1]:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offsets[-1] else (low, middle)
        begins.append(high)
        offsets.append(after)
    counts = [o // timedelta(microseconds=1) for o in offsets]
    return Zone(name, np.array(begins, np.int64) * PER_SECOND, np.array(counts, np.int64))


def offset_of(written: str) -> int | None:
    """Return the microseconds of Z, +02 or -03:30; None for a zone's name."""
    if written in ("Z", "z"):
        return 0
    found = _OFFSET.fullmatch(written)
    if found is None:
        return None
    hours, minutes, seconds = (int(found[i] or 0) for i in (2, 3, 4))
    size = ((hours * 60 + minutes) * 60 + seconds) * PER_SECOND
    return -size if found[1] == "-" else size


def offset_text(micros: int) -> str:
    """Return an offset as it stands behind a timestamp: +00, -04, +05:30, -04:56:02."""
    minutes, seconds = divmod(abs(micros) // PER_SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    behind = f":{minutes:02d}:{seconds:02d}" if seconds else f":{minutes:02d}" if minutes else ""
    return ("-" if micros < 0 else "+") + f"{hours:02d}{behind}"


class _Session(threading.local):
    name = "UTC"


_session = _Session()


def session() -> str:
    """Return the zone in which a statement that this thread plans reads and shows moments."""
    return _session.name


@contextmanager
def of_session(name: str) -> Iterator[None]:
    """Let `session` be a zone in what this thread plans inside."""
    before, _session.name = _session.name, name
    try:
        yield
    finally:
        _session.name = before


def parse_timestamptz(text: str, own: str) -> int | None:
    """Return the microseconds in UTC that a text stands for; `own` is the zone of what names none.  None for what is no moment."""
    read = parse_moment(text)
    if read is None:
        return None
    shown, written = read
    if abs(shown) >= INFINITE_MICROS:
        return shown if abs(shown) == INFINITE_MICROS else None
    offset = offset_of(written)
    found = to_utc(shown, written or own) if offset is None else shown - offset
    return found if found is not None and abs(found) < INFINITE_MICROS else None


def to_utc(shown: int, name: str) -> int | None:
    """Return the microseconds in UTC when clocks of a zone show so many; None where there is no such zone."""
    try:
        known = zone(name)
    except InvalidQuery:
        return None
    return int(known.utc(np.array([shown], np.int64))[0])


clock = partial(datetime.now, UTC)  # the time in UTC


@dataclass
class StatementTime:
    """What now is for a statement, once it has asked, or since its transaction began."""

    time: datetime | None = None
    was_asked: bool = False


class _Statement(threading.local):
    moment: StatementTime | None = None


_statement = _Statement()


def now() -> datetime:
    """Return the time of the statement that this thread plans, in UTC."""
    moment = _statement.moment or StatementTime()
    moment.was_asked = True
    moment.time = moment.time or clock()
    return moment.time


def local_now() -> datetime:
    """Return what clocks of the session's zone show now, without a zone."""
    return _local(now())


def today(zone: str | None = None) -> date:
    """Return the date in a zone, that of the session by default; plans that have it are kept until the next day."""
    return _local(_known(), zone).date()


def quarter_hour() -> int:
    """Return which quarter of an hour it is since 1970: days begin with one, in any zone, and a look at a zone's clock takes 20 times as long."""
    moment = _statement.moment
    known = None if moment is None else moment.time
    return int((known or clock()).timestamp()) // 900


def _known() -> datetime:
    """Return the time of the statement, if one has asked, or the time."""
    moment = _statement.moment
    return (moment.time if moment is not None else None) or clock()


def _local(time: datetime, name: str | None = None) -> datetime:
    """Return what clocks show at one moment, for which no table is made: that would take each new process 60 ms."""
    return (
        time.replace(tzinfo=UTC)
        .astimezone(ZoneInfo(_own_name(name or session())))
        .replace(tzinfo=None)
    )


@contextmanager
def of_statement(began: datetime | None) -> Iterator[StatementTime]:
    """Let `now` be one moment in what this thread plans inside; `began` is when its transaction did."""
    before = _statement.moment
    _statement.moment = StatementTime(began)
    try:
        yield _statement.moment
    finally:
        _statement.moment = before
