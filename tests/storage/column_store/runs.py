"""Runs of queries over a Parquet file with a column store, and where they took its columns from."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import fuseline

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 30_000
AGGREGATES = "select k, sum(n), sum(m), min(t), max(f), count(b) from t group by k order by k"
QUERIES = (
    AGGREGATES,
    "select l, u from t where n = 77 order by u",
    "select max(u) from t where k = 'b'",
)


def table(factor: int = 1) -> pa.Table:
    numbers = np.arange(ROWS) * factor
    return pa.table({
        "n": numbers, "k": pa.array(["a", "b", None])
        .take(pa.array(numbers % 3)), "u": [f"text number {i} of many" for i in numbers],
        "m": pa.array([Decimal(int(i) % 1000).scaleb(-2) for i in numbers], pa.decimal128(12, 2)),
        "t": pa.array(numbers * 10**6, pa.timestamp("us")), "f": numbers / 7,
        "b": pa.array(numbers % 2 == 0, mask=numbers % 5 == 0), "l": [[int(i), None] for i in numbers],
    })  # fmt: skip


def answers(source: Path, store: Path | None, **settings: object) -> list[Any]:
    return run(source, store, **settings)[0]


def run(
    source: Path, store: Path | None, queries: tuple[str, ...] = QUERIES, **settings: object
) -> tuple[list[Any], set[tuple[str, str]], dict[str, str]]:
    """Return what queries of a new connection give, which columns they lifted from which tier, and why not from the store."""
    given, lifted, reasons = [], set(), {}
    with fuseline.connect("cpu", column_store=store, **settings) as connection:
        connection.read_parquet(str(source), "t")
        for query in queries:
            frame = connection.sql(query)
            given.append(frame.fetchall())
            for each in frame.profile.lifted or ():
                lifted.add((each.column, each.tier))
                assert each.bytes > 0
                if each.reason:
                    reasons[each.column] = each.reason
    return given, lifted, reasons


def tiers(lifted: set[tuple[str, str]]) -> set[str]:
    return {tier for _, tier in lifted}


def files(store: Path) -> list[Path]:
    return sorted(store.glob("*.column"))
