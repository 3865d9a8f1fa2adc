"""The ways to find a row's group: dense, sparse and hashed, each against DuckDB; and aggregates that group further."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu.hash_groups import HashGroups
from fuseline.plan.physical import Pipeline
from fuseline.runtime.in_pieces import IN_PIECES
from fuseline.runtime.memory import MemoryBudget
from tests.codegen.fused import assert_fused, assert_not_fused
from tests.compare import connected
from tests.limits import SetLimits

CALLS = "count(*), sum(v), min(v), max(v), avg(f), count(n)"


@contextmanager
def counted(owner: type, name: str) -> Iterator[list[object]]:
    """Collect what a method returns."""
    made: list[object] = []
    method = getattr(owner, name)

    def call(*arguments: object) -> object:
        made.append(method(*arguments))
        return made[-1]

    with patch.object(owner, name, call):
        yield made


def _table(keys: object, rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    values = random.integers(-1000, 1000, rows)
    return pa.table(
        {
            "k": pa.array(keys),
            "k2": random.integers(0, 5, rows),
            "v": values,
            "f": values * 0.5,
            "n": pa.array(values, mask=values % 2 == 0),
        }
    )


@pytest.mark.parametrize("order", ["ascending", "random"])
@pytest.mark.parametrize(
    "domain", [10, 70_000, pytest.param(100_000_000, marks=pytest.mark.nightly)]
)
def test_group_keys_of_any_domain(domain: int, order: str) -> None:
    rows = 300_000  # two ranges
    keys = np.random.default_rng(3).integers(0, domain, rows) * 3 - 5
    table = _table(np.sort(keys) if order == "ascending" else keys, rows)
    assert_fused(f"select k, {CALLS} from t where v > -900 group by k", {"t": table})


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_hashed_groups_of_few_rows(rows: int) -> None:
    keys = pa.array([2**40, None, -(2**40)][:rows], pa.int64())
    assert_fused(f"select k, k2, {CALLS} from t group by k, k2", {"t": _table(keys, rows)})


def test_hashed_groups_with_null_and_extremes() -> None:
    keys = [2**61, -(2**61), None, 0, 2**61, None, 7, 0]
    assert_fused(f"select k, {CALLS} from t group by k", {"t": _table(keys, 8)})


def test_keys_beyond_63_bits_are_not_fused() -> None:
    table = _table([2**63 - 1, -(2**63)], 2)
    assert_not_fused("select k, count(*) from t group by k", {"t": table}, "63 bits")


def test_a_table_grows(limits: SetLimits) -> None:
    limits(hash_groups__SLOTS=4, hash_groups__GROWTH=2, ROWS_A_RANGE=64)
    keys = np.random.default_rng(5).integers(-(2**50), 2**50, 500).repeat(2)
    assert_fused(f"select k, {CALLS} from t group by k", {"t": _table(keys, 1000)})


LISTED_CALLS = f"{CALLS}, sum(f), bit_or(v), bit_and(v), bit_xor(v), bool_or(v > 990), avg(v)"


@pytest.mark.by_day
@pytest.mark.parametrize("keys", ["dense", "sparse", "one of many", "null", "descending"])
@pytest.mark.parametrize("kept", [1, 1 << 22])
@pytest.mark.parametrize("few", [10, 1 << 15])
def test_rows_are_listed_where_a_table_would_be_as_large(
    keys: str, kept: int, few: int, limits: SetLimits
) -> None:
    """Lists fill up, those of a thread are put together when they are many, and parts outgrow their tables."""
    limits(
        hash_groups__SLOTS=64, LISTING_SLOTS=128, hash_groups__GROWTH=2, hash_groups__LISTED=1 << 12
    )
    limits(hash_groups__KEPT=kept, hash_groups__FEW_GROUPS=few, ROWS_A_RANGE=4096)
    limits(DENSE=100, A_TABLE=few)
    rows = 12_000
    random = np.random.default_rng(11)
    pool = random.integers(-300_000, 600_000, 7000)
    drawn = {
        "dense": lambda: pool[random.integers(0, 7000, rows)],
        "sparse": lambda: random.integers(-(2**55), 2**55, 7000).repeat(2)[:rows],
        "one of many": lambda: np.where(
            random.random(rows) < 0.4, 5, random.permutation(pool[0] + np.arange(rows) * 50)
        ),
        "null": lambda: pa.array(random.integers(0, 900_000, rows), mask=random.random(rows) < 0.3),
        "descending": lambda: np.sort(random.integers(0, 900_000, rows))[::-1],
    }
    table = _table(drawn[keys](), rows)
    with counted(HashGroups, "_list") as made:
        assert_fused(f"select k, {LISTED_CALLS} from t where v < 998 group by k", {"t": table})
    assert made
    assert_fused("select k, k2, sum(v) from t group by k, k2 having sum(v) > 9", {"t": table})


@pytest.mark.parametrize("few", [True, False])
def test_few_rows_that_are_expected_are_hashed(few: bool) -> None:
    """A place for each of 360,000 numbers takes more than the rows: 1 in 100 as expected, or all of them by values that go together."""
    rows = 800_000
    random = np.random.default_rng(5)
    a = random.integers(0, 100, rows) if few else np.full(rows, 7)
    b = random.integers(0, 100, rows) if few else np.full(rows, 9)
    a[:100], b[:100] = np.arange(100), np.arange(100)  # so that few are expected
    keys = {"k": random.permutation(rows) % 600, "k2": random.permutation(rows) % 600}
    table = pa.table({**keys, "a": a, "b": b, "v": random.integers(-9, 9, rows)})
    query = "select k, k2, count(*), sum(v) from t where a = 7 and b = 9 group by k, k2"
    with counted(HashGroups, "fill") as filled:
        assert_fused(query, {"t": table})
    assert filled


def test_a_group_with_many_of_the_rows_fills_few_lists(limits: SetLimits) -> None:
    """A list that is full of one part has little in it: tables go on."""
    limits(hash_groups__SLOTS=64, LISTING_SLOTS=128, hash_groups__LISTED=1 << 12, ROWS_A_RANGE=4096)
    random = np.random.default_rng(3)
    keys = np.where(random.random(40_000) < 0.4, 5, random.permutation(40_000) * 50)
    with counted(HashGroups, "_list") as made:
        assert_fused(f"select k, {CALLS} from t group by k", {"t": _table(keys, 40_000)})
    assert 0 < len(made) <= 16  # at most one a thread and run


def test_memory_of_lists_that_were_put_together_is_given_back(limits: SetLimits) -> None:
    limits(hash_groups__SLOTS=64, LISTING_SLOTS=64, hash_groups__LISTED=1 << 14)
    keys = np.random.default_rng(4).integers(0, 2**50, 5000).repeat(20)
    table = _table(np.random.default_rng(5).permutation(keys), 100_000)
    most = []
    for kept in (1 << 22, 1 << 10):
        limits(hash_groups__KEPT=kept)
        asked = [0]

        def ask(_: object, node: object, nbytes: int, to: list[int] = asked) -> None:
            to.append(nbytes if isinstance(node, Pipeline) else 0)

        with (
            patch.object(MemoryBudget, "ask", ask),
            connected({"t": table}, fuse="always") as connection,
        ):
            connection.sql("select k, sum(v) from t group by k").to_arrow()
        most.append(max(asked))
    assert 0 < 2 * most[1] < most[0], most


@pytest.mark.parametrize(("few", "parts"), [(10, 10), (10, 100), (10, 1 << 13), (1 << 15, 10)])
def test_tables_of_dense_groups_are_put_together(few: int, parts: int, limits: SetLimits) -> None:
    """They were cut into parts or not: a part's numbers have slots of their own, as those of some parts at a time; all numbers have not."""
    limits(DENSE=100, ROWS_A_RANGE=1024, hash_groups__FEW_GROUPS=few, A_TABLE=parts)
    keys = np.random.default_rng(9).integers(0, 400_000, 5000)
    assert_fused(f"select k, {CALLS} from t group by k", {"t": _table(keys, 5000)})


