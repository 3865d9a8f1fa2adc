"""Shapes of queries that TPC-H does not have, over its tables: a file a shape, at least four queries in each.

The queries were frozen when the suite was complete (`FROZEN`, checked by a test): nothing is to be tuned for them by changing them,
and what comes later belongs into a list of its own.  A title with `[weak]` marks the shapes in which an independent run found the
engine least ahead of DuckDB.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from benchmarks.titled import titled
from benchmarks.tpch import TABLES

__all__ = ["FROZEN", "TABLES", "digest", "queries", "weak"]

FOLDER = Path(__file__).parent
FROZEN = "75e7845b3de959a108f67a68764e37eeff05179b86b4cf19ee92b7d6aef8987a"


def queries(scale: float) -> dict[str, str]:
    """Name to text, in order: a shape's file and the number of the query in it; none depends on the scale."""
    return {name: text for name, (_, text) in _read().items()}


def weak() -> set[str]:
    """The names of the queries marked as weak."""
    return {name for name, (title, _) in _read().items() if title.endswith("[weak]")}


def digest() -> str:
    """The SHA-256 of all queries with their titles."""
    return hashlib.sha256(repr(_read()).encode()).hexdigest()


def _read() -> dict[str, tuple[str, str]]:
    return {
        f"{path.stem}{number}": found
        for path in sorted(FOLDER.glob("*.sql"))
        for number, found in enumerate(titled(path), 1)
    }
