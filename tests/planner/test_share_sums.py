"""Sums that differ in a constant, against DuckDB: where one sum serves all of them, and where it may not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import OutOfRange
from fuseline.planner.rules import share_sums
from tests.compare import assert_same_as_duckdb, connected

SUMS = "sum(x) as a, sum(x + 1) as b, sum(2 + x) as c, sum(x - 40) as d, sum(x + y) as e, avg(x + 1) as f"
BOTH = ("always", "never")


@pytest.mark.parametrize("query", [
    f"select {SUMS} from t",
    f"select k, {SUMS} from t group by k order by k",
    f"select k, {SUMS} from t where x > 3 group by rollup (k) having sum(x + 2) > 10 order by k",
    f"select {SUMS} from t where x > 1000",
    "select sum(x + 1) filter (where y > 2) as a, sum(x + 2) filter (where y > 2) as b, sum(x + 3) filter (where y > 2) as c from t",
    "select sum(distinct x + 1) as a, sum(distinct x + 2) as b, sum(distinct x + 3) as c from t",
    "select sum(x::bigint + 9000000000) as a, sum(x::bigint - 9000000000) as b, sum(x::bigint + 1) as c from t",
])  # fmt: skip
def test_answers(query: str) -> None:
    numbers = [None if n % 7 == 3 else n % 23 - 5 for n in range(200)]
    tables = {
        "t": pa.table({
            "x": pa.array(numbers, pa.int8()), "y": pa.array([n % 5 for n in range(200)], pa.int32()),
            "k": [n % 3 for n in range(200)],
        })
    }  # fmt: skip
    assert_same_as_duckdb(query, tables, fuse=BOTH)


@pytest.mark.parametrize(("most", "shared"), [(100, True), (32_766, False)])
def test_bounds_of_files_decide(most: int, shared: bool, tmp_path: Path) -> None:
    """A sum of the column would not notice that a number with its constant is beyond SMALLINT."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": pa.array([1, None, most], pa.int16())}), path)
    with connected({}) as connection:
        connection.read_parquet(str(path), "t")
        frame = connection.sql("select sum(x + 1) as a, sum(x + 2) as b, sum(x + 3) as c from t")
        assert ("count(x)" in frame.explain()) is shared
        if shared:
            assert frame.fetchall() == [(most + 3, most + 5, most + 7)]
        else:
            with pytest.raises(OutOfRange):
                frame.fetchall()


def test_bounds_are_asked_for_once_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at all columns of a table for each sum took 1.2 s of planning with 3,000 of them."""
    asked: list[int] = []
    bounds = share_sums._bounds
    monkeypatch.setattr(
        share_sums,
        "_bounds",
        lambda columns, plan: asked.append(len(columns)) or bounds(columns, plan),
    )
    table = pa.table({f"c{i}": [i, i + 1] for i in range(50)})
    many = ", ".join(f"sum(c{i} + {k})" for i in range(20) for k in range(4))
    with connected({"t": table}) as connection:
        connection.sql(
            f"select {many}, {', '.join(f'sum(c{i})' for i in range(20, 50))} from t"
        ).explain()
    assert 20 in asked
    assert len(asked) < 10, "more than a few times the rule is tried"