def test_groups_with_many_rows_are_not_listed(limits: SetLimits) -> None:
    limits(hash_groups__SLOTS=64, LISTING_SLOTS=64, ROWS_A_RANGE=4096)
    table = _table(np.random.default_rng(2).integers(0, 500, 12_000) * 2**40, 12_000)
    with counted(HashGroups, "_list") as made:
        assert_fused(f"select k, {LISTED_CALLS} from t group by k", {"t": table})
    assert not made


@pytest.mark.parametrize(("rows", "listed"), [(200, False), (2000, True)])
def test_groups_that_one_larger_table_holds_are_not_listed(
    rows: int, listed: bool, limits: SetLimits
) -> None:
    limits(hash_groups__SLOTS=64, LISTING_SLOTS=64)
    keys = np.random.default_rng(6).integers(0, 2**50, rows)
    with counted(HashGroups, "_list") as made, counted(HashGroups, "_larger") as grown:
        assert_fused(f"select k, {CALLS} from t group by k", {"t": _table(keys, rows)})
    assert bool(made) is listed
    assert grown or listed


def test_groups_spill_where_lists_of_rows_do_not_fit() -> None:
    keys = np.random.default_rng(1).permutation(1 << 20)
    with connected({"t": _table(keys, 1 << 20)}, fuse="always", memory_limit="20MB") as connection:
        query = "select count(*), sum(s) from (select k, sum(v) as s from t group by k)"
        frame = connection.sql(query)
        assert frame.fetchall()[0][0] == 1 << 20
        assert any(IN_PIECES in (n.note or "") for n in frame.profile.nodes)


