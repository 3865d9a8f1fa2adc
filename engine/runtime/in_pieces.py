"""Runs whose tables do not fit: the rows come a piece at a time, and what needs all of them spills."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ..errors import MemoryLimitError
from ..observe.profile import Profile
from ..operators.context import Context
from ..operators.pulling import MOST_ROWS_GPU, Pull
from ..operators.run_unfused import BackendTable
from ..plan.expr import Column
from ..plan.node import walk_once
from ..plan.physical import LimitRows, Physical, Stored
from ..progress.run_progress import rows_scanned
from ..records import dataclass
from .memory import MemoryBudget, ask_for_answer
from .run import Backend, Result, Run, explain, profile, result_of

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


IN_PIECES = "its rows came in pieces, since whole tables did not fit"


def result(run: Run) -> Result:
    """Pull all rows of a plan and return them as one table."""
    start = time.perf_counter()
    pull = _pull_all(run)
    with _advised(lambda: id(run.plan) in pull.collecting):
        with _explained(pull, run):
            table = pull.all_rows(run.plan)
        _note_all(pull, run)
        pull.collecting.add(id(run.plan))
        run.held.add(run.plan, id(run.plan), table, run.backends[run.plan.device].num_bytes(table))
    return result_of(run, table, start)


def stream(run: Run) -> Stream:
    """Return the rows of a plan as a stream that makes them while it is read; its spill area is there as long as it is."""
    pull = _pull_all(run)

    def receipt() -> Profile:
        _note_all(pull, run)
        return profile(run, sum(seconds for seconds, _ in pull.measured.values()))

    def hold(nbytes: int) -> None:
        with _advised():
            pull.hold(run.plan, nbytes)

    return Stream(_pulled(pull, run), run.plan.columns, None, receipt, hold)


def _pulled(pull: Pull[BackendTable], run: Run) -> Generator[pa.Table]:
    plan = run.plan
    backend = run.backends[plan.device]
    empty: pa.Table | None = None
    given = False
    try:
        with run.held.workspace.area, _explained(pull, run):
            for piece in pull.pieces(plan):
                if not piece.num_rows:
                    empty = backend.to_arrow(piece, plan.columns) if empty is None else empty
                    continue
                given = True
                most = min(BYTES_AT_A_TIME, pull.room(plan.device) // SHARE_OF_PART)
                with pull.holding(plan, piece):
                    yield from parts(backend, plan, piece, run.context, run.budget, most)
                del piece  # before the next one is made
            if not given and empty is not None:
                yield empty
    finally:
        pull.finish()


def pull_of(run: Run) -> Pull[BackendTable]:
    return Pull(run.backends, run.context, run.held.workspace.area, run.budget.room)


def note(pull: Pull[BackendTable], run: Run) -> None:
    """Have the receipt say what was pulled."""
    for below, (seconds, rows) in pull.measured.items():
        run.measured[below] = seconds, rows, 0


def _pull_all(run: Run) -> Pull[BackendTable]:
    run.context.receipts.clear()
    run.context.remarks.clear()
    progress = run.context.progress
    progress.begin([run.plan], run.measured, run.context.receipts)
    progress.expect(sum(map(rows_scanned, walk_once(run.plan))), counts_rows=True)
    # All rows are wanted: small pieces first would only cost a GPU more calls of its reader
    return replace(pull_of(run), readers=run.readers, first_rows=MOST_ROWS_GPU, reads_all=True)


def _note_all(pull: Pull[BackendTable], run: Run) -> None:
    note(pull, run)
    plan, remarks = run.plan, run.context.remarks
    known = remarks.get(id(plan))
    if known is None or not known.startswith(IN_PIECES):
        remarks[id(plan)] = IN_PIECES if known is None else f"{IN_PIECES}; {known}"


@contextmanager
def _explained(pull: Pull[BackendTable], run: Run) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        explain(error, pull.running or run.plan, run)
        raise


@contextmanager
def _advised(is_answer: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Say how an answer can be read for which there is no room."""
    try:
        yield
    except MemoryLimitError as error:
        if is_answer():
            error.advise_parts()
        raise
