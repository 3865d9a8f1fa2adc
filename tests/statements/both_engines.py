"""Runs statements one after the other here and in DuckDB, and compares what each answers and leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

import fuseline
from fuseline.errors import FuselineError

ERROR = "an error"


def outcome(connection: Any, text: str) -> Any:
    """Return names, types and rows of an answer, how many rows were changed, or that there is an error."""
    try:
        cursor = connection.execute(text)
    except (FuselineError, duckdb.Error):
        return ERROR
    described = cursor.description or []
    if not described:
        return max(cursor.rowcount, 0)
    rows = sorted(cursor.fetchall(), key=repr)
    if described[0][0] in ("Count", "Success"):  # as DuckDB answers statements that give no rows
        return rows[0][0] if rows else 0
    return [(name, str(kind)) for name, kind, *_ in described], rows


def assert_same_steps(
    steps: Sequence[str], watched: Sequence[str] = (), **settings: object
) -> None:
    """Run steps in both engines; after each one the answers are the same, and so are those of the queries `watched`."""
    with fuseline.connect(**settings) as ours, duckdb.connect() as theirs:
        for text in steps:
            mine, yours = outcome(ours, text), outcome(theirs, text)
            assert mine == yours, text
            for query in watched:
                assert outcome(ours, query) == outcome(theirs, query), (text, query)
