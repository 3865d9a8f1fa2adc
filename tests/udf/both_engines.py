"""Python functions in Fuseline and in DuckDB: created alike, and asked alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError

Rows = list[tuple[Any, ...]]


class BothEngines:
    """A connection of each, with the same tables and functions."""

    def __init__(self, tables: Mapping[str, Any] | None = None, fuse: str = "auto") -> None:
        self.fuseline = fuseline.connect(device="cpu", fuse=fuse)
        self.duckdb = duckdb.connect()
        for name, table in (tables or {}).items():
            made = pa.table(table) if isinstance(table, dict) else table
            self.fuseline.register(name, made)
            self.duckdb.register(name, made)

    def create(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[str] | None = None,
        result: str | None = None,
        **options: Any,
    ) -> None:
        for connection in (self.fuseline, self.duckdb):
            connection.create_function(name, function, parameters, result, **options)

    def same(self, query: str) -> Rows:
        """Return the rows that both give for a query."""
        expected = self.duckdb.execute(query).fetchall()
        frame = self.fuseline.sql(query)
        assert repr(frame.fetchall()) == repr(expected)
        types = [str(column[1]) for column in self.duckdb.execute(f"describe {query}").fetchall()]
        assert [str(column.type) for column in frame.plan.columns] == types
        return expected

    def both_refuse(self, query: str) -> FuselineError:
        """Return Fuseline's error of a query that DuckDB refuses too."""
        with pytest.raises(duckdb.Error):
            self.duckdb.execute(query).fetchall()
        with pytest.raises(FuselineError) as caught:
            self.fuseline.sql(query).fetchall()
        return caught.value
