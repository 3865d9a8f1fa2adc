"""Kernels that list rows up to the last one which an order keeps, against DuckDB: bounds from samples, and rows in order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import fuseline
from fuseline.codegen.cpu import host_kernels
from fuseline.operators.cpu.pipeline import first_rows
from tests.compare import assert_same_as_duckdb

ROWS = 4000
NAN = float("nan")
MIXED = [n * 7919 % ROWS for n in range(ROWS)]
T = pa.table(
    {
        "id": list(range(ROWS)),
        "pair": [n // 2 - 100 for n in range(ROWS)],
        "mixed": MIXED,
        "few": [n % 3 for n in MIXED],
        "small": pa.array([(-(2**31), 2**31 - 1, 0, n)[n % 4] for n in MIXED], pa.int32()),
        "large": [(-(2**63), 2**63 - 1, 0, n)[n % 4] for n in MIXED],
        "part": [None if n % 3 else n for n in MIXED],
        "rare": [n if n % 1000 == 0 else None for n in MIXED],
        "none": pa.nulls(ROWS, pa.int64()),
        "d": [(None, NAN, 0.5 - n, -0.0, float(n), float("inf"))[n % 6] for n in MIXED],
        "price": pa.array([Decimal(n * 3 - 500) for n in MIXED], pa.decimal128(15, 2)),
        "day": pa.array(MIXED, pa.int32()).cast(pa.date32()),
        "text": [f"text {n}" for n in MIXED],
        "p": [n % 500 for n in MIXED],
    }
)
U = pa.table({"q": list(range(400)), "v": [n * 31 % 400 for n in range(400)]})
TABLES = {"t": T, "u": U, "empty": T.slice(0, 0)}
QUERIES = (
    "select id, text from t order by mixed limit 7",
    "select mixed * 2 - 1 as e, id from t order by e desc, id limit 7 offset 3",
    "select id, mixed, text from t where few = 1 order by mixed desc limit 5",
    "select id, few from t order by few, id limit 11",
    "select id, small from t order by small, id limit 9",
    "select id, small from t order by small desc, id limit 9",
    "select id, large from t order by large, id limit 9",
    "select id, large from t order by large desc, id limit 1200",
    "select id, part from t order by part nulls first, id limit 8",
    "select id, part from t order by part desc nulls last, id limit 8",
    "select id, rare from t order by rare nulls last, id limit 8",
    "select id, rare from t order by rare desc nulls first, id limit 8",
    "select id, none from t order by none, id limit 8",
    "select id, d from t order by d, id limit 6",
    "select id, d from t order by d desc, id limit 900",
    "select id, d from t order by d desc nulls last, id limit 6",
    "select id, d * 2 as e from t where few = 1 order by e desc, id limit 6",
    "select id, price * (1 - price) as e from t order by e, id limit 6",
    "select id, day from t order by day desc, id limit 6",
    "select id, day + 3 as later from t where few <> 0 order by later, id limit 6",
    "select id, year(day) as y from t order by y desc, id limit 6",
    "select id, text from t order by id limit 7",
    "select id, text from t where few = 2 order by id desc limit 30 offset 40",
    "select pair, id from t where few = 2 order by pair, id desc limit 9",
    "select pair, id from t where few = 2 order by pair desc, id limit 9",
    "select pair, id from t where mixed > 3990 order by pair desc, id limit 9",
    "select pair, id from t where mixed > 3990 order by pair, id limit 90",
    "select id, text from t where mixed < 0 order by id limit 7",
    "select id from t order by mixed limit 0",
    "select id, text from empty order by mixed limit 7",
    "select id, v from t join u on p = q where few = 1 order by v * 3, id limit 7",
    "select id, v from t left join u on p = q order by id desc limit 7",
    "select id, v from t join u on p < 3 and p = q order by mixed + v desc, id limit 7",
    "select id, cast(text[6:] as integer) as n from t order by mixed limit 7",
    "select id from t order by mixed + id, id limit 300",
)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for millions of rows is done for thousands."""
    monkeypatch.setattr(first_rows, "FIRST_SAMPLE", 16)
    monkeypatch.setattr(first_rows, "SAMPLED_RUNS", 4)
    monkeypatch.setattr(first_rows, "FEW_LISTED", 64)
    monkeypatch.setattr(first_rows, "FIRST_STRETCH", 16)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_first_rows(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("never", "always"))


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each call of a kernel lists."""
    counts: list[int] = []
    listing = host_kernels.list_rows

    def watched(*given: object) -> object:
        found = listing(*given)  # type: ignore[arg-type]
        counts.append(0 if found is None else len(found[0]))
        return found

    monkeypatch.setattr(host_kernels, "list_rows", watched)
    yield counts
    counts.clear()


@pytest.mark.parametrize(
    "query",
    [
        "select id from t order by mixed * 2 desc limit 3",
        "select id, text from t where few = 1 order by mixed limit 3",
        "select id, text from t where few = 1 order by id desc limit 3",
        "select id, v from t join u on p = q order by mixed - v limit 3",
        "select id, length(text) % 7 as r, text like '%1' as o from t where few = 1 order by mixed limit 3",
        "select id, mixed * 2 as e, left(text, 2) as l, month(day) as m from t where few = 1 order by mixed desc limit 3",
    ],
)
def test_few_rows_are_listed(query: str, listed: list[int]) -> None:
    with fuseline.connect(device="cpu", fuse="always") as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        connection.sql(query).to_arrow()
    assert listed
    assert sum(listed) < ROWS / 4


LAST = ROWS - 1


@pytest.mark.parametrize("column", ["cast(text as integer)", "big + 1", f"k // ({LAST} - k)", f"big % (k - {LAST})", "left(text, big)"])  # fmt: skip
def test_a_column_that_may_raise_is_computed_in_all_rows(column: str) -> None:
    values = {"text": ["1"] * LAST + ["x"], "big": [2] * LAST + [2**63 - 1]}
    texts = pa.table({"k": list(range(ROWS)), **values})
    query = f"select k, {column} as n from t where k >= 0 order by k + 1 limit 3"
    for fuse in ("never", "always"):
        with fuseline.connect(device="cpu", fuse=fuse) as connection:
            connection.register("t", texts)
            with pytest.raises(fuseline.FuselineError):
                connection.sql(query).to_arrow()
