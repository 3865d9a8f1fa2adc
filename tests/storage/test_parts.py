"""Parts of a table's rows: what a scan of one gives is what a slice of the table has, however it is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.storage.tables.parquet import ParquetTable
from tests.compare import backends_at_hand, connected

ROWS, GROUP = 1000, 70
PARTS = [(0, ROWS), (0, 1), (5, 60), (69, 71), (70, 140), (300, 999), (699, 701), (650, 655), (400, 400), (999, 1000)]  # fmt: skip
NAMES = ["a", "b", "ü"]
TABLE = pa.table({
    "id": range(ROWS), "few": [NAMES[i % 3] for i in range(ROWS)],
    "text": [None if i % 11 == 0 else f"t{i * 7919 % ROWS}" for i in range(ROWS)],
    "value": [None if i % 7 == 0 else i / 3 for i in range(ROWS)],
})  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    for number, start in enumerate((0, 700)):
        rows = TABLE.slice(start, 700 if start == 0 else ROWS)
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=GROUP)
    return replace(ParquetTable.open([str(tmp_path / "*.parquet")]), name="t", settled=True)


@pytest.mark.by_day
@pytest.mark.parametrize("device", backends_at_hand())
@pytest.mark.parametrize("fuse", ["always", "never"])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_a_slice(
    part: tuple[int, int], fuse: str, device: str, table: ParquetTable
) -> None:
    expected = TABLE.slice(part[0], part[1] - part[0])
    with connected(device=device, fuse=fuse) as connection:
        connection.catalog.put(table.part(*part))
        for _ in range(2):  # read, and from the cache
            assert connection.sql("select * from t").to_arrow().to_pylist() == expected.to_pylist()
            (found,) = connection.sql(
                "select count(*), min(id), max(id), sum(id) from t"
            ).fetchall()
            ids = expected["id"].to_pylist()
            assert found == (len(ids), *((min(ids), max(ids), sum(ids)) if ids else [None] * 3))
        some = connection.sql("select id, text from t where id between 68 and 705").to_arrow()
        kept = [{"id": r["id"], "text": r["text"]} for r in expected.to_pylist() if 68 <= r["id"] <= 705]  # fmt: skip
        assert some.to_pylist() == kept
        limited = connection.sql("select few, id from t limit 3").to_arrow().to_pylist()
        assert limited == expected.select(["few", "id"]).slice(0, 3).to_pylist()


def test_a_part_and_its_table_do_not_share_what_is_cached(table: ParquetTable) -> None:
    query = "select count(*), sum(id) from t where id < 100"
    with connected(fuse="always") as connection:
        for rows in (table, table.part(10, 90), table.part(20, 30), table):
            connection.catalog.put(rows)
            first, end = rows.rows or (0, 100)
            assert connection.sql(query).fetchall()[0] == (end - first, sum(range(first, end)))


def test_a_part_is_streamed(table: ParquetTable) -> None:
    with connected(fuse="always", memory_limit="40kB", column_cache_limit="1kB") as connection:
        connection.catalog.put(table.part(33, 905))
        query = "select few, count(*), sum(id) from t group by few order by few"
        found = connection.sql(query).to_arrow().to_pylist()
    ids = [[i for i in range(33, 905) if i % 3 == g] for g in range(3)]
    assert [tuple(row.values()) for row in found] == [
        (n, len(i), sum(i)) for n, i in zip(NAMES, ids, strict=True)
    ]


def test_parts_take_what_their_rows_take(table: ParquetTable) -> None:
    whole, parts = table.sizes, [table.part(0, 333).sizes, table.part(333, ROWS).sizes]
    for source in ("id", "few", "text"):
        assert sum(p.whole([source]) for p in parts) == pytest.approx(whole.whole([source]), abs=9)
