"""Groups of strings that are made of several values, and unions that are grouped source by source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import HashAggregate, Pipeline
from tests.compare import assert_same_as_duckdb, connected

ROWS = 4000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Few values of each column, NULL among them; `other` has the same columns."""
    folder = tmp_path_factory.mktemp("tables")
    draw = np.random.default_rng(3)

    def made(rows: int) -> pa.Table:
        code = draw.integers(0, 4, rows)
        return pa.table(
            {
                "a": pa.array([None if c == 3 else "xyz"[c] for c in code], pa.string()),
                "b": pa.array([("", "-", "ä")[c] for c in draw.integers(0, 3, rows)], pa.string()),
                "d": pa.array(draw.integers(9000, 9800, rows), pa.int32()).cast(pa.date32()),
                "n": pa.array(
                    [None if v == 5 else v for v in draw.integers(0, 6, rows)], pa.int64()
                ),
                "k": np.arange(rows),
                "v": pa.array(
                    [None if v < 0 else v for v in draw.integers(-9, 90, rows)], pa.int64()
                ),
                "f": draw.random(rows),
                "w": draw.permutation(rows) * 1009 - 10**6,
                "x": draw.integers(-50, 50, rows) * 10**6 + draw.integers(0, 9, rows),
            }
        )

    paths = {name: folder / f"{name}.parquet" for name in ("t", "other", "empty")}
    for (name, path), rows in zip(paths.items(), (ROWS, ROWS // 2, 0), strict=True):
        assert name
        pq.write_table(made(rows), path)
    return paths


@pytest.fixture(scope="module")
def connection(tables: dict[str, Path], backend: str) -> Iterator[Any]:
    with connected(tables, backend, fuse="always", check=True) as opened:
        yield opened


def keys_of(connection: Any, query: str) -> list[list[str]]:
    """The group keys of the pipelines of a query."""
    plan = connection.physical(connection.sql(query).plan)
    bodies = [node.body for node in walk(plan) if isinstance(node, Pipeline)]
    return [[c.name for c in body.keys] for body in bodies if isinstance(body, HashAggregate)]


def same(query: str, tables: dict[str, Path], connection: Any, backend: str) -> None:
    assert_same_as_duckdb(query, tables, backend=backend, connection=connection, ordered=False)


CALLS = "count(*), sum(v), avg(v), min(v), max(k), avg(f), stddev(f)"


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("a || b", ["a", "b"]),  # "x" || "-" and NULL; several pairs make one string
        ("concat(a, b, a)", ["shared", "b"]),
        ("a || '/' || year(d)", ["a", "value"]),
        ("upper(b || a) || n", ["b", "a", "n"]),
        ("case when n > 0 then a || (6 // n) else b end", ["value", "a", "n", "b"]),
        ("case when w < 0 then 'owes' when w = x then 'even' else 'has' end", ["value", "value"]),
        (
            "case when x > 3 then a when w > 70 then null else upper(b) end",
            ["value", "value", "a", "b"],
        ),
        ("coalesce(a, b)", ["a", "b"]),
        ("substring(a || b, 2, 1)", ["a", "b"]),
        ("concat_ws('+', a, b)", ["a", "b"]),
    ],
)
def test_strings_of_several_values_are_made_of_their_groups(
    key: str, keys: list[str], tables: dict[str, Path], connection: Any, backend: str
) -> None:
    plain = CALLS.removesuffix(", stddev(f)")
    query = f"select {key} as label, {plain} from t group by label"
    assert keys_of(connection, query) == [keys]
    same(query, tables, connection, backend)
    same(f"select {key} as label, b, count(v) from t group by all", tables, connection, backend)
    same(f"select distinct {key} as label from t where n is null", tables, connection, backend)
    same(f"select {key} as label, count(*) from empty group by 1", tables, connection, backend)


