"""Connections to DuckDB in which a query has nothing of those before it."""

from __future__ import annotations

import atexit
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import duckdb

# A new database costs 35 ms, and a new catalog in the one there is 4.  So only statements that reach beyond one get a database,
# and queries that may tell of it.
_WITHIN = re.compile(
    r"(create (or replace )?(temp )?(table|view|type|macro|function|sequence|index)|alter table|drop (table|view)|insert|update|delete) [^;]*;?\s*",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"memory|schema|database|catalog|duckdb_|pg_|pragma|describe|show|summarize|current_",
    re.IGNORECASE,
)


def connection_for(
    query: str, setup: Sequence[str]
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    if not setup:
        return database().cursor()
    return _catalog() if _stays_within(query, setup) else duckdb.connect()


def _stays_within(query: str, setup: Sequence[str]) -> bool:
    """Whether statements change a catalog alone, and no more is asked for than what they made."""
    within = all(_WITHIN.fullmatch(statement.strip()) for statement in setup)
    return within and not any(map(_TELLS.search, (query, *setup)))


@contextmanager
def _catalog() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an empty catalog, which ends with it."""
    with database().cursor() as connection:
        name = f"made{next(_numbers)}"
        connection.execute(f"attach ':memory:' as {name}; use {name}")
        try:
            yield connection
        finally:
            connection.execute(f"use memory; detach {name}")


_numbers = itertools.count()  # threads may have some at a time


@cache
def database() -> duckdb.DuckDBPyConnection:
    """An empty database; views and registered tables live in the cursor that made them.

    On one thread it takes rows in order, which `last`, and `mode` of values that tie, depend on.
    """
    atexit.register(database.cache_clear)  # DuckDB reports what is still open when Python ends
    return duckdb.connect(config={"threads": 1})
