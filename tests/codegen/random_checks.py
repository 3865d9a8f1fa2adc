"""What every random test of kernels asks: the kernels, the operators and DuckDB give the same answer."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, Phase, event, settings

from fuseline.errors import FuselineError
from tests.compare import Ordering, difference, run_duckdb

EXAMPLES = int(os.environ.get("FUSELINE_RANDOM", "200"))


@dataclass
class Connections:
    """`notes` counts what pipelines said of their runs: that they were fused, or why not."""

    fused: Any
    unfused: Any
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def fused_share(self) -> float:
        return self.notes["fused"] / max(1, self.notes.total())


def random_settings(examples: int) -> settings:
    """Shrinking is left out, since it would compile a kernel for each step."""
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def check(
    connections: Connections, tables: Mapping[str, pa.Table], query: str, order: Ordering
) -> None:
    fused = _answer(connections.fused, query, tables, connections.notes)
    unfused = _answer(connections.unfused, query, tables)
    if isinstance(fused, str) or isinstance(unfused, str):
        assert fused == unfused, query
        return
    assert difference(unfused, fused, order) is None, query
    try:
        expected = run_duckdb(query, tables)
    except duckdb.Error:  # it computes rows that a filter drops
        event("DuckDB raises")
        return
    assert difference(expected, fused, order) is None, query


def _answer(
    connection: Any,
    query: str,
    tables: Mapping[str, pa.Table],
    notes: Counter[str] | None = None,
) -> pa.Table | str:
    """The rows, or the name of the error."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        frame = connection.sql(query)
        answer = frame.to_arrow()
    except FuselineError as error:
        return type(error).__name__
    for node in frame.profile.pipelines:
        receipt = node.receipt
        assert receipt is not None
        event("kernel" if receipt.fused else str(receipt.reason))
        if notes is not None:
            notes["fused" if receipt.fused else str(receipt.reason)] += 1
    return answer
