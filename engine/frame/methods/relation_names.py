"""DuckDB's names of what a frame does, for code written for its relations: their expressions are texts of SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import WrongArguments, shown
from ...fence import fenced
from ..batches import MOST_ROWS
from .result_methods import ResultMethods
from .table_methods import TableMethods

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    from ..frame import Frame


@fenced
class RelationNames(TableMethods, ResultMethods):
    """`project`, `aggregate`, `order`, `df` and their kin."""

    def project(self, columns: str) -> Frame:
        """Return the columns of a SELECT list: `project("city, sold * 2 AS twice")`."""
        return self.sql(f"SELECT {_text(columns, 'project')} FROM self")

    def aggregate(self, aggregates: str, groups: str = "") -> Frame:
        """Return aggregates by GROUP BY: `aggregate("city, sum(sold)", "city")`."""
        by = f" GROUP BY {_text(groups, 'aggregate')}" if groups else ""
        return self.sql(f"SELECT {_text(aggregates, 'aggregate')} FROM self{by}")

    def order(self, keys: str) -> Frame:
        """Return the rows in the order of ORDER BY: `order("sold DESC, city")`."""
        return self.sql(f"FROM self ORDER BY {_text(keys, 'order')}")

    def query(self, name: str, text: str) -> Frame:
        """Return a query of this frame under a name: `query("sales", "SELECT * FROM sales")`."""
        return self.sql(text, name=name)

    def df(self) -> pd.DataFrame:
        """Do what `to_pandas` does."""
        return self.to_pandas()

    fetchdf = fetch_df = df

    def pl(self) -> pl.DataFrame:
        """Do what `to_polars` does."""
        return self.to_polars()

    def arrow(self) -> pa.Table:
        """Do what `to_arrow` does."""
        return self.to_arrow()

    to_arrow_table = fetch_arrow_table = arrow

    def to_arrow_reader(self, rows: int = MOST_ROWS) -> pa.RecordBatchReader:
        """Run and return a reader of record batches of at most so many rows."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self.to_batches(rows))

    fetch_arrow_reader = fetch_record_batch = to_arrow_reader

    def torch(self) -> dict[str, torch.Tensor]:
        """Do what `to_torch` does."""
        return self.to_torch()

    def to_table(self, name: str) -> None:
        """Do what `create_table` does."""
        self.create_table(name)

    create = to_table

    def to_view(self, name: str, replace: bool = True) -> Frame:
        """Do what `create_view` does."""
        return self.create_view(name, replace=replace)


def _text(given: object, method: str) -> str:
    if not isinstance(given, str):
        raise WrongArguments(
            f"{method}() takes SQL as text, as DuckDB's does, not {shown(given)}: select, agg and sort take expressions."
        )
    return given
