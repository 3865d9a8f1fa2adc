"""The suites: their queries at a scale factor, and their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import adhoc, ssb, tpch
from benchmarks.data import Tables, ssb_tables, tpcds_queries, tpcds_tables, tpch_tables


@dataclass(frozen=True)
class Suite:
    """`tables` looks in a folder, or makes the data once under `data/`."""

    title: str
    queries: Callable[[float], dict[str, str]]
    tables: Callable[[float, Path | None], Tables]


SUITES = {
    "tpch": Suite("TPC-H", tpch.queries, tpch_tables),
    "adhoc": Suite("Ad-hoc", adhoc.queries, tpch_tables),
    "ssb": Suite("SSB", ssb.queries, ssb_tables),
    "tpcds": Suite("TPC-DS", tpcds_queries, tpcds_tables),
}
