"""Runs of row groups: where tables are cut into them, and what names them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.operators.scan_runs import cut, plain_bytes, run_at, selected, smaller
from fuseline.plan.expr import new_column
from fuseline.plan.physical import ParquetScan, RowGroups
from fuseline.storage.tables.column_chunks import places_of
from fuseline.storage.tables.parquet import ParquetTable

ROWS, GROUP = 1000, 10


def scan_of(folder: Path, keys: np.ndarray, files: int = 1) -> ParquetScan:
    """Return a scan of tables in row groups of 10 rows, of 80 bytes each."""
    for number, part in enumerate(np.array_split(keys, files)):
        pq.write_table(pa.table({"k": part}), folder / f"{number}.parquet", row_group_size=GROUP)
    table = ParquetTable.open([str(folder / "*.parquet")])
    return ParquetScan(table, (new_column("k", table.types["k"]),), ("k",))


@pytest.mark.parametrize("files", [1, 3])
def test_runs_and_their_places(tmp_path: Path, files: int) -> None:
    scan = scan_of(tmp_path, np.arange(ROWS), files)
    places = places_of(scan.table, selected(scan))
    assert places.tolist() == list(range(len(places)))
    assert run_at(scan.table, places) == selected(scan)
    assert places_of(scan.table, run_at(scan.table, places[30:70])).tolist() == list(range(30, 70))


def test_keys_do_not_go_on_in_the_next_run(tmp_path: Path) -> None:
    """Every third row group ends with a key; a run of ten ends with one of its last five."""
    keys = np.repeat(np.arange(ROWS), 30)[:ROWS] + np.arange(ROWS) // 30
    runs = cut(scan_of(tmp_path, keys), 10 * 80)
    assert [len(run[0].groups) for run in runs] == [9] * 10 + [10]


@pytest.mark.parametrize("keys", [np.arange(ROWS) % 7, np.zeros(ROWS, int), np.arange(ROWS)[::-1]])
def test_runs_are_as_long_as_there_is_room_where_no_key_ends(
    tmp_path: Path, keys: np.ndarray
) -> None:
    runs = cut(scan_of(tmp_path, keys), 10 * 80)
    assert [len(run[0].groups) for run in runs] == [10] * 10


def test_smaller_runs_have_the_same_rows(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, np.arange(ROWS))
    given = [(RowGroups(0, tuple(range(40, 80))),), (RowGroups(0, tuple(range(80, 100))),)]
    found = smaller(scan, given)
    assert found is not None
    assert [g for run in found for part in run for g in part.groups] == list(range(40, 100))
    assert max(plain_bytes(scan, run) for run in found) == 10 * 80
    single = [(RowGroups(0, (g,)),) for g in range(3)]
    assert smaller(scan, single) is None
