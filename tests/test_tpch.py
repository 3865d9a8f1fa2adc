"""The 22 TPC-H queries on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import tpch as suite
from tests.compare import assert_same_as_duckdb
from tests.conftest import SCALE

QUERIES = suite.queries(SCALE)


@pytest.mark.parametrize("name", QUERIES)
def test_tpch(name: str, tpch: Any, tpch_tables: dict[str, Path], backend: str) -> None:
    answer = assert_same_as_duckdb(QUERIES[name], tpch_tables, backend=backend, connection=tpch)
    assert answer.num_rows > 0
