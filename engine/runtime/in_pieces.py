"""Runs whose tables do not fit: the rows come a piece at a time, and what needs all of them spills."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import MemoryLimitError
from ..observe.profile import Profile
from ..operators.pulling import MOST_ROWS_GPU, Pull
from ..operators.run_unfused import BackendTable
from ..plan.node import walk_once
from ..progress.run_progress import rows_scanned
from .run import Result, Run, explain, profile, result_of
from .stream import BYTES_AT_A_TIME, SHARE_OF_PART, Stream, parts

if TYPE_CHECKING:
    import pyarrow as pa

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
        run.held.add(run.plan, table, run.backends[run.plan.device].num_bytes(table))
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
