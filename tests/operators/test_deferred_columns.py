"""The first rows in an order, whose other columns are gathered for them alone, against DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.operators.cpu.deferred_columns import DeferredColumns, Rows
from fuseline.operators.cpu.pipeline import finish
from tests.compare import assert_same_as_duckdb

ROWS = 600
NAN = float("nan")
T = pa.table(
    {
        "k": [n * 7919 % ROWS for n in range(ROWS)],
        "tie": [None if n % 7 == 0 else n % 3 for n in range(ROWS)],
        "d": [(None, NAN, 0.5, -0.0, float(n))[n % 5] for n in range(ROWS)],
        "text": [None if n % 11 == 0 else f"text {n} " + "x" * (n % 50) for n in range(ROWS)],
        "few": [("a", None, "c")[n % 3] for n in range(ROWS)],
        "l": [[n, None] if n % 4 else None for n in range(ROWS)],
        "p": [n % 40 if n % 9 else None for n in range(ROWS)],
    }
)
U = pa.table({"q": list(range(30)), "name": [f"name {n}" if n % 4 else None for n in range(30)]})
TABLES = {"t": T, "u": U}
QUERIES = (
    "select k, text, few, d from t where k > 20 order by k limit 10",
    "select text, d, k from t where k > 20 order by d desc nulls last, k limit 30 offset 5",
    "select few, text, k from t where k <> 3 order by tie nulls first, few, k desc limit 25",
    "select text, k from t where k > 20 order by text limit 12",
    "select k, text from t where k > 100000 order by k limit 10",
    "select k, text from t where k = 7 order by k limit 10",
    "select k, text from t where k > 20 order by k desc limit 100000",
    "select k, text from t where k > 20 order by k limit 0",
    "select k, text, name from t join u on p = q where k > 5 order by name desc, k limit 20",
    "select k, text, name, k + 1 as more from t left join u on p = q where k > 5 order by k limit 40",
    "select name, p, sum(k) as s from t left join u on p = q group by name, p order by s, p limit 9",
    "select text, k, count(*) as n from t join u on p = q group by text, k having n < 3 order by k limit 9",
    "select k, l from t where k > 20 order by k limit 4",
    "with s as (select k, text from t where k > 20) "
    "select * from (select * from s order by k limit 3) union all select k, upper(text) from s where k < 25 order by k, text",
)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for thousands of rows is done for hundreds."""
    monkeypatch.setattr(finish, "LATE_ROWS", 1)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_first_rows(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("never", "always"))


def test_columns_come_after_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[tuple[int, int | None]] = []
    picked = DeferredColumns.picked

    def watched(self: DeferredColumns, ids: Sequence[int], rows: Rows) -> object:
        found = picked(self, ids, rows)
        gathered.append((len(found[1]), len(rows)))
        return found

    monkeypatch.setattr(DeferredColumns, "picked", watched)
    assert_same_as_duckdb(QUERIES[0], TABLES, fuse=("always",), backend="cpu")
    assert gathered == [(3, 10)]  # all columns but the key


def test_what_is_computed_fails_for_rows_that_are_not_kept() -> None:
    table = pa.table({"k": range(ROWS), "text": [*map(str, range(ROWS - 1)), "no number"]})
    with fuseline.connect(device="cpu") as connection:
        connection.register("t", table)
        for fuse in ("never", "always"):
            connection.execute(f"set fuse = '{fuse}'")
            with pytest.raises(FuselineError, match="no number"):
                connection.sql(
                    "select k, cast(text as integer) as n from t where k >= 0 order by k limit 2"
                ).fetchall()


def test_who_asks_for_a_late_column_gets_all() -> None:
    asked: list[tuple[int, ...]] = []
    source = {1: pa.array([1, 2, 3]), 2: pa.array(["a", None, "c"]), 3: pa.array(["a"] * 3)}

    def gather(ids: Sequence[int], rows: Rows | None) -> list[pa.Array]:
        asked.append(tuple(ids))
        return [source[i] if rows is None else source[i].take(pa.array(rows)) for i in ids]

    late = DeferredColumns({1: source[1]}, [2, 3], gather, 3)
    assert (list(late), len(late), 2 in late, 4 in late) == ([1, 2, 3], 3, True, False)
    assert asked == []
    assert late.size([1, 2]) == source[1].nbytes + source[2].nbytes
    assert late[3].equals(source[3])
    assert asked == [(2,), (2, 3)]
    assert dict(late) == source
    assert asked == [(2,), (2, 3)]
    with pytest.raises(KeyError):
        late[4]
