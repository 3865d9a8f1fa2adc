"""Random pipelines: the kernel, the operators and DuckDB give the same answer; `FUSELINE_RANDOM=5000` tries more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

import fuseline
from fuseline.errors import FuselineError
from tests.codegen.random_queries import queries, selections, tables
from tests.compare import Ordering, difference, run_duckdb

EXAMPLES = int(os.environ.get("FUSELINE_RANDOM", "200"))
Connections = tuple[Any, Any]


@pytest.fixture(scope="module")
def connections(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    """One that fuses always, and one that never does."""
    kernels: Path = tmp_path_factory.mktemp("kernels")
    with (
        fuseline.connect(device=backend, fuse="always", cache_dir=kernels) as fused,
        fuseline.connect(device=backend, fuse="never") as unfused,
    ):
        yield fused, unfused


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    # Shrinking would compile a kernel for each step
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(table=tables(), query=queries())
def test_a_random_aggregate(connections: Connections, table: pa.Table, query: str) -> None:
    _check(connections, table, query, Ordering(False))


def _check(connections: Connections, table: pa.Table, query: str, order: Ordering) -> None:
    fused, unfused = (_answer(connection, query, table) for connection in connections)
    if isinstance(fused, str) or isinstance(unfused, str):
        assert fused == unfused
        return
    assert difference(unfused, fused, order) is None, query
    try:
        expected = run_duckdb(query, {"t": table})
    except duckdb.Error:  # it computes rows that a filter drops
        event("DuckDB raises")
        return
    assert difference(expected, fused, order) is None, query


def _answer(connection: Any, query: str, table: pa.Table) -> pa.Table | str:
    """The rows, or the name of the error."""
    connection.register("t", table)
    try:
        frame = connection.sql(query)
        answer = frame.to_arrow()
    except FuselineError as error:
        return type(error).__name__
    for node in frame.profile.nodes:
        if node.note:
            event("kernel" if node.note.startswith("kernel") else node.note)
    return answer


@settings(
    max_examples=EXAMPLES // 4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(table=tables(), query=selections())
def test_a_random_selection(connections: Connections, table: pa.Table, query: str) -> None:
    _check(connections, table, query, Ordering(True))
