"""Queries of which tests want to know that a kernel ran them, and not the operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fuseline
from tests.compare import assert_same_as_duckdb

BOTH = ("always", "never")


def assert_fused(query: str, tables: Mapping[str, Any]) -> None:
    """The query's pipelines run as kernels, and give DuckDB's answer, as the operators do."""
    assert_same_as_duckdb(query, tables, fuse=BOTH)
    found = notes(query, tables)
    assert found, "no pipeline in the plan"
    assert all(note.startswith("kernel ") for note in found), found


def assert_not_fused(query: str, tables: Mapping[str, Any], reason: str) -> None:
    """The pipeline runs one operator at a time, says why, and gives DuckDB's answer."""
    assert_same_as_duckdb(query, tables, fuse=BOTH)
    assert any(reason in note for note in notes(query, tables)), notes(query, tables)


def notes(query: str, tables: Mapping[str, Any]) -> list[str]:
    """What the pipelines of a query say of their run."""
    with fuseline.connect(device="cpu", fuse="always") as connection:
        for name, table in tables.items():
            connection.register(name, table)
        frame = connection.sql(query)
        frame.to_arrow()
        return [n.note for n in frame.profile.nodes if n.name == "Pipeline" and n.note]
