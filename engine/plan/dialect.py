"""How SQL is read where settings choose: what a divisor of 0, `/` between numbers, `->` and a subquery of several rows mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..records import dataclass


@dataclass(frozen=True)
class SqlReading:
    """The settings of this kind, as who binds asks for them."""

    zero_fails: bool = True
    divides_whole: bool = False  # `/` is `//`
    has_arrows: bool = False  # x -> x + 1 is a lambda
    rows_fail: bool = True  # of a subquery as a value that has several


# What DuckDB has as extensions and is part of Fuseline
BUILT_IN = {
    "core_functions": "Core function library",
    "httpfs": "Adds support for reading and writing files over a HTTP(S) connection",
    "icu": "Adds support for time zones and collations using the ICU library",
    "json": "Adds support for JSON operations",
    "parquet": "Adds support for reading and writing parquet files",
}
_DEFAULT = SqlReading()
_dialect: ContextVar[SqlReading] = ContextVar("dialect", default=_DEFAULT)


def dialect() -> SqlReading:
    """Return the dialect of the statement that is bound."""
    return _dialect.get()


@contextmanager
def read_in(chosen: SqlReading) -> Iterator[None]:
    """Have what is bound inside read so."""
    token = _dialect.set(chosen)
    try:
        yield
    finally:
        _dialect.reset(token)
