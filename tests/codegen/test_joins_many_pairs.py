"""Joins with more than 2**31 pairs of rows: counted where nothing stores them, a clear error where they come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError

COUNTED_ROWS = 47_000  # the square is more than 2**31
# More pairs than the memory of a host holds, or than the rows of a table on a device, but not all memory of that
LISTED_ROWS = {"cpu": 200_000, "gpu": 70_000}
COUNTED = {
    "pairs": ("select count(*) from t join u on t.k = u.k", COUNTED_ROWS**2),
    "values": ("select count(w), min(v), max(w) from t join u on t.k = u.k", COUNTED_ROWS**2),
    "left": ("select count(*) from t left join u on t.k = u.k", COUNTED_ROWS**2),
    "one side": ("select count(*), sum(v) from t where k in (select k from u)", COUNTED_ROWS),
}


def connect(backend: str, fuse: str, rows: int) -> Any:
    connection = fuseline.connect(backend, fuse=fuse)
    for name, value in ("tv", "uw"):
        connection.register(name, pa.table({"k": np.full(rows, 7), value: np.arange(rows)}))
    return connection


@pytest.mark.by_day(2)
@pytest.mark.parametrize("what", COUNTED)
def test_more_pairs_than_2_31_are_counted(what: str, backend: str) -> None:
    query, expected = COUNTED[what]
    with connect(backend, "always", COUNTED_ROWS) as connection:
        assert connection.execute(query).fetchone()[0] == expected


@pytest.mark.parametrize(
    ("device", "rows"),
    [
        pytest.param("gpu", "count(*)", marks=pytest.mark.gpu),
        pytest.param("gpu", "v, w", marks=pytest.mark.gpu),
        ("cpu", "v, w"),
    ],
)
def test_more_rows_than_2_31_that_come_out_are_an_error(
    device: str, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators make pairs even where kernels count them; on a host in pieces, all of which are too many for a result."""
    if device == "cpu":
        monkeypatch.setattr("fuseline.runtime.memory.host_memory", lambda: 1 << 28)
    query = f"select {rows} from t join u on t.k = u.k"
    with connect(device, "never", LISTED_ROWS[device]) as connection:
        with pytest.raises(FuselineError, match=r"makes .*rows|ran out of (GPU|host) memory"):
            connection.sql(query).to_arrow()  # a cursor would give them in pieces
        assert connection.execute("select count(*) from t").fetchone() == (LISTED_ROWS[device],)
