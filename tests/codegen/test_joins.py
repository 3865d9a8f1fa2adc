"""Fused joins: every kind of join over every shape of keys; the kernels, the operators and DuckDB give the same answer."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.codegen.fused import assert_fused_joins

NAN = float("nan")

# t is the probe side, with values v; u the build side, with values w
KINDS = {
    "inner": "select count(*), sum(v), sum(w), min(w) from t join u on t.k = u.k",
    "left": "select count(*), sum(v), sum(w), count(w), max(u.k) from t left join u on t.k = u.k",
    "right": "select count(*), sum(w), sum(v), count(t.k) from u right join t on t.k = u.k",
    "exists": "select count(*), sum(v) from t where exists (select * from u where u.k = t.k)",
    "in": "select count(*), sum(v), min(k) from t where k in (select k from u)",
    "not exists": "select count(*), sum(v) from t where not exists (select * from u where u.k = t.k)",
    "not in": "select count(*), sum(v), count(k) from t where k not in (select k from u)",
    "mark": "select k in (select k from u) as m, count(*), sum(v) from t group by m",
    "not mark": "select k not in (select k from u) as m, count(*), sum(v) from t group by m",
    "in or": "select count(*), sum(v) from t where v > 7 or k in (select k from u)",
    "not in or": "select count(*), sum(v) from t where v > 7 or k not in (select k from u)",
    "exists or": "select count(*) from t where v > 7 or exists (select * from u where u.k = t.k)",
    "scalar": "select sum((select max(w) from u where u.k = t.k)) as x, count(*) from t",
    "residual": "select count(*), sum(w) from t join u on t.k = u.k and v < w",
    "left residual": "select count(*), count(w), sum(w) from t left join u on t.k = u.k and v < w",
    "exists residual": "select count(*), sum(v) from t where exists "
    "(select * from u where u.k = t.k and w <> v)",
    "not exists residual": "select count(*), sum(v) from t where not exists "
    "(select * from u where u.k = t.k and w <> v)",
    "filtered": "select count(*), sum(v), sum(w) from t join u on t.k = u.k where w > 2 and v < 8",
    "groups": "select w, count(*), sum(v) from t join u on t.k = u.k group by w",
    "build keys": "select u.k, w, count(*), sum(v) from t join u on t.k = u.k group by u.k, w",
}


def keyed(value: str, keys: Any) -> pa.Table:
    array = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.int64())
    random = np.random.default_rng(len(array))
    return pa.table({"k": array, value: random.integers(0, 10, len(array))})


LARGE, SMALL = 2**63 - 1, -(2**63)
SOME = [3, 1, 4, 1, 5, 9, 2, 6, None, 5, 3, 5]
# Keys of t and of u
SHAPES: dict[str, tuple[Any, Any]] = {
    "unique": (SOME, [1, 2, 3, 4, 8]),
    "duplicate": (SOME, [1, 1, 2, 5, 5, 5, 7]),
    "nulls": (SOME, [None, 1, 2, None, 5]),
    "empty build": (SOME, []),
    "empty probe": ([], [1, 2, 3]),
    "both empty": ([], []),
    "all keys null": ([None] * 5, [None] * 4),
    "probe keys null": ([None] * 5, [1, 2]),
    "build keys null": (SOME, [None] * 4),
    "one row": ([5], [5]),
    "one row without a match": ([5], [6]),
    "all equal": ([7] * 40, [7]),
    "far apart": ([0, 10**12, -(10**12), 5, None], [10**12, 5, 6, -(10**12)]),
    "beyond the build side": ([-100, 0, 100, 2**40, 7], [5, 6, 7, 8]),
    "range of 2**63": ([LARGE, SMALL, 0, None, 1], [SMALL, LARGE, 0]),
    "range of 2**63, duplicate": ([LARGE, SMALL, 0, None, 1], [SMALL, LARGE, 0, LARGE, None]),
    "negative": ([-5, -4, -3, None], [-4, -3, -3]),
    "skew": ([1] * 500 + list(range(500)), [1] * 50 + list(range(100))),
    "many": (
        np.random.default_rng(1).integers(0, 5000, 20_000).tolist(),
        np.random.default_rng(2).permutation(6000).tolist(),
    ),
    "many, duplicate": (
        np.random.default_rng(3).integers(0, 5000, 20_000).tolist(),
        np.random.default_rng(4).integers(0, 5000, 3000).tolist(),
    ),
    "many, far apart": (
        (np.random.default_rng(5).integers(0, 5000, 20_000) * 10**11).tolist(),
        (np.random.default_rng(6).permutation(6000) * 10**11).tolist(),
    ),
}


FAR = "the group keys have a domain of more than 63 bits"
# What kernels do not hold
EXCUSED = {
    ("scalar", "range of 2**63"): FAR,
    ("scalar", "range of 2**63, duplicate"): FAR,
}


@pytest.mark.by_day
@pytest.mark.parametrize(("kind", "shape"), list(product(KINDS, SHAPES)))
def test_every_kind_of_join_over_every_shape_of_keys(kind: str, shape: str) -> None:
    probe, build = SHAPES[shape]
    tables = {"t": keyed("v", probe), "u": keyed("w", build)}
    assert_fused_joins(KINDS[kind], tables, but=EXCUSED.get((kind, shape)))


TYPES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "tinyint": (pa.int8(), [-128, 0, 127, None, 5], [127, -128, 5, 5]),
    "uinteger": (pa.uint32(), [2**32 - 1, 0, 7], [7, 2**32 - 1]),
    "boolean": (pa.bool_(), [True, False, None, True], [True]),
    "date": (pa.date32(), [dt.date(1992, 1, 1), dt.date(9999, 12, 31)], [dt.date(1992, 1, 1)]),
    "timestamp": (
        pa.timestamp("us"),
        [dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1), None],
        [dt.datetime(1, 1, 1), dt.datetime(2020, 1, 2)],
    ),
    "decimal": (
        pa.decimal128(12, 2),
        [Decimal("1.25"), Decimal("-0.01"), None, Decimal("9999999999.99")],
        [Decimal("-0.01"), Decimal("9999999999.99"), Decimal("1.25"), Decimal("1.25")],
    ),
    "varchar": (pa.string(), ["a", "", "é", None, "b"], ["b", "", "c", "b", None]),
    "double": (
        pa.float64(),
        [0.0, -0.0, NAN, -NAN, 1.5, None, float("inf"), -float("inf"), 5e-324],
        [-0.0, NAN, 1.5, 1.5, float("inf"), 2.5],
    ),
    "double, unique": (pa.float64(), [0.0, -0.0, NAN, 1.5, None], [0.0, NAN, 2.5]),
    "float": (pa.float32(), [0.0, -0.0, NAN, 0.1, None], [-0.0, NAN, 0.1]),
}


@pytest.mark.by_day
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", ["inner", "left", "in", "not in", "mark", "exists residual"])
def test_keys_of_every_type(kind: str, name: str) -> None:
    data_type, probe, build = TYPES[name]
    tables = {
        "t": keyed("v", pa.array(probe, data_type)),
        "u": keyed("w", pa.array(build, data_type)),
    }
    assert_fused_joins(KINDS[kind], tables)


def test_keys_of_different_types() -> None:
    tables = {
        "t": pa.table({"k": pa.array([1, 2, 3, 200], pa.int16()), "v": [1, 2, 3, 4]}),
        "u": pa.table({"k": pa.array([2, 3, 2**40]), "w": [5, 6, 7]}),
    }
    for kind in ("inner", "left", "in", "not in"):
        assert_fused_joins(KINDS[kind], tables)


# Several keys


def _pairs(value: str, rows: int, seed: int, domain: int = 6) -> pa.Table:
    random = np.random.default_rng(seed)

    def keys() -> pa.Array:
        return pa.array(random.integers(0, domain, rows), mask=random.random(rows) < 0.1)

    words = np.array(["x", "y", "z", "long word"])
    return pa.table(
        {
            "a": keys(),
            "b": keys(),
            "s": pa.array(words[random.integers(0, 4, rows)]),
            value: random.integers(0, 100, rows),
        }
    )


TWO = {"t": _pairs("v", 300, 1), "u": _pairs("w", 25, 2)}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(v), sum(w) from t join u on t.a = u.a and t.b = u.b",
        "select count(*), sum(v), sum(w) from t join u on t.a = u.b and t.s = u.s",
        "select count(*), sum(v), sum(w) from t left join u on t.a = u.a and t.b = u.b and t.s = u.s",
        "select count(*) from t where exists (select * from u where u.a = t.a and u.b = t.b)",
        "select count(*) from t where not exists (select * from u where u.a = t.a and u.s = t.s)",
        "select count(*), sum(v) from t where (a, b) in (select a, b from u)",
        "select count(*), sum(v) from t join u on t.a = u.a and t.b = u.b and t.v <> u.w",
        "select count(*), sum(v) from t where exists "
        "(select * from u where u.a = t.a and u.b = t.b and w > v)",
    ],
)
def test_several_keys(query: str) -> None:
    assert_fused_joins(query, TWO)


def test_several_keys_of_a_wide_domain() -> None:
    tables = {
        name: table.set_column(0, "a", pa.array(np.asarray(table["b"].fill_null(0)) * 10**11))
        for name, table in TWO.items()
    }
    for join in ("join", "left join"):
        query = f"select count(*), sum(w) from t {join} u on t.a = u.a and t.b = u.b"
        assert_fused_joins(query, tables)


# Several joins


def _star(rows: int = 4000) -> dict[str, pa.Table]:
    random = np.random.default_rng(11)

    def column(high: int, count: int = rows) -> pa.Array:
        return pa.array(random.integers(0, high, count), mask=random.random(count) < 0.05)

    return {
        "t": pa.table({"i": column(400), "j": column(60), "v": column(1000), "d": column(9)}),
        "u": pa.table(
            {
                "k": random.permutation(400),
                "x": column(30, 400),
                "name": [f"name {i}" for i in range(400)],
                "w": column(50, 400),
            }
        ),
        "x": pa.table(
            {
                "k": random.permutation(30),
                "y": column(5, 30),
                "place": [f"p{i % 7}" for i in range(30)],
            }
        ),
        "y": pa.table({"k": range(5), "region": ["north", "south", "east", "west", "north"]}),
        "z": pa.table({"k": random.integers(0, 60, 90), "q": column(10, 90)}),
    }


STAR = _star()


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        # a star
        "select count(*), sum(v), sum(w), sum(q) from t join u on i = u.k join z on j = z.k",
        "select q, count(*), sum(v) from t join u on i = u.k left join z on j = z.k group by q",
        # a chain, whose build side is a join itself
        "select region, sum(v), count(*) from t join u on i = u.k join x on u.x = x.k "
        "join y on x.y = y.k group by region",
        "select place, w, sum(v) from t join u on i = u.k join x on u.x = x.k "
        "where place <> 'p3' and w > 4 group by place, w",
        "select count(*), sum(v) from t join (select u.k, x.place, w + 1 as more from u join x on u.x = x.k "
        "where w < 40) s on i = s.k where more <> 7 and place > 'p1'",
        # semi and anti joins on and below build sides
        "select count(*), sum(v) from t where i in (select k from u where x in (select k from x where y = 2))",
        "select count(*), sum(v) from t join u on i = u.k where u.x in (select k from x where place = 'p2')",
        "select count(*), sum(w) from t join u on i = u.k and not exists (select * from z where z.k = t.j)",
        "select count(*), sum(v) from t left join u on i = u.k left join x on u.x = x.k "
        "left join y on x.y = y.k where region is null or region = 'north'",
        # the same table twice
        "select count(*), sum(a.v), sum(b.w) from t a join u b on a.i = b.k join u c on b.w = c.k "
        "where c.w > b.w",
        "select count(*), sum(a.v + b.v) from t a join t b on a.i = b.i and a.v < b.v",
        "select count(*) from u a where exists (select * from u b where b.x = a.x and b.k <> a.k)",
        # expressions over several sides
        "select sum(case when w > 25 then v * w when q is null then -v else q end), count(*) "
        "from t join u on i = u.k left join z on j = z.k",
        "select count(*), avg(v - w), min(place), max(region) from t join u on i = k join "
        "(select x.k as xk, place, region from x join y on x.y = y.k) s on u.x = xk where v + w > 500",
        # keys that are expressions
        "select count(*), sum(v) from t join u on t.i + 1 = u.k",
        "select count(*), sum(v) from t join u on t.i = u.k * 2",
        # scalar subqueries
        "select count(*), sum(v) from t where v > (select avg(v) from t)",
        "select count(*), sum(v) from t where v > (select avg(w) from u where u.x = t.d)",
        # aggregates as build sides
        "select count(*), sum(v), sum(n) from t join (select k, count(*) as n from z group by k) g on j = g.k",
        "select count(*), sum(v) from t where j in (select k from z group by k having count(*) > 1)",
        "select count(*), count(n), sum(v) from t left join (select k, sum(q) as n from z group by k) g "
        "on j = g.k and n > 5",
    ],
)
def test_several_joins(query: str) -> None:
    assert_fused_joins(query, STAR)


# Groups by a row of a build side


@pytest.mark.parametrize(
    "query",
    [
        "select u.k, name, w, sum(v), count(*) from t join u on i = u.k group by u.k, name, w",
        "select t.i, name, min(v) from t join u on i = u.k group by t.i, name",
        "select u.k, name, place, region, sum(v) from t join u on i = u.k join x on u.x = x.k "
        "join y on x.y = y.k where v < 700 group by u.k, name, place, region",
        "select u.k, upper(name) || '!' as shout, sum(v) from t join u on i = u.k group by u.k, shout",
        "select u.k, name, sum(v) from t join u on i = u.k where u.w > 100 group by u.k, name",
    ],
)
def test_groups_by_columns_of_a_build_side(query: str) -> None:
    many = {**STAR, "u": _with_text(STAR["u"])}
    assert_fused_joins(query, many)


def _with_text(table: pa.Table) -> pa.Table:
    """So many names that no code stands for them."""
    copies = 20
    keys = np.concatenate([np.asarray(table["k"]) + 400 * i for i in range(copies)])
    parts = [
        table.set_column(0, "k", pa.array(keys[400 * i : 400 * (i + 1)])) for i in range(copies)
    ]
    joined = pa.concat_tables(parts)
    names = [f"the name of {k}, or {k * k}" for k in keys]
    return joined.set_column(2, "name", pa.array(names))


# Rows


@pytest.mark.parametrize(
    "query",
    [
        "select v, name, w from t join u on i = u.k where v > 900",
        "select v, i, q from t left join z on j = z.k where v % 50 = 1",
        "select * from t where not exists (select * from z where z.k = t.j)",
        "select v, name, place, region from t join u on i = u.k join x on u.x = x.k "
        "join y on x.y = y.k where region = 'north' and v < 100",
        "select v + w as more, upper(name) from t join u on i = u.k where v > 950",
        "select a.k, b.k from u a join u b on a.x = b.x and a.w < b.w",
        "select v, name from t join u on i = u.k where v > 2000",
        "select k, (select sum(v) from t where t.i = u.k) as total from u",
    ],
)
def test_rows_of_joins(query: str) -> None:
    assert_fused_joins(query, STAR)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "select i, j, name, sum(v), count(*) from t join u on i = u.k group by i, j, name",
            "is text with too many different values to number",
        ),
    ],
)
def test_what_no_kernel_holds_says_why(query: str, reason: str) -> None:
    assert_fused_joins(query, {**STAR, "u": _with_text(STAR["u"])}, but=reason)
