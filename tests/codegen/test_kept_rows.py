"""Kernels that leave out rows in whose zones no key of a build side lies, against DuckDB, and how many they leave out."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.codegen.cpu import host_kernels, kept_rows
from fuseline.operators.cpu.pipeline import pipeline
from fuseline.storage.columns import row_zones
from tests.compare import assert_same_as_duckdb

ROWS = 4001
SALES = pa.table(
    {
        "day": pa.array([n // 10 + 100 for n in range(ROWS)], pa.int32()),
        "part_day": [None if n % 7 == 0 or 800 < n < 1000 else n // 10 + 100 for n in range(ROWS)],
        "step_day": [5 * (n // 10) - 3000 for n in range(ROWS)],
        "date": pa.array([n // 10 for n in range(ROWS)], pa.int32()).cast(pa.date32()),
        "mixed": [n * 7919 % ROWS for n in range(ROWS)],
        "price": pa.array([n // 10 for n in range(ROWS)], pa.int64())
        .cast(pa.decimal128(20, 0))
        .cast(pa.decimal128(12, 2)),
        "back": [None if n % 5 == 0 else 7 * (ROWS - n) for n in range(ROWS)],
        "text": [f"text {n // 10:04d}" for n in range(ROWS)],
        "pair": [n // 2 for n in range(ROWS)],
    }
)
DAYS = pa.table(
    {
        "d": [n + 90 for n in range(450)],
        "date": pa.array([n - 10 for n in range(450)], pa.int32()).cast(pa.date32()),
        "month": [n // 30 for n in range(450)],
        "name": [f"text {n:04d}" for n in range(450)],
    }
)
TWICE = pa.table({"d": [150, 150, 151, None, 499, 800], "v": [1, 2, 3, 4, 5, 6]})
TABLES = {"sales": SALES, "days": DAYS, "twice": TWICE}
QUERIES = (
    "select count(*), sum(mixed) from sales join days on day = d where month = 3",
    "select month, count(*), sum(mixed) from sales join days on day = d where month in (2, 9) group by 1 order by 1",
    "select count(*), sum(mixed) from sales join days on part_day = d where month = 3",
    "select count(*), sum(mixed) from sales join days on step_day = d where month = 3",
    "select count(*), sum(mixed) from sales join days on sales.date = days.date where month in (0, 13)",
    "select count(*), sum(mixed) from sales join days on day = d where month = 99",
    "select mixed, month from sales join days on day = d where month = 99",
    "select mixed, month from sales join days on day = d where month = 5 and mixed < 900 order by 1",
    "select mixed, month from sales join days on day = d where month > 11 order by mixed * 3 limit 5",
    "select pair, month from sales join days on day = d where month > 11 order by pair, month, mixed limit 5",
    "select count(*), sum(mixed) from sales where day in (select d from days where month = 2)",
    "select count(*), sum(mixed) from sales where day not in (select d from days where month = 2)",
    "select count(*), sum(mixed), sum(d) from sales left join days on day = d and month = 2",
    "select count(*), sum(mixed), sum(v) from sales join twice on day = d",
    "select count(*), sum(mixed), sum(v) from sales join twice on part_day is not distinct from d",
    "select mixed, v from sales join twice on day = d order by all",
    "select mixed, count(*) n from sales join days on day = d where month = 4 group by 1 order by 1",
    "select pair, count(*) n from sales join twice on day = d group by 1 order by 1",
    "select count(*) from sales join days on text = name where month = 3",
    "select count(*), sum(v) from sales join days on day = days.d join twice on days.d = twice.d where month = 2",
    "select count(*) from twice t where exists (select 1 from sales where day = t.d and mixed > 9)",
    "select count(*) from days where d in (select day from sales join twice on day = twice.d)",
)


COMPARED = (
    "select count(*), sum(mixed) from sales where day between 120 and 130",
    "select * from sales where day = 150",
    "select mixed from sales where part_day = 250 and step_day < -2000",
    "select mixed, part_day from sales where 490 <= part_day and mixed > 100",
    "select mixed from sales where back > 27900",
    "select count(*), max(back) from sales where back <= 700 and back >= 70",
    "select count(*), sum(mixed) from sales where date < date '1970-01-11' and date > date '1970-01-05'",
    "select count(*), sum(mixed) from sales where price = 17 or price < 0",
    "select count(*), sum(mixed) from sales where price >= 17.5 and price < 19.25",
    "select mixed from sales where step_day = -2999",
    "select mixed from sales where day > 100000",
    "select count(*), count(part_day) from sales where part_day is null or part_day = 300",
    "select count(*), sum(mixed) from sales where not (day > 120) and day <> 110",
    "select count(*) filter (where day = 150), count(*) from sales",
    "select pair, count(*) n from sales where day < 130 group by 1 order by 1",
    "select mixed * 3 as m, count(*) n from sales where day < 130 group by 1 order by 1",
    "select distinct pair from sales where day between 200 and 202 order by 1",
    "select mixed, day from sales where day >= 400 order by mixed limit 7",
    "select mixed, day from sales where day >= 400 limit 3 offset 5",
    "select count(*), sum(mixed) from sales left join twice on day = d and day < 130",
    "select count(*), sum(v), sum(mixed) from sales full join twice on day = d and day < 152 and v > 1",
    "select count(*), sum(mixed), sum(d) from twice left join sales on day = d and day between 140 and 160",
    "select count(*), sum(a.mixed + b.pair) from sales a join sales b on a.mixed = b.mixed where a.day < 130 and b.day > 110",
    "select count(*) from days where d not in (select day from sales where day < 300)",
)


@pytest.fixture(autouse=True)
def small_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for millions of rows is done for thousands, by two threads."""
    monkeypatch.setattr(row_zones, "ZONE_ROWS", 16)
    monkeypatch.setattr(kept_rows, "ZONE_ROWS", 16)
    monkeypatch.setattr(pipeline, "ROWS_WORTH_A_LOOK", 1)
    monkeypatch.setattr(host_kernels, "ROWS_A_RANGE", 64)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES + COMPARED)
def test_rows_are_left_out(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("never", "always"))


def _gone_through(query: str) -> int:
    with fuseline.connect(device="cpu", fuse="always") as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        frame = connection.sql(query)
        frame.to_arrow()
        receipts = [node.receipt for node in frame.profile.nodes if node.receipt is not None]
    assert all(receipt.fused for receipt in receipts)
    return max(receipt.rows for receipt in receipts)


@pytest.mark.parametrize(
    "query", [*(QUERIES[n] for n in (0, 1, 2, 4, 7, 10)), *COMPARED[:7], *COMPARED[8:11]]
)
def test_few_rows_are_gone_through(query: str) -> None:
    assert _gone_through(query) < ROWS / 4


@pytest.mark.parametrize(
    "query",
    [QUERIES[11], QUERIES[12], "select count(*) from sales join days on mixed = d where month = 3"],
)
def test_all_rows_are_gone_through(query: str) -> None:
    assert _gone_through(query) == ROWS
