"""Random joins: the kernels, the operators and DuckDB give the same answer; `FUSELINE_RANDOM=5000` tries more."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given

from tests.codegen.random_checks import EXAMPLES, Connections, check, random_settings
from tests.codegen.random_joins import joins, table_sets
from tests.compare import Ordering

FUSED_SHARE = 0.7  # of pipelines, at least: what random joins test is kernels


@random_settings(EXAMPLES)
@given(tables=table_sets(), query=joins())
def test_a_random_join(connections: Connections, tables: dict[str, pa.Table], query: str) -> None:
    check(connections, tables, query, Ordering(False))


def test_most_of_them_were_fused(connections: Connections) -> None:
    assert connections.fused_share > FUSED_SHARE, connections.notes.most_common(9)