@pytest.mark.parametrize(
    "key",
    [
        "case when n > 0 and x // n > 5 then 'much' else 'little' end",
        "case when n <> 2 then 'a' when (10 / (n - 2)) > x then 'b' end",
        "case when w > 0 and (x::varchar || '1')::bigint > 5 then 'much' else 'little' end",
        "case x when w then 'same' when n then 'n' else 'other' end",
    ],
)
def test_conditions_that_may_raise_or_be_null(
    key: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    same(f"select {key} as label, {CALLS} from t group by 1", tables, connection, backend)
    same(f"select distinct {key} from t where v > 3", tables, connection, backend)


@pytest.mark.parametrize(
    "query",
    [
        "select a || k as label, sum(v) from t group by label",  # as many as rows
        "select a || b as label, median(v) from t group by label",
        "select a || b as label, count(distinct v) from t group by label",
        "select upper(a) as label, sum(v) from t group by label",  # a lookup table has it
        "select a || b as label, stddev(f) from t group by label",
    ],
)
def test_other_keys_stay_as_they_are(
    query: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    assert all("b" not in keys for keys in keys_of(connection, query))
    same(query, tables, connection, backend)


@pytest.mark.parametrize(
    "union",
    [
        "select a, n, v, f from t union all select b, n, k, f from other",
        "select a, n, v, f from t union all select a, n, v, f from empty",
        "select a, n, n as v, 0.5::double as f from t union all select b, 1, 1, null from other where v > 5",
        "select b as a, n, v, f from t union all select a, n, v, f from t union all select null, 1, 1, null from other",
        "select a, n, v, f from t union all select a, n, v, f from t union all select b, 1, 2, 3 from other",
    ],
)
def test_unions_are_grouped_source_by_source(
    union: str, tables: dict[str, Path], connection: Any, backend: str
) -> None:
    calls = "count(*), sum(v), avg(f), min(v), max(f), count(v) filter (where n = 1), avg(v)"
    query = f"select a, n, {calls} from ({union}) group by a, n"
    assert len(keys_of(connection, query)) >= 2
    same(query, tables, connection, backend)
    same(f"select n, count(*) from ({union}) group by n having count(*) > 9", tables, connection, backend)  # fmt: skip
    same(f"select {calls} from ({union})", tables, connection, backend)
    same(f"select distinct n, a from ({union})", tables, connection, backend)
    same(f"select n, median(v), count(distinct a) from ({union}) group by n", tables, connection, backend)  # fmt: skip


def test_a_distinct_union_is_made_of_distinct_values(
    tables: dict[str, Path], connection: Any, backend: str
) -> None:
    query = "select n from t union select v % 7 from other union select year(d) from t"
    assert len(keys_of(connection, query)) >= 2
    same(query, tables, connection, backend)


def test_text_without_a_dictionary_that_comes_again_is_grouped_by_a_kernel(
    tmp_path: Path, backend: str
) -> None:
    """As item ids of DuckDB's files, of which each has two rows."""
    ids = [None if n % 97 == 0 else f"item {n * 7919 % 9000}" for n in range(18_000)]
    draw = np.random.default_rng(5)
    items, sales = tmp_path / "items.parquet", tmp_path / "sales.parquet"
    pq.write_table(pa.table({"k": np.arange(18_000), "id": ids}), items, use_dictionary=False)
    pq.write_table(pa.table({"i": draw.integers(0, 18_000, 50_000), "v": np.arange(50_000)}), sales)
    query = "SELECT id, sum(v), count(*) FROM sales JOIN items ON i = k GROUP BY id ORDER BY ALL"
    tables = {"items": items, "sales": sales}
    with connected(tables, backend, fuse="always") as opened:
        assert keys_of(opened, query) == [["id"]]
        same(query, tables, opened, backend)


def test_a_key_of_no_column_is_no_string_of_several_values() -> None:
    """A conversion that may fail is no constant, and reads nothing."""
    key = "cast(try_cast(-9223372036854775808 as decimal(12, 3)) as varchar)"
    rows = {"t": {"k": [1, 2, None, 1], "v": [1, 2, 3, None]}}
    for query in (
        f"select distinct k, {key} as x from t",
        f"select {key} as x, sum(v) as s from t group by 1",
    ):
        assert_same_as_duckdb(query, rows, fuse=("always", "never"), ordered=False)
