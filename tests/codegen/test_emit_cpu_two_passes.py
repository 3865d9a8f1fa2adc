"""Kernels of the CPU that filter a block of rows before they take those that pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu.emit_cpu import BLOCK
from fuseline.codegen.cpu.functions_cpu import choose
from tests.codegen.fused import assert_fused, assert_fused_joins, assert_not_fused

U = pa.table({"k": range(10), "w": range(10)})


@pytest.mark.by_day
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 13])
@pytest.mark.parametrize("condition", ["v < 0", "v >= 0", "v % 3 = 1", "v > 5 and v % 100 < 50"])
def test_rows_at_the_ends_of_blocks(rows: int, condition: str) -> None:
    values = np.arange(rows)
    table = pa.table({
        "v": values, "k": values % 12, "g": values % 5, "n": pa.array(values, mask=values % 4 == 0),
    })  # fmt: skip
    tables = {"t": table, "u": U}
    for query in (
        f"select count(*), sum(v), sum(n), sum(w) from t join u on t.k = u.k where {condition}",
        f"select v, n, w from t join u on t.k = u.k where {condition}",
    ):
        assert_fused_joins(query, tables)
    assert_fused(f"select g, count(*), sum(n) from t where {condition} group by g", {"t": table})


def test_what_a_filter_computes_is_there_after_it() -> None:
    table = pa.table({"v": np.arange(3000), "k": np.arange(3000) % 12})
    query = (
        "select sum(x), sum(x + w) from (select v * 2 + 1 as x, k from t) t join u on t.k = u.k "
        "where x > 100 and x < 5000"
    )
    assert_fused_joins(query, {"t": table, "u": U})


SPARSE = "k * 65536"  # numbers of keys of which row numbers lie behind bits


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(v) from t where v % 3 > 0 and k in (select k from u) and h in (select k from x)",
        "select v, h from t where k in (select k from u) and v > 40 and h not in (select k from x)",
        f"select v, u.w, x.w from t join u on t.k = u.k join x on t.{SPARSE} = x.{SPARSE} where v < 2900",
        f"select x.w, count(*), sum(n) from t join x on t.{SPARSE} = x.{SPARSE} join u on u.k = x.w group by x.w",
        f"select v, x.w from t left join x on t.{SPARSE} = x.{SPARSE} where h in (select k from u) and n is not null",
        "select v, n / (h - 3) from t where h in (select k from u where k <> 3) and k in (select k from x)",
    ],
)
def test_filters_and_joins_that_drop_rows_one_after_the_other(query: str) -> None:
    values = np.arange(3 * BLOCK - 7)
    table = pa.table({
        "v": values, "k": values * 7 % 83, "h": values % 11, "n": pa.array(values % 5, mask=values % 4 == 0),
    })  # fmt: skip
    other = pa.table({"k": range(2, 83, 3), "w": [place % 9 for place in range(27)]})
    assert_fused_joins(query, {"t": table, "u": U, "x": other})


def test_a_value_near_64_bits_before_a_filter_leaves_the_answer_in_doubt() -> None:
    table = pa.table({"v": [2**62, -5, 7], "w": [2**62 - 1, 2**62, 2], "k": [1, 2, 3]})
    query = "select k, count(*) from t where v + w > 5 group by k"
    assert_not_fused(query, {"t": table}, "close to 64 bits")


@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.98, 1.0])
@pytest.mark.parametrize("size", [0, 3, 8, 20, BLOCK])
def test_chosen_rows_are_those_that_are_kept(size: int, kept: float) -> None:
    flags = np.zeros(BLOCK, np.bool_)
    flags[:size] = np.random.default_rng(size).random(size) < kept
    chosen = np.empty(BLOCK, np.uint64)
    count = choose(flags, np.uint64(7), np.uint64(7 + size), chosen)
    assert (chosen[:count] == np.flatnonzero(flags[:size]) + 7).all()
