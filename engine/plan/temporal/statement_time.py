"""The time that a statement takes for now: the same in all of it, and in all statements of a transaction.

Statements have it as a constant, so that filters on it skip files and blocks; a plan made with it is not kept for the next run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial

import numpy as np

from . import zones
from .ticks import Array

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


def _local(time: datetime, zone: str | None = None) -> datetime:
    micros: Array = np.array([time.replace(tzinfo=None)], "datetime64[us]").astype(np.int64)
    shown = zones.zone(zone or zones.session()).local(micros)
    local: datetime = shown.astype("datetime64[us]")[0].item()
    return local


@contextmanager
def of_statement(began: datetime | None) -> Iterator[StatementTime]:
    """Let `now` be one moment in what this thread plans inside; `began` is when its transaction did."""
    before = _statement.moment
    _statement.moment = StatementTime(began)
    try:
        yield _statement.moment
    finally:
        _statement.moment = before
