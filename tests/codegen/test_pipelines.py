"""Query shapes: the kernel, the operators and DuckDB give the same answer."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import OutOfRange
from tests.codegen.fused import BOTH, assert_fused, assert_not_fused
from tests.compare import connected

ROWS = 1000


def _table() -> pa.Table:
    """Each kind of column, with NULLs in most."""
    random = np.random.default_rng(1)

    def missing() -> Any:
        return random.random(ROWS) < 0.2

    cents = random.integers(-(10**6), 10**6, ROWS)
    days = random.integers(0, 3000, ROWS)
    return pa.table(
        {
            "i": pa.array(random.integers(-5, 6, ROWS), mask=missing()),
            "t": pa.array(random.integers(-128, 128, ROWS).astype(np.int8)),
            "b": pa.array(random.integers(-(2**63), 2**63 - 1, ROWS)),
            "u": pa.array(random.integers(0, 2**32 - 1, ROWS).astype(np.uint32)),
            "d": pa.array([Decimal(int(x)).scaleb(-2) for x in cents], pa.decimal128(12, 2)),
            "w": pa.array([Decimal(int(x)) for x in cents], pa.decimal128(38, 2)),
            "s": pa.array(random.choice(["a", "bb", "c%d", "é", ""], ROWS), mask=missing()),
            "f": pa.array(
                random.choice([1.5, float("nan"), -0.0, 0.0, float("inf")], ROWS), mask=missing()
            ),
            "g": pa.array(random.choice([1.25, -2.5, 0.5], ROWS).astype(np.float32)),
            "date": pa.array(
                [dt.date(1992, 1, 1) + dt.timedelta(int(x)) for x in days], mask=missing()
            ),
            "moment": pa.array(days.astype(np.int64) * 3_600_000_000, pa.timestamp("us")),
            "x": pa.array(random.random(ROWS) < 0.5, mask=missing()),
            "empty": pa.nulls(ROWS, pa.int32()),
            "same": pa.array(np.full(ROWS, 7)),
        }
    )


TABLES = {"t": _table()}

FUSED = [
    "select count(*), count(i) from t",
    "select s, x, count(*), count(i), sum(i), avg(i), min(i), max(i), sum(d), avg(d), min(d) "
    "from t where i > -3 group by s, x",
    "select sum(b), min(b), max(b), avg(b) from t where b > 0",
    "select sum(b + 1) from t where b < 9223372036854775800",
    "select min(f), max(f), count(f), sum(i * d) from t",
    "select min(s), max(s), bool_and(x), bool_or(x) from t where s like '%b%' or x",
    "select year(date) y, count(*) from t group by y",
    "select sum(case when i > 0 then d else -d end), count_if(x), bit_xor(b), bit_and(i) from t",
    "select upper(s) as up, extract(month from date) as mo, sum(d * i) from t "
    "where date between date '1993-02-01' and date '1995-01-01' group by up, mo",
    "select i, min(date), max(date) from t where f = f and f <> 1.5 group by i",
    "select count(*) from t where i is distinct from 3 and s in ('a', 'bb') and not (x is null)",
    "select sum(w), min(w), count(w) from t where w > 10",
    "select sum(d) filter (where x), count(*) filter (where i > 2) from t "
    "where i between -1 and 4 or i is null",
    "select avg(i::double), sum(coalesce(i, 7)), sum(abs(d)) from t",
    "select i + 1 as k, s, count(*) from t group by all",
    "select sum(b * 2) from t where b between -1000 and 1000",
    "select sum(empty), min(empty), count(empty), avg(empty) from t",
    "select empty, count(*) from t group by empty",
    "select same, sum(same), min(same) from t where same = 7 group by same",
    "select t, sum(u), max(u), min(t) from t group by t",
    "select min(moment), max(moment), count(moment) from t where moment > timestamp '1970-01-02 00:00:00'",
    "select sum(g), avg(g), min(g), max(g) from t where g > 0.25",
    "select count(*) from t where s = 'a' and upper(s) = 'A' and length(s) = 1",
    "select count(*) from t where i not in (1, 2, null)",
    "select count(*) from t where i in (1, 2, null)",
    "select count(*) from t where not (i > 2 and x) or (x is null and s is not null)",
    "select max(case when i = 1 then null when i > 3 then i else 0 end) as m from t",
    "select x, not x, count(*) from t group by 1, 2",
    "select sum(i * i * i), sum(d * d), avg(d * 1.5) from t",
    "select substring(s, 1, 1) as k, count(*) from t where s >= 'a' group by k",
    "select sum(f) from t where f = 0",
    "select count(*) from t where i + 0.5 > 2.25",
    "select count(*) from t where b % 3 = 1",
    "select date - date '1992-01-01' as k, count(*) from t where date < date '1992-02-01' group by k",
]


@pytest.mark.by_day
@pytest.mark.parametrize("query", FUSED)
def test_a_kernel_gives_the_answer(query: str) -> None:
    assert_fused(query, TABLES)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("query", FUSED[1:8])
def test_few_rows(query: str, rows: int) -> None:
    assert_fused(query, {"t": TABLES["t"].slice(3, rows)})


def test_many_rows_on_several_threads() -> None:
    table = pa.table({"k": np.arange(1_000_003) % 7, "v": np.arange(1_000_003)})
    query = "select k, sum(v), count(*), min(v), max(v) from t where v % 3 <> 1 or v > 5 group by k"
    assert_fused(query.replace("v % 3 <> 1 or v > 5", "v > 5"), {"t": table})


def test_a_sum_needs_two_accumulators() -> None:
    values = pa.table({"v": pa.array([2**63 - 1] * 1000 + [-(2**63)] * 500)})
    assert_fused("select sum(v), avg(v) from t", {"t": values})


NOT_FUSED = [("select count(*) from t where s = upper(s) || i", "reads 2 columns")]


@pytest.mark.parametrize(("query", "reason"), NOT_FUSED)
def test_what_no_kernel_holds_says_why(query: str, reason: str) -> None:
    assert_not_fused(query, TABLES, reason)


def test_what_no_kernel_folds_is_known_while_planning() -> None:
    with connected(TABLES, fuse="always") as connection:
        assert (
            "not fused: mode needs all rows of a group together"
            in connection.sql("select mode(i) from t").explain()
        )


def test_a_value_near_64_bits_is_left_to_the_operators() -> None:
    table = pa.table({"v": [2**62, -5], "w": [2**62 - 1, 2**62]})
    assert_not_fused("select sum(v + w) from t", {"t": table}, "close to 64 bits")


def test_a_product_that_could_overflow_and_does_not_is_fused() -> None:
    table = pa.table({"v": [2**40, 3], "w": [5, 2**40]})
    assert_fused("select sum(v * w) from t", {"t": table})


def test_an_overflow_raises_as_the_operators_do() -> None:
    table = pa.table({"v": [2**62, 3]})
    for mode in BOTH:
        with connected({"t": table}, fuse=mode) as connection, pytest.raises(OutOfRange):
            connection.execute("select sum(v * v) from t")


def test_names_that_a_kernel_uses_itself() -> None:
    names = [
        "keep", "row", "start", "abc", "abc_bits", "abc_code", "np", "c0", "table0", "lambda", "min",
    ]  # fmt: skip
    table = pa.table({n: pa.array([1, None, i]) for i, n in enumerate(names)})
    sums = ", ".join(f'sum("{n}" * 2) as s{i}' for i, n in enumerate(names))
    assert_fused(f'select {sums} from t where "keep" = 1 or "row" > 0', {"t": table})


def test_text_that_ends_a_docstring_or_a_comment() -> None:
    table = pa.table({"s": ['"""', "\\", "a\nb", "\u2028"], "v": [1, 2, 3, 4]})
    for text in ('"""', "\\", "a\nb", "\u2028"):
        assert_fused(f"select sum(v) from t where s <> '{text}' and v > 0", {"t": table})
