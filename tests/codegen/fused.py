"""Queries of which tests want to know that a kernel ran them, and not the operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseline.plan.node import walk
from fuseline.plan.physical import HashJoin, NestedLoopJoin, Pipeline
from tests.compare import assert_same_as_duckdb, connected

BOTH = ("always", "never")
JOINS = HashJoin | NestedLoopJoin


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
    with connected(tables, fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        return [n.note for n in frame.profile.nodes if n.name == "Pipeline" and n.note]


def assert_fused_joins(query: str, tables: Mapping[str, Any], *, but: str | None = None) -> None:
    """All joins of the query run in kernels, and give DuckDB's answer, as the operators do.

    `but` is the reason why some pipeline does not.
    """
    assert_same_as_duckdb(query, tables, fuse=BOTH)
    with connected(tables, fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        profile = frame.profile
    assert not [n.text for n in profile.nodes if isinstance(n.node, JOINS)]
    bodies = [n.node.body for n in profile.nodes if isinstance(n.node, Pipeline)]
    assert any(isinstance(part, JOINS) for body in bodies for part in walk(body))
    reasons = {n.receipt.reason for n in profile.pipelines if n.receipt is not None} - {None}
    assert len(reasons) == (but is not None), reasons
    assert all(but is not None and but in str(reason) for reason in reasons), reasons
