"""What statements other than queries answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from .plan.arrow.arrow_types import arrow_table
from .plan.types import BIGINT, BOOLEAN, VARCHAR, DataType, list_of, to_arrow
from .records import dataclass

Columns = list[tuple[str, DataType]]


@dataclass(frozen=True)
class Answer:
    """The rows that a statement gives, as DuckDB gives them; `written` counts rows that it stored.

    `is_asked`: it was written for its rows, as SHOW is; for others a cursor has none (PEP 249).  `types` are those of its columns,
    where Arrow's do not tell.
    """

    table: pa.Table
    written: int | None = None
    is_asked: bool = False
    types: tuple[DataType, ...] | None = None


def table_of(columns: Columns, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """Return rows of Python values as a table."""
    return arrow_table(rows, pa.schema([(name, to_arrow(kind)) for name, kind in columns]))


def done() -> Answer:
    """Return the answer of a statement that gives no rows."""
    return Answer(table_of([("Success", BOOLEAN)], []))


@lru_cache(32)
def _counted(rows: int) -> Answer:
    return Answer(table_of([("Count", BIGINT)], [(rows,)]), rows)


def counted(rows: int, files: Sequence[str] | None = None) -> Answer:
    """Return the answer of a statement that has written so many rows, with the files where they were asked for."""
    if files is None:
        return _counted(rows)
    columns = [("Count", BIGINT), ("Files", list_of(VARCHAR))]
    return Answer(table_of(columns, [(rows, list(files))]), rows, is_asked=True)
