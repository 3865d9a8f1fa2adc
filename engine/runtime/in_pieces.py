"""Runs whose tables do not fit: the rows come a piece at a time, and what needs all of them spills."""

from __future__ import annotations

import time
from dataclasses import replace

from ..operators.pulling import MOST_ROWS_GPU, Pull
from .run import Result, Run, explain, result_of

IN_PIECES = "its rows came in pieces, since whole tables did not fit"


def result(run: Run) -> Result:
    """Pull all rows of a plan and return them as one table."""
    start = time.perf_counter()
    pull = _pull_all(run)
    try:
        table = pull.all_rows(run.plan)
    except Exception as error:
        explain(error, pull.running or run.plan, run)
        raise
    _note_all(pull, run)
    run.held.add(run.plan, table, run.backends[run.plan.device].num_bytes(table))
    return result_of(run, table, start)


def pull_of(run: Run) -> Pull:
    return Pull(run.backends, run.context, run.held.area, run.budget.room)


def note(pull: Pull, run: Run) -> None:
    """Have the receipt say what was pulled."""
    for below, (seconds, rows) in pull.measured.items():
        run.measured[below] = seconds, rows, 0


def _pull_all(run: Run) -> Pull:
    run.context.receipts.clear()
    run.context.remarks.clear()
    # All rows are wanted: small pieces first would only cost a GPU more calls of its reader
    return replace(pull_of(run), readers=run.readers, first_rows=MOST_ROWS_GPU)


def _note_all(pull: Pull, run: Run) -> None:
    note(pull, run)
    plan, remarks = run.plan, run.context.remarks
    parts = remarks.get(id(plan))
    remarks[id(plan)] = IN_PIECES if parts is None else f"{IN_PIECES}; {parts}"
