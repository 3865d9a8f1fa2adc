"""Joins by inequalities, whose candidates are found by sorting the smaller side."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.join import join, range_pairs
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

VALUES = {
    "integer": [3, None, -(2**63), 2**63 - 1, 0, 7, 7, -1, 5, None],
    "double": [0.0, -0.0, float("nan"), float("inf"), None, -1.5, 3.0, float("-inf"), 3.0, 2.5],
    "decimal": [Decimal("1.50"), None, Decimal("-3.25"), Decimal("9.99"), *[Decimal("2.00")] * 6],
    "date": [None, *(date(1992, 1, 1) + timedelta(37 * i % 200) for i in range(9))],
    "timestamp": [None, *(datetime(2001, 1, 1) + timedelta(hours=31 * i % 90) for i in range(9))],
    "text": ["b", None, "", "a", "ab", "b", "ä", "z", "a", "0"],
    "bytes": [b"b", None, b"", b"\xff", b"ab", b"b", b"\x00", b"zz"],
    "list": [[1, 2], None, [], [1], [None], [2, None], [0, 9], [-1]],
    "struct": [{"a": 1, "b": "x"}, None, {"a": 1, "b": "a"}, {"a": None, "b": "x"}, {"a": 0, "b": None}, {"a": 2, "b": ""}],
    "truth": [True, False, None, True, False, None, True, True, False, False],
}  # fmt: skip


def tables(kind: str, rows: int = 40) -> dict[str, pa.Table]:
    values = VALUES[kind]
    draw = np.random.default_rng(5)

    def column(count: int) -> pa.Array:
        type_ = pa.decimal128(9, 2) if kind == "decimal" else None
        picked: list[Any] = [values[i] for i in draw.integers(0, len(values), count)]
        return pa.array(picked, type_)

    many = pa.table({"id": range(rows), "v": column(rows), "w": column(rows)})
    few = pa.table({"n": range(9), "low": column(9), "high": column(9)})
    return {"many": many, "few": few, "one": few.slice(3, 1), "none": few.slice(0, 0)}


CONDITIONS = [
    "v >= low and v < high",
    "v > low and v <= high and id % 3 <> n % 2",
    "low < v",
    "high >= v and n < 7",
    "v >= low and w < high",
    "v <= low and v <= high",
    "v > low or v < high",
]


@pytest.mark.by_day
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", list(VALUES))
def test_inequalities(kind: str, condition: str, limits: SetLimits) -> None:
    given = tables(kind)
    for few in ("few", "one", "none"):
        for query in (
            f"select id, n from many join {few} on {condition} order by id, n",
            f"select n, id from {few} left join many on {condition} order by n, id",
            f"select id from many where exists (select 1 from {few} where {condition}) order by id",
            f"select id from many where not exists (select 1 from {few} where {condition}) order by id",
        ):
            assert_same_as_duckdb(query, given)
    limits(FEW_BOUNDS=0)
    assert_same_as_duckdb(f"select id, n from many join few on {condition} order by id, n", given)


@pytest.mark.by_day
@pytest.mark.parametrize("condition", CONDITIONS[1:5])
@pytest.mark.parametrize("kind", ["integer", "double", "truth", "list"])
def test_inequalities_within_keys(kind: str, condition: str, limits: SetLimits) -> None:
    limits(PAIRS_A_ROW=0)
    given = tables(kind)
    on = f"id % 4 = n % 3 and {condition}"
    for query in (
        f"select id, n from many join few on {on} order by id, n",
        f"select n, id from few left join many on {on} order by n, id",
        f"select n, id from many full join few on {on} order by n, id",
        f"select id from many where exists (select 1 from few where {on}) order by id",
        f"select n from few where not exists (select 1 from many where {on}) order by n",
        f"select id, n from many join none on {on}",
    ):
        assert_same_as_duckdb(query, given, backend="cpu", fuse=("never",))


def test_pairs_of_equal_keys_are_not_tested(
    monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("pairs were compared")

    limits(PAIRS_A_ROW=0)
    monkeypatch.setattr(join, "_satisfying", refused)
    t = pa.table({"k": [i % 3 for i in range(60)], "v": [i * 7 % 20 for i in range(60)]})
    query = "select a.k, count(*) from t a join t b on a.k = b.k and a.v < b.v group by a.k"
    assert_same_as_duckdb(query, {"t": t}, backend="cpu", fuse=("never",), ordered=False)


def test_bands_that_do_not_overlap_leave_nothing_to_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("pairs were compared")

    monkeypatch.setattr(join, "_satisfying", refused)
    given = {
        "t": pa.table({"v": list(range(100))}),
        "bands": pa.table({"b": list("cab"), "low": [50, 0, 20], "high": [90, 20, 50]}),
    }
    query = "select b, count(*), sum(v) from t, bands where v >= low and v < high group by b"
    assert_same_as_duckdb(query, given, ordered=False)


def test_pairs_come_a_bounded_number_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_pairs, "PAIRS_A_BLOCK", 7)
    given = tables("integer", 60)
    assert_same_as_duckdb("select id, n from many, few where v >= low order by id, n", given)


def test_what_may_raise_is_left_to_pairs() -> None:
    given = {
        "t": pa.table({"v": [1, 2, 3], "s": ["1", "x", "3"]}),
        "few": pa.table({"n": [1, 2], "low": [0, 2]}),
    }
    query = "select v, n from t, few where v <> 2 and s::integer >= low order by v, n"
    assert_same_as_duckdb(query, given)


def test_candidates_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bands one after the other, each row has one candidate, and not as many as there are bands."""
    found = []

    def kept(*given: Any) -> Any:
        pairs = range_pairs.range_pairs(*given)
        assert pairs is not None
        found.append(int(pairs.count.sum()))
        return pairs

    monkeypatch.setattr(join, "range_pairs", kept)
    bands = pa.table({"low": list(range(0, 1000, 10)), "high": list(range(10, 1010, 10))})
    given = {"t": pa.table({"v": list(range(1000))}), "bands": bands}
    query = "select count(*) from t, bands where v >= low and v < high"
    assert_same_as_duckdb(query, given)
    assert set(found) == {1000}


def test_without_room_for_ranges_pairs_are_compared() -> None:
    given = {
        "t": pa.table({"v": list(range(200_000))}),
        "bands": pa.table({"low": [50, 0], "high": [90, 50]}),
    }
    query = "select count(*) from t, bands where v >= low and v < high"
    with connected(given, "cpu", memory_limit="6MB") as connection:
        assert connection.sql(query).fetchall() == [(90,)]
