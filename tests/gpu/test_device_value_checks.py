"""Timestamps that are no microseconds, and INT96, on the GPU."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import connected

pytestmark = pytest.mark.gpu
INT96 = [datetime(3000, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 456789), None, datetime(1000, 1, 1)]


def test_int96_does_not_wrap(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    table = pa.table({"t": pa.array(INT96, pa.timestamp("us")), "x": [1, 2, 3, 4]})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    with connected({"p": path}, "gpu") as connection:
        assert connection.sql("select t from p order by x").fetchall() == [(t,) for t in INT96]
        assert connection.sql("select sum(x), max(t) from p").fetchall() == [(10, INT96[0])]


@pytest.mark.parametrize("in_parquet", [False, True])
def test_nanoseconds_are_kept(tmp_path: Path, in_parquet: bool) -> None:
    table = pa.table({"t": pa.array([1, 2, 999, 1000, None], pa.timestamp("ns"))})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    with connected({"p": path if in_parquet else table}, "gpu") as connection:
        assert connection.sql("select count(distinct t) from p").fetchall() == [(4,)]


FAR = [2**63 - 2, -9_223_372_022_400_000_000, 0, 1_700_000_000_000_000, None]
SHIFTS = (
    "interval 1 month", "interval '-13 months 40 days'", "interval 1 day", "interval '1 microsecond'",
)  # fmt: skip


@pytest.mark.parametrize("shift", [*SHIFTS, "interval '200000 years'", "interval '3000000 hours'"])
@pytest.mark.parametrize("rows", ["x < 5", "x in (3, 4, 5)"])
def test_shifts_near_the_ends_of_the_calendar_are_the_cpus(shift: str, rows: str) -> None:
    """The same values, or an error on both."""
    table = pa.table({"t": pa.array(FAR, pa.timestamp("us")), "x": [1, 2, 3, 4, 5]})
    found = []
    for device in ("cpu", "gpu"):
        with connected({"p": table}, device) as connection:
            try:
                query = f"select x, t + {shift} as u from p where {rows} order by x"
                found.append(connection.sql(query).fetchall())
            except fuseline.errors.OutOfRange:
                found.append("out of range")
    assert found[0] == found[1]


@pytest.mark.parametrize("call", ["date_sub('hour', t, u)", "date_diff('microsecond', t, u)"])
def test_differences_that_leave_64_bits_are_refused(call: str) -> None:
    table = pa.table(
        {n: pa.array(v, pa.timestamp("us")) for n, v in (("t", FAR[:1]), ("u", FAR[1:2]))}
    )
    raising = pytest.raises(fuseline.errors.OutOfRange)
    with connected({"p": table}, "gpu") as connection, raising:
        connection.sql(f"select {call} from p").fetchall()
