"""Slices whose bounds are not written, forwards and backwards."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

TABLES = {"t": {"l": [[1, 2, 3, 4], [], None, [5, None]], "n": [-1, 2, -2, -1]}}


@pytest.mark.parametrize(
    "query",
    [
        "select l[::-1], l[::-2], l[:-:-1], l[:-:2], l[2:-:-1], l[2:-:1] from t",
        "select l[:2:-1], l[:2], l[2:], l[-2:], l[:], l[:3:2], l[-1:1:-1] from t",
        "select l[::-1][:2], [x + 1 for x in l][::-1], l[:-:n] from t",
        "select [1, 2, 3][::-1], [1, 2, 3][:2:-1], ['a', 'b'][::-1]",
    ],
)
def test_bounds_that_are_not_written(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))
