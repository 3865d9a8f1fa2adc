"""CASE that gives text, in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.codegen.fused import BOTH, assert_fused
from tests.compare import assert_same_as_duckdb


def rows(count: int = 70_000) -> dict[str, Any]:
    """Numbers of more values than tables have, of few, and texts of few values, all with NULLs."""
    draw = np.random.default_rng(7)
    null = np.arange(count) % 11 == 4
    return {
        "t": pa.table({
            "n": pa.array(draw.permutation(count) - 100, mask=null),
            "m": pa.array(draw.permutation(count)),
            "s": pa.array([["a", "zz", None, "é"][i] for i in draw.integers(0, 4, count)]),
            "u": pa.array([["b", "a"][i] for i in draw.integers(0, 2, count)]),
        })
    }  # fmt: skip


CASES = [
    "case when n < 0 then 'owes' when n = 0 then 'even' else 'has' end",
    "case when n > 50 then 'b' when m > 100 then 'a' when m = 7 then 'b' end",
    "case when n > m then s else 'other' end",
    "case when n > m then s when n is null then u else null end",
    "case when m % 3 = 0 then 'x' else case when n > 7 then '' else s end end",
]


@pytest.mark.parametrize("case", CASES)
def test_as_a_key(case: str) -> None:
    assert_fused(f"select {case} as x, count(*), sum(m) from t group by 1", rows())


@pytest.mark.parametrize("case", CASES[2:4])
def test_as_an_argument(case: str) -> None:
    assert_fused(f"select u, min({case}), max({case}), count({case}) from t group by u", rows())
    assert_fused(f"select count(distinct {case}) from t where m > 5", rows())


def test_compared() -> None:
    one, other = CASES[2], CASES[4]
    assert_same_as_duckdb(f"select count(*) from t where {one} = {other}", rows(), fuse=BOTH)
    assert_same_as_duckdb(
        f"select count(*) from t where {one} in ('a', 'other')", rows(), fuse=BOTH
    )


def test_text_of_many_values_is_left_to_the_operators() -> None:
    given = {"t": rows()["t"].append_column("long", pa.array([f"text {i}" for i in range(70_000)]))}
    query = "select case when n > m then long else s end as x, count(*) from t group by 1"
    assert_same_as_duckdb(query, given, fuse=BOTH)


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(count: int) -> None:
    given = {"t": rows(20)["t"].slice(4, count)}
    assert_same_as_duckdb(f"select {CASES[1]} as x, count(*) from t group by 1", given, fuse=BOTH)
