"""Timestamps that are no microseconds, and INT96, on the GPU."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import DataError

pytestmark = pytest.mark.gpu
INT96 = [datetime(3000, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 456789), None, datetime(1000, 1, 1)]


def test_int96_does_not_wrap(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    table = pa.table({"t": pa.array(INT96, pa.timestamp("us")), "x": [1, 2, 3, 4]})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    with fuseline.connect(device="gpu") as connection:
        connection.read_parquet(path, "p")
        assert connection.sql("select t from p order by x").fetchall() == [(t,) for t in INT96]
        assert connection.sql("select sum(x), max(t) from p").fetchall() == [(10, INT96[0])]


@pytest.mark.parametrize("in_parquet", [False, True])
def test_nanoseconds_are_refused_or_whole(tmp_path: Path, in_parquet: bool) -> None:
    for values, whole in (([1, 2, 999], False), ([1000, None, 5000], True)):
        table = pa.table({"t": pa.array(values, pa.timestamp("ns"))})
        with fuseline.connect(device="gpu") as connection:
            if in_parquet:
                pq.write_table(table, tmp_path / f"{whole}.parquet")
                connection.read_parquet(tmp_path / f"{whole}.parquet", "p")
            else:
                connection.register("p", table)
            if whole:
                assert connection.sql("select count(distinct t) from p").fetchall() == [(2,)]
                continue
            with pytest.raises(DataError, match="nanoseconds"):
                connection.sql("select count(distinct t) from p").fetchall()
