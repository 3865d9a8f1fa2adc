"""Pipelines with joins around their kernels: what is stored, streamed, remembered and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb, connected

ROWS, GROUP_ROWS = 40_000, 4_000
SMALL = "50kB"

JOINS = (
    "select count(*), sum(v), sum(w) from t join u on t.k = u.k",
    "select count(*), sum(v), sum(w), count(w) from t left join u on t.k = u.k and w > 20",
    "select g, count(*), sum(v), max(w) from t join u on t.k = u.k where v > 100 group by g",
    "select count(*), sum(v) from t where exists (select * from u where u.k = t.k and u.w < t.v)",
    "select count(*), sum(v) from t where k not in (select k from u where w > 10)",
    "select k in (select k from u) as m, count(*), sum(v) from t group by m",
    "select u.k, name, sum(v) from t join u on t.k = u.k group by u.k, name",
    "select v, name from t join u on t.k = u.k where v > 900 and w < 25",
    "select count(*), sum(t.v), sum(s.v) from t join t s on t.k = s.v where s.n < 500",
    "select count(*), sum(v) from t where v > (select avg(v) from t)",
    "select count(*), sum(v), sum(n) from t join (select k, count(*) as c from t group by k) s using (k)",
    "select k, sum(v) from t group by k having sum(v) > 18000 and count(*) < 45",
    "select g, sum(w) from t join u on t.k = u.k group by g having sum(w) > 110000",
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of ten row groups and a small one, as files."""
    random = np.random.default_rng(4)
    folder = tmp_path_factory.mktemp("joins")
    tables = {
        "t": pa.table(
            {
                "n": np.arange(ROWS),
                "k": pa.array(random.integers(0, 1000, ROWS), mask=random.random(ROWS) < 0.1),
                "v": random.integers(0, 1000, ROWS),
                "g": random.integers(0, 7, ROWS),
            }
        ),
        "u": pa.table(
            {
                "k": random.permutation(800),
                "w": pa.array(random.integers(0, 50, 800), mask=random.random(800) < 0.1),
                "name": [f"name {i}" for i in range(800)],
            }
        ),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=GROUP_ROWS)
    return {name: folder / f"{name}.parquet" for name in tables}


@pytest.fixture(params=["never", "always"], ids=["unfused", "fused"])
def fuse(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(backend: str, paths: dict[str, Path]) -> Iterator[Callable[..., fuseline.Connection]]:
    opened: list[fuseline.Connection] = []

    def make(**settings: Any) -> fuseline.Connection:
        opened.append(fuseline.connect(backend, **settings))
        for name, path in paths.items():
            opened[-1].read_parquet(path, name)
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()


def receipts(connection: fuseline.Connection, query: str) -> list[Any]:
    frame = connection.sql(query)
    frame.to_arrow()
    return [n.receipt for n in frame.profile.pipelines]


# Streaming


@pytest.mark.by_day(4)
@pytest.mark.parametrize("query", JOINS)
def test_a_probe_side_that_does_not_fit_comes_in_chunks(
    connect: Any, paths: dict[str, Path], fuse: str, query: str
) -> None:
    connection = connect(column_cache_limit=SMALL, fuse=fuse)
    assert_same_as_duckdb(query, paths, connection=connection)
    if fuse == "always":
        assert max(r.chunks for r in receipts(connection, query)) > 1


@pytest.mark.parametrize("query", JOINS[:5])
def test_chunks_whose_kernels_are_refused(
    connect: Any, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch, query: str, backend: str
) -> None:
    from importlib import import_module

    from fuseline.codegen.typed_values import NotFusable

    def refuse(*args: Any) -> Any:
        raise NotFusable("a test wants operators")

    module = "pipeline" if backend == "cpu" else "compiled_pipeline"
    monkeypatch.setattr(
        import_module(f"fuseline.operators.{backend}.pipeline.{module}"), "stages", refuse
    )
    connection = connect(column_cache_limit=SMALL, fuse="always")
    assert_same_as_duckdb(query, paths, connection=connection)
    reasons = {r.reason for r in receipts(connection, query)} - {None}
    assert reasons  # the GPU adds how many parts ran in kernels
    assert all(reason.startswith("a test wants operators") for reason in reasons)


# Row groups


def test_selected_row_groups_of_both_sides(connect: Any, paths: dict[str, Path]) -> None:
    connection = connect(fuse="always")
    query = "select count(*), sum(t.v), sum(s.v) from t join t s on t.n = s.n where t.n < 9000 and s.n > 3000"
    assert_same_as_duckdb(query, paths, connection=connection)
    for name in paths:
        connection.table(name).cache()
    assert_same_as_duckdb(query, paths, connection=connection)


# What is remembered


def test_kernels_serve_again(connect: Any) -> None:
    connection = connect(fuse="always")
    for query in JOINS:
        receipts(connection, query)
        again = receipts(connection, query)
        assert all(r.fused and r.origin == "memory" and not r.load_seconds for r in again), query


def test_kernels_do_not_depend_on_constants(connect: Any) -> None:
    connection = connect(fuse="always")
    query = (
        "select count(*), sum(v) from t join (select k, sum(v) as s from t where g < {} group by k) x "
        "using (k) where v < {} and s > {}"
    )
    kernels = set()
    for constants in ((3, 500, 5000), (4, 600, 4000), (5, 700, 300)):
        for receipt in receipts(connection, query.format(*constants)):
            kernels |= {receipt.kernel, *(build.kernel for build in receipt.builds)}
    assert len(kernels) == 3


def test_the_receipt_says_what_was_built(connect: Any) -> None:
    connection = connect(fuse="always")
    (receipt,) = receipts(connection, JOINS[0])
    (build,) = receipt.builds
    assert (build.form, build.rows) == ("direct", 800)
    assert build.bytes >= 4 * 800
    assert receipt.rows == ROWS
    assert receipt.summary.endswith(" and 1 index")
    text = connection.sql(JOINS[0]).explain("analyze")
    assert f"  index of 800 rows, direct, 0.0 MB: kernel {build.kernel.name}" in text


# Memory


def test_operators_of_a_body_count_towards_the_limit() -> None:
    rows = 3000
    table = pa.table({"k": np.zeros(rows, np.int64), "s": [f"text {i}" for i in range(rows)]})
    query = "select sum(length(t.s || u.s)) as x from t join u on t.k = u.k"
    with connected({"t": table, "u": table}, fuse="always", memory_limit="50MB") as connection:
        in_pieces = connection.sql(query)
        answer = in_pieces.to_arrow()
        assert "in pieces" in str(in_pieces.profile.nodes[0].remark)
        connection.set_option("memory_limit", "2GB")
        frame = connection.sql(query)
        assert frame.to_arrow() == answer
        assert [n.receipt.fused for n in frame.profile.pipelines] == [False]
