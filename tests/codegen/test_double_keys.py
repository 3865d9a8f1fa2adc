"""Group keys that are floats, in kernels: whole numbers between known bounds, and functions of a column of few values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.codegen.fused import BOTH, assert_fused, assert_not_fused
from tests.codegen.simulated import Runs
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits


def rows(count: int = 3000) -> dict[str, Any]:
    """Decimals and integers of both signs with NULLs, halves among them, few doubles, and a text."""
    draw = np.random.default_rng(5)
    cents = draw.integers(-99_999, 999_999, count)
    cents[:6] = [-50, 50, -150, 150, 0, 250]
    null = np.arange(count) % 7 == 3
    return {
        "t": pa.table({
            "p": pa.array([Decimal(int(c)).scaleb(-2) for c in cents], pa.decimal128(15, 2), mask=null),
            "q": pa.array([Decimal(int(c)).scaleb(-2) for c in cents[::-1]], pa.decimal128(15, 2)),
            "n": pa.array(draw.integers(-(10**6), 10**6, count)),
            "k": pa.array(np.arange(count) % 9 - 4, pa.int8(), mask=null),
            "f": pa.array(cents / 7),
        })
    }  # fmt: skip


@pytest.fixture
def without_tables(limits: SetLimits) -> None:
    """Columns of few values are as those of many."""
    limits(LOOKUP_LIMIT=0)


WHOLE = [
    "floor(p / 100)", "ceil(p / -100) + round(p::double)", "trunc(p::double / 100)", "floor(n / 1000) * -100 - 7",
    "round(sqrt(p::double * p::double) / 1000)", "floor(log10(abs(n) + 1))", "floor(p / 3 + q / 7)", "n::double",
]  # fmt: skip


@pytest.mark.by_day(2)
@pytest.mark.parametrize("key", WHOLE)
def test_whole_numbers(key: str, without_tables: None) -> None:
    assert_fused(f"select {key} as x, count(*), sum(p), min(n) from t group by 1", rows())


FEW = ["sqrt(k)", "k::float / 7", "k * 0.0::double", "0 / k"]


@pytest.mark.parametrize("key", FEW)
def test_functions_of_few_values(key: str) -> None:
    """NaN, infinities and both zeros among them."""
    assert_fused(f"select {key} as x, count(*), sum(p) from t group by 1", rows())


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("key", "most"), [*((key, 0) for key in WHOLE), *((key, 99) for key in FEW)]
)
def test_on_a_gpu(key: str, most: int, runs: Runs, limits: SetLimits) -> None:
    limits(LOOKUP_LIMIT=most)
    with connected(rows(300), fuse="always") as connection:
        connection.sql(f"select {key} as x, count(*), sum(p) from t group by 1").to_arrow()
    assert runs.programs


def test_several_keys_order_and_condition(without_tables: None) -> None:
    query = "select floor(p / 1000) as x, k, count(*) as c, avg(q) from t group by 1, 2"
    assert_fused(f"{query} order by x, k", rows())
    assert_fused(f"{query} having count(*) > 3 order by x desc, k limit 5", rows())
    assert_fused(f"{query} having floor(p / 1000) + count(*) > 2.5", rows())


def test_an_argument_beside_the_key(without_tables: None) -> None:
    query = (
        "select round(p::double) as x, sum(round(p::double)), max(floor(q / 3)) from t group by 1"
    )
    assert_same_as_duckdb(query, rows(), fuse=BOTH)


@pytest.mark.parametrize(
    "key",
    ["floor(f)", "round(p::double, 1)", "floor(p / k)", "floor(sqrt(p::double))"],
)
def test_others_are_left_to_the_operators(key: str, without_tables: None) -> None:
    """Doubles of a file have no bounds, a divisor may be 0, and a root has none of negative numbers."""
    assert_same_as_duckdb(f"select {key} as x, count(*) from t group by 1", rows(), fuse=BOTH)


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(count: int) -> None:
    given = {"t": rows()["t"].slice(3, count)}
    for key in ("floor(p / 100)", "k / 3"):
        assert_same_as_duckdb(f"select {key} as x, count(*) from t group by 1", given, fuse=BOTH)


def test_numbers_beyond_those_of_doubles() -> None:
    given = {"t": pa.table({"n": pa.array([2**62, 2**62 + 1, -(2**62), 3] * 700)})}
    assert_same_as_duckdb("select n::double as x, count(*) from t group by 1", given, fuse=BOTH)
    query = "select floor(n / 3) as x, count(*) from t group by 1"
    assert_not_fused(query, given, "no numbers are known")


def test_keys_behind_a_join() -> None:
    given = rows() | {
        "u": pa.table({"k": pa.array([-4, 0, 1, 2], pa.int8()), "w": [1.5, 2.5, -0.5, 7.0]})
    }
    query = "select floor(p / 1000) as x, k / 3 as y, count(*), sum(w) from t join u using (k) group by 1, 2"
    assert_same_as_duckdb(query, given, fuse=BOTH)
