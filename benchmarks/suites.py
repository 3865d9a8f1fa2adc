"""The suites: their queries at a scale factor, and their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import adhoc, clickbench, h2o, random, ssb, tpch
from benchmarks.data import (
    Tables,
    clickbench_tables,
    h2o_tables,
    ssb_tables,
    tpcds_queries,
    tpcds_tables,
    tpch_tables,
)


@dataclass(frozen=True)
class Suite:
    """`tables` looks in a folder, or makes the data once under `data/`; `figures` asks what the data is like, for beside a result."""

    title: str
    queries: Callable[[float], dict[str, str]]
    tables: Callable[[float, Path | None], Tables]
    figures: str | None = None
    unit: str = "SF{:g}"  # how a scale is written

    def named(self, scale: float) -> str:
        """The title with a scale."""
        return f"{self.title} {self.unit.format(scale)}"


SUITES = {
    "tpch": Suite("TPC-H", tpch.queries, tpch_tables),
    "adhoc": Suite("Ad-hoc", adhoc.queries, tpch_tables),
    "random": Suite("Random", random.queries, tpch_tables),
    "ssb": Suite("SSB", ssb.queries, ssb_tables),
    "tpcds": Suite("TPC-DS", tpcds_queries, tpcds_tables),
    "clickbench": Suite(
        "ClickBench-shaped",
        clickbench.queries,
        clickbench_tables,
        clickbench.FIGURES,
        "{:g} M rows",
    ),
    "h2o": Suite("db-benchmark-shaped (H2O)", h2o.queries, h2o_tables, h2o.FIGURES, "{:g} M rows"),
}
