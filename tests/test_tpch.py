"""The 22 TPC-H queries on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fuseline
from benchmarks import tpch as suite
from tests.compare import assert_same_as_duckdb
from tests.conftest import SCALE

QUERIES = suite.queries(SCALE)


@pytest.mark.parametrize("name", QUERIES)
def test_tpch(name: str, tpch: Any, tpch_tables: dict[str, Path], backend: str) -> None:
    answer = assert_same_as_duckdb(QUERIES[name], tpch_tables, backend=backend, connection=tpch)
    assert answer.num_rows > 0


def test_all_joins_run_in_kernels(tpch_tables: dict[str, Path], tmp_path: Path) -> None:
    """No query of the 22 passes because operators answered it; what compares few rows with one row may be an operator."""
    with fuseline.connect(device="cpu", fuse="always", cache_dir=tmp_path) as connection:
        for name, path in tpch_tables.items():
            connection.read_parquet(str(path), name)
        for name, query in QUERIES.items():
            frame = connection.sql(query)
            frame.to_arrow()
            profile = frame.profile
            assert not [n.text for n in profile.nodes if n.name == "HashJoin"], name
            assert profile.pipelines, name
            assert all(n.receipt is not None and n.receipt.fused for n in profile.pipelines), name