@pytest.mark.parametrize(
    "query",
    [
        "select count(distinct k2) from t",
        "select count(distinct n) from t where v > 500",
        "select k2, count(distinct k) from t group by k2",
        "select k2, count(distinct k), count(distinct n), sum(v), count(*) from t group by k2",
        "select count(distinct k) filter (where v > 0), count(distinct k), count(k) from t",
        "select k, min(distinct v), count(distinct k2) from t group by k",
        "select count(distinct k2), sum(v) from t where v > 10000",
        "select count(distinct v > 0) from t",
    ],
)
def test_counting_different_values(query: str) -> None:
    keys = [None, 1, 2, 3, 3, 1, 2] * 20
    assert_fused(query, {"t": _table(keys, 140)})


def test_counting_values_of_a_large_domain() -> None:
    """Of a product the domain is known by its factors'."""
    table = _table(np.arange(1000) * 10**6, 1000)
    assert_fused("select count(distinct k * v) from t", {"t": table})


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", ["var_samp", "var_pop", "stddev_samp", "stddev_pop"])
@pytest.mark.parametrize("rows", [0, 1, 2, 100])
def test_variances(name: str, rows: int) -> None:
    table = _table(np.arange(rows) % 3, rows)
    assert_fused(f"select {name}(v), {name}(n), {name}(v * 0.01) from t", {"t": table})
    assert_fused(f"select k, {name}(n) filter (where v > 0) from t group by k", {"t": table})


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", ["covar_samp", "covar_pop", "corr"])
@pytest.mark.parametrize("rows", [100, 2, 1, 0])
def test_moments_of_two_columns(name: str, rows: int) -> None:
    table = _table(np.arange(rows) % 3, rows)
    calls = f"{name}(v, n), {name}(n, v * 0.01), {name}(n, n)"
    assert_fused(f"select {calls} from t", {"t": table})
    assert_fused(
        f"select k, {name}(n, v) filter (where v > 0), {calls} from t group by k", {"t": table}
    )


def test_moments_of_two_columns_far_from_zero_are_exact() -> None:
    values = pa.table({"v": pa.array([10**9, 10**9 + 1, 10**9 + 2]), "w": [5, 7, 9]})
    with connected({"t": values}, fuse="always") as connection:
        query = "select covar_pop(v, w), corr(v, w), covar_samp(w, v) from t"
        assert connection.execute(query).fetchall() == [(4 / 3, 1.0, 2.0)]


def test_moments_of_floats_and_of_large_values_are_not_fused() -> None:
    table = {"t": _table([2**40, 5], 2)}
    assert_not_fused("select covar_samp(f, k) from t", table, "two passes")
    assert_not_fused("select corr(k, k) from t", table, "more than 64 bits")
    assert_not_fused("select corr(v, 7) from t", table, "two passes")


def test_variances_of_floats_and_of_large_values_are_not_fused() -> None:
    table = {"t": _table([2**40, 5], 2)}
    assert_not_fused("select var_samp(f) from t", table, "two passes")
    assert_not_fused("select var_samp(k) from t", table, "more than 64 bits")


def test_a_variance_far_from_zero_is_exact() -> None:
    values = pa.table({"v": pa.array([10**9, 10**9 + 1, 10**9 + 2])})
    with connected({"t": values}, fuse="always") as connection:
        assert connection.execute("select var_samp(v) from t").fetchall() == [(1.0,)]


def test_deterministic_sums_do_not_depend_on_threads() -> None:
    table = pa.table({"f": np.random.default_rng(1).random(3_000_000) * 10.0**9})
    answers = set()
    for threads in (1, 2, 3):
        settings = {"fuse": "always", "deterministic": True, "threads": threads}
        with connected({"t": table}, **settings) as connection:
            answers.add(connection.execute("select sum(f), avg(f) from t").fetchone())
    assert len(answers) == 1
