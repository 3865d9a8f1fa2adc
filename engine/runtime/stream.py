"""Answers that are read a part at a time, as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..observe.profile import Profile
from ..operators.context import Context
from ..plan.expr import Column
from ..plan.physical import LimitRows, Physical, Stored
from .run import Backend, Result

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_AT_A_TIME = 1 << 26  # of an Arrow table, about
ROWS_AT_FIRST = 1 << 14  # which tell how many bytes the rows have
MOST_ROWS = 1 << 20


@dataclass(frozen=True)
class Stream:
    """An answer as Arrow tables, one after the other and once: at least one, which may be empty.

    `num_rows` counts all rows where they are there already; None where they are made while somebody reads.  `profile` says what was
    done so far, and `hold` counts bytes that the reader keeps, or lets go of, towards the memory limit of a run that goes on.
    """

    tables: Generator[pa.Table] = field(repr=False)
    columns: tuple[Column, ...]
    num_rows: int | None
    profile: Callable[[], Profile] = field(repr=False)
    hold: Callable[[int], None] = field(default=lambda nbytes: None, repr=False)


def stream_of(result: Result, plan: Physical, context: Context) -> Stream:
    """Return the rows of a table as a stream."""
    tables = parts(result.backend, plan, result.table, context, BYTES_AT_A_TIME)
    receipt = result.profile
    return Stream(tables, result.columns, result.num_rows, lambda: receipt)


def parts(
    backend: Backend, plan: Physical, table: Any, context: Context, most_bytes: int
) -> Generator[pa.Table]:
    """Yield a table of a plan's rows as Arrow tables, of about so many bytes but for the first, so that it is not there twice."""
    total = backend.num_rows(table)
    if total <= ROWS_AT_FIRST:
        yield backend.to_arrow(table, plan.columns)
        return
    stored = Stored(0, plan.columns, device=plan.device)
    start, rows = 0, ROWS_AT_FIRST
    while start < total:
        context.check()
        limit = LimitRows(stored, rows, start, device=plan.device)
        part = backend.OPERATORS[LimitRows](limit, (table,), context)
        arrow = backend.to_arrow(part, plan.columns)
        start += rows
        rows = max(1, min(MOST_ROWS, rows * most_bytes // max(1, arrow.nbytes)))
        yield arrow
