"""Answers that are read a part at a time, as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..observe.profile import Profile
from ..operators.context import Context
from ..operators.run_unfused import BackendTable
from ..plan.expr import Column
from ..plan.physical import LimitRows, Physical, Stored
from .memory import MemoryBudget, ask_for_answer
from .run import Backend, Result

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_AT_A_TIME = 1 << 26  # of an Arrow table, about
ROWS_AT_FIRST = 1 << 14  # which tell how many bytes the rows have
MOST_ROWS = 1 << 20
SHARE_OF_PART = 16  # of the room, what an Arrow table that is handed over may take, about


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
    room = result.budget.room("cpu")
    most = BYTES_AT_A_TIME if room is None else min(BYTES_AT_A_TIME, room // SHARE_OF_PART)
    tables = parts(result.backend, plan, result.table, context, result.budget, most)
    receipt = result.profile
    return Stream(tables, result.columns, result.num_rows, lambda: receipt)


def parts(
    backend: Backend,
    plan: Physical,
    table: BackendTable,
    context: Context,
    budget: MemoryBudget,
    most_bytes: int,
) -> Generator[pa.Table]:
    """Yield a table of a plan's rows as Arrow tables, of about so many bytes but for the first, so that it is not there twice.

    Raises `MemoryLimitError` where the host has no room for one.
    """
    total = table.num_rows
    size = backend.arrow_bytes(table, plan.columns)
    if total <= ROWS_AT_FIRST and size <= most_bytes:
        ask_for_answer(budget, size)
        yield backend.to_arrow(table, plan.columns)
        return
    stored = Stored(0, plan.columns, device=plan.device)
    start, rows = 0, max(1, min(ROWS_AT_FIRST, total * most_bytes // max(1, size)))
    while start < total:
        context.check()
        ask_for_answer(budget, size * min(rows, total) // total)
        limit = LimitRows(stored, rows, start, device=plan.device)
        part = backend.OPERATORS[LimitRows](limit, (table,), context)
        arrow = backend.to_arrow(part, plan.columns)
        start += rows
        rows = max(1, min(MOST_ROWS, rows * most_bytes // max(1, arrow.nbytes)))
        yield arrow
