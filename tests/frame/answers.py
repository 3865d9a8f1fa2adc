"""Tables for tests of dataframe calls, and the assertion: a frame's answer is that of a query in DuckDB."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.compare import difference, frame_answer, ordering, run_duckdb

SALES = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6, 7],
        "shop": ["a", "b", "a", None, "b", "a", "c"],
        "day": [date(2024, 1, d) for d in (5, 3, 9, 1, 7, 9, 31)],
        "sold": [3, 5, None, 4, 1, 9, 0],
        "price": pa.array(
            [None if p is None else Decimal(p) for p in ("1.50", "2.25", None, "9.99", "0.01", "4.00", "-3.10")],
            pa.decimal128(10, 2),
        ),
        "weight": [1.0, float("nan"), 0.5, None, 2.0, 3.0, -0.0],
        "flag": [True, False, None, True, True, False, None],
    }
)  # fmt: skip
QUOTES = pa.table(
    {
        "name": ["a", "a", "b", "b", None],
        "day": [date(2024, 1, d) for d in (4, 9, 1, 8, 2)],
        "quote": [10, 20, 30, 40, 50],
    }
)
TEXTS = pa.table(
    {
        "t": ["Oslo", " ros é ", "", None, "a,b,,c", "x1y22", "ÅSE"],
        "u": ["o", "s", "", "a", ",", "y", None],
    }
)
MOMENTS = pa.table(
    {
        "d": [date(2024, 2, 29), date(1999, 12, 31), None],
        "m": [datetime(2024, 2, 29, 23, 59, 58, 123456), datetime(1969, 7, 20, 1, 2, 3), None],
    }
)
LISTS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "l": pa.array([[3, 1, None, 2], [], None, [5]], pa.list_(pa.int64())),
        "w": pa.array([["a", "b"], [], ["c", None], None], pa.list_(pa.string())),
        "s": pa.array(
            [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None, {"x": 4, "y": None}],
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
        ),
    }
)
TABLES = {"sales": SALES, "quotes": QUOTES, "texts": TEXTS, "moments": MOMENTS, "lists": LISTS}


def assert_duckdb_says(frame: Any, query: str) -> None:
    """Names, types, NULLs and rows are DuckDB's; the order too where the query has one."""
    expected = run_duckdb(query, TABLES)
    problem = difference(expected, frame_answer(frame), ordering(query, expected.column_names))
    assert problem is None, f"{problem}\n\n{query}"
