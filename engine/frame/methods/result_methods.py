"""What runs a frame: its rows for Python, Arrow, pandas, Polars, NumPy, PyTorch, cuDF and Dask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from ...errors import ExecutionError, in_text
from ...fence import fenced
from ..batches import MOST_ROWS, Batches, batch_rows
from ..exported import exported
from ..functions import count
from .relational_methods import RelationalMethods

if TYPE_CHECKING:
    import cudf
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch
    from dask import dataframe as dd

    from ...observe.explain import Stage
    from ...observe.profile import Profile
    from ..cursor import Rows
    from ..frame import Frame
    from ..python_values import Row

SHOWN_ROWS = 20


@fenced
class ResultMethods(RelationalMethods):
    """Results are computed anew by each call that returns data; `profile` describes the latest of them."""

    _fetching: Rows | None = None  # what fetchone() and fetchmany() read

    @property
    def profile(self) -> Profile:
        """What the latest run did: per node device, reason, time, rows and bytes.

        Raises `ExecutionError` before the first run.
        """
        if self._profile is None:
            raise ExecutionError("This frame has not run yet: call to_arrow() or show() first.")
        return self._profile()

    def to_arrow(self) -> pa.Table:
        """Run and return a pyarrow.Table with the types of `schema`."""
        with self._connection.stoppable():
            result = self._run()
            return exported(result.to_arrow(), result.columns)

    def to_batches(self, rows: int = MOST_ROWS) -> Batches:
        """Run and return an iterator over `pyarrow.RecordBatch`es of at most so many rows.

        For answers larger than memory: what does not fit into `memory_limit` is made while it is read.  The Arrow schema is its `schema`.
        """
        most = batch_rows(rows)
        reading = self._stream()
        return Batches(reading, reading.schema, most, reading.close)

    def to_pandas(self) -> pd.DataFrame:
        """Run and return a pandas frame; sums of integers are int64 where they fit, dates datetime64, which has years that Python's `date` has not."""
        from ..library_columns import to_pandas

        with self._connection.stoppable():
            return to_pandas(self._run().to_arrow(), self._types)

    def to_polars(self) -> pl.DataFrame:
        """Run and return a polars.DataFrame; raises `TypeMismatch` for columns that Polars cannot hold."""
        from ..library_columns import to_polars

        return to_polars(self.to_arrow())

    def to_cudf(self) -> cudf.DataFrame:
        """Run and return a cudf.DataFrame, without a copy when the result is on the GPU.

        Raises `DeviceError` where cudf is not installed.
        """
        from ...interop.device_frames import to_cudf

        return to_cudf(self._run())

    def to_dicts(self) -> list[dict[str, Any]]:
        """Run and return the rows as dictionaries; of names that repeat the later ones get a number."""
        from ...plan.text.quoted_name import distinct_names

        names = distinct_names(self.columns)
        return [dict(zip(names, row, strict=True)) for row in self._all_rows()]

    def to_dict(self) -> dict[str, list[Any]]:
        """Run and return a list of Python values for each column."""
        from ...plan.text.quoted_name import distinct_names
        from ..python_values import fetched_values

        with self._connection.stoppable():
            table = self._run().to_arrow()
            values = [fetched_values(c, t) for c, t in zip(table.columns, self._types, strict=True)]
        return dict(zip(distinct_names(self.columns), values, strict=True))

    def to_numpy(self) -> np.ndarray:
        """Run and return an array of rows by columns, of the type that the columns share; objects where they share none."""
        return self.to_pandas().to_numpy()

    def fetchnumpy(self) -> dict[str, np.ndarray]:
        """Run and return an array for each column, a masked one where there are NULLs, as DuckDB's client does."""
        from ..library_columns import numpy_columns

        with self._connection.stoppable():
            return numpy_columns(self._run().to_arrow(), self._types)

    def to_torch(self) -> dict[str, torch.Tensor]:
        """Run and return a torch.Tensor for each column of numbers or truth values.

        Raises `ExecutionError` where PyTorch is not installed, and `TypeMismatch` for other columns and for NULLs.
        """
        from ..library_columns import torch_columns

        with self._connection.stoppable():
            return torch_columns(self._run().to_arrow(), self._types)

    def fetchall(self) -> list[Row]:
        """Run and return the rows as tuples of Python values; behind `fetchone` those that are left."""
        if self._fetching is not None:
            left, self._fetching = self._fetching.take(None), None
            return left
        return self._all_rows()

    def fetchone(self) -> Row | None:
        """Return the next row of one run, None after the last; the call behind that runs the query anew."""
        row = next(self._rows_being_read(), None)
        if row is None:
            self._fetching = None
        return row

    def fetchmany(self, size: int = 1) -> list[Row]:
        """Return the next rows of one run, an empty list after the last; the call behind that runs the query anew."""
        found = self._rows_being_read().take(batch_rows(size))
        if not found:
            self._fetching = None
        return found

    def _rows_being_read(self) -> Rows:
        from ..cursor import Rows

        if self._fetching is None:
            self._fetching = Rows(self._stream(), self._types)
        return self._fetching

    def _all_rows(self) -> list[Row]:
        from ..cursor import Rows

        with self._connection.stoppable():
            return Rows([self._run().to_arrow()], self._types).take(None)

    def count(self) -> int:
        """Run and return how many rows there are; columns that the answer does not need stay unread."""
        frame = self.agg(count())
        ((rows,),) = frame
        self._profile = frame._profile
        return int(rows)

    def cache(self) -> Self:
        """Load the columns of this table ahead, in the encoded form that kernels read, and return the frame.

        They lie on the connection's device, within `column_cache_limit`; `SELECT * FROM fuseline_columns()` shows them.
        Raises `InvalidQuery` for a frame that is more than a table or some of its columns.
        """
        self._connection.load(self._plan)
        return self

    def persist(self) -> Frame:
        """Run and return a frame over the rows: a cluster's workers keep what each has made, until the last frame over it is gone."""
        return self._connection.persisted(self._plan, self._key)

    def to_dask(self) -> dd.DataFrame:
        """Run and return a Dask dataframe, with a partition on each worker that has made rows; raises `ClusterError` without a cluster."""
        return self._connection.dask_frame(self._plan, self._key)

    def show(self, rows: int | None = SHOWN_ROWS) -> None:
        """Print the first rows as a table; all with `rows=None`."""
        from ..fitted_table import print_table

        print_table(self._preview(rows), self._types, rows)

    def explain(self, stage: Stage = "physical") -> str:
        """Return the plan at a stage: logical, rules, optimized, physical, analyze or all.

        `analyze` runs the query and waits after each node; `profile` has what it did as data.
        """
        from ...observe.explain import analyzed, explain

        if isinstance(stage, str) and stage == "analyze":
            return analyzed(self._run(timed=True).profile)
        with in_text(self._text):
            return explain(self._connection, self._plan, stage, self._key)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[Row]:
        """Run and give the rows as tuples of Python values with the names of the columns, a part of them in memory at a time."""
        from ..cursor import Rows

        # By `_fields` pandas.DataFrame(frame) knows the names
        named = type("NamedRow", (tuple,), {"_fields": tuple(self.columns), "__slots__": ()})
        return map(named, Rows(self._stream(), self._types))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run and export the result through the Arrow C stream interface."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def _preview(self, rows: int | None) -> pa.Table:
        """One row more than shown, so that the display can say that there are more."""
        return (self if rows is None else self.limit(rows + 1))._run().to_arrow()
