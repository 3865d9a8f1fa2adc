"""The one assertion itself: what it lets pass and what it catches."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.compare import Ordering, assert_same, difference, ordering, run_duckdb
from tests.identical import identical

UNORDERED, ORDERED = Ordering(ordered=False), Ordering(ordered=True)


def one(*values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"x": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("want", "have"),
    [
        (one(1, 2, None), one(None, 2, 1)),
        (one("a", "b"), one("b", "a", kind=pa.large_string())),
        (one(0.1 + 0.2, float("nan")), one(float("nan"), 0.3)),
        (one(1.0, None), one(None, 1.0 + 1e-12)),
        (one(0.0), one(-0.0)),
        (one(float("inf")), one(float("inf"))),
        (one(2**40, kind=pa.timestamp("us")), one(2**40, kind=pa.timestamp("us"))),
        (one(kind=pa.int64()), one(kind=pa.int64())),
        (one(None, None), one(None, None)),
    ],
)
def test_same(want: pa.Table, have: pa.Table) -> None:
    assert difference(want, have, UNORDERED) is None


@pytest.mark.parametrize(
    ("want", "have", "says"),
    [
        (one(1), one(1, kind=pa.int32()), "int32 and should be int64"),
        (one(1), one(1, 1), "2 rows and should be 1"),
        (one(1, 1, 2), one(1, 2, 2), "the rows"),
        (one(1.0), one(1.0 + 1e-6), "the rows"),
        (one(0.0), one(None, kind=pa.float64()), "the rows"),
        (one(float("nan")), one(1.0), "the rows"),
        (one(Decimal("1.10")), one(Decimal("1.11")), "the rows"),
        (one(Decimal("1.10")), one(Decimal("1.100")), "decimal128(4, 3)"),
        (one("a"), one("a "), "the rows"),
        (one(1), pa.table({"y": [1]}), "the columns are"),
        (one(1).append_column("x", pa.array([2])), one(1), "the columns are"),
    ],
)
def test_different(want: pa.Table, have: pa.Table, says: str) -> None:
    assert says in str(difference(want, have, UNORDERED))


def test_loose_types_compare_values_with_a_tolerance() -> None:
    want, have = one(Decimal("1.10"), Decimal("2.00")), one(2.0, 1.1 + 1e-12)
    assert difference(want, have, UNORDERED, exact_types=False) is None
    assert difference(want, one(2.0, 1.2), UNORDERED, exact_types=False)


def test_order_counts_where_the_query_orders() -> None:
    assert difference(one(1, 2), one(2, 1), ORDERED)
    assert difference(one(1, 2), one(1, 2), ORDERED) is None


def test_rows_that_tie_may_come_in_any_order() -> None:
    want = pa.table({"k": [1, 1, 2], "v": ["a", "b", "c"]})
    assert difference(want, want.take([1, 0, 2]), Ordering(True, (0,))) is None
    assert difference(want, want.take([2, 0, 1]), Ordering(True, (0,)))
    changed = pa.table({"k": [1, 1, 2], "v": ["a", "a", "c"]})
    assert difference(want, changed, Ordering(True, (0,)))


@pytest.mark.parametrize(("query", "expected"), [
    ("select a, b from t", UNORDERED),
    ("select a, b from (select * from t order by a)", UNORDERED),
    ("with u as (from t order by a) select a, b from u order by 2, A desc", Ordering(True, (1, 0))),
    ("select a, b from t order by a + 1", ORDERED),
    ("select a, b from t order by c", ORDERED),
    ("select a, b from t order by all", ORDERED),
    ("select a, b from t union select b, a from t order by b limit 1", Ordering(True, (1,))),
    ("select x as a, y as b from t order by b, x desc", Ordering(True, (1, 0))),
    ("select x as a, x as b from t order by x", ORDERED),
    ("explain select 1", UNORDERED),
])  # fmt: skip
def test_ordering(query: str, expected: Ordering) -> None:
    assert ordering(query, ["a", "b"]) == expected


def test_two_runs_of_fuseline() -> None:
    same = one(0.0, 1.0)
    assert_same(same, one(1.0 + 1e-12, -1e-10))
    for other, options in [
        (same.rename_columns(["y"]), {}),
        (one(0, 1), {}),
        (one(1.0, 0.0), {"ordered": True}),
        (one(-0.0, 1.0), {"tolerance": 0, "near": 0}),
        (one(-1e-10, 1.0), {"near": 0}),
        (one(0.0, 1.0 + 1e-7), {}),
    ]:
        with pytest.raises(AssertionError):
            assert_same(same, other, **options)


def test_duckdb_sees_tables_parameters_and_set_up() -> None:
    answer = run_duckdb(
        "select x, y from t, u where x > $least",
        {"t": one(1, 2)},
        params={"least": 1},
        setup=["create table u (y integer)", "insert into u values (7)"],
    )
    assert answer.to_pylist() == [{"x": 2, "y": 7}]


def _long(values: list[float | None]) -> pa.Table:
    """More rows than Python would compare, in no order."""
    keys = [(7 * i) % 1009 for i in range(1009)]
    return pa.table({"v": [*values, *[0.25] * (1009 - len(values))], "k": keys})


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(("want", "have", "same"), [
    ([1.0, NAN, None], [1.0 + 1e-12, NAN, None], True), ([INF, -INF], [INF, -INF], True),
    ([1.0], [1.0 + 1e-6], False), ([INF], [1.0], False), ([INF], [-INF], False), ([NAN], [1.0], False), ([None], [0.0], False),
])  # fmt: skip
def test_floats_of_many_rows_are_compared_by_arrow_up_to_the_tolerance(
    want: list[float | None], have: list[float | None], same: bool
) -> None:
    wanted, found = _long(want), _long(have).take(pa.array(range(1008, -1, -1)))
    tolerances = [1e-9, None]
    assert identical(wanted, found, ordered=False, tolerances=tolerances) is same
    assert not identical(wanted, found, ordered=True, tolerances=tolerances)
    assert (difference(wanted, found, Ordering(ordered=False)) is None) is same


@pytest.mark.parametrize(
    "setup", [["create table t as select 1 as a"], ["set default_order = 'desc'"]]
)
def test_statements_of_one_query_are_gone_for_the_next(setup: list[str]) -> None:
    asked = "select value from duckdb_settings() where name = 'default_order'"
    before = run_duckdb(asked)
    run_duckdb("select 1 as a", setup=setup)
    assert run_duckdb(asked).equals(before)
    with pytest.raises(duckdb.CatalogException):
        run_duckdb("from t")
    assert run_duckdb("from t", setup=["create table t as select 2 as b"]).column_names == ["b"]
