"""Random pipelines: the kernel, the operators and DuckDB give the same answer; `FUSELINE_RANDOM=5000` tries more."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given

from tests.codegen.random_checks import EXAMPLES, Connections, check, random_settings
from tests.codegen.random_queries import queries, selections, tables
from tests.compare import Ordering


@random_settings(EXAMPLES)
@given(table=tables(), query=queries())
def test_a_random_aggregate(connections: Connections, table: pa.Table, query: str) -> None:
    check(connections, {"t": table}, query, Ordering(False))


@random_settings(EXAMPLES // 4)
@given(table=tables(), query=selections())
def test_a_random_selection(connections: Connections, table: pa.Table, query: str) -> None:
    check(connections, {"t": table}, query, Ordering(True))
