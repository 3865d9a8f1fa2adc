"""The host's part in GPU operators: who computes single values there, and how many they were; who runs nodes over few rows.

Imports no GPU library, so that `device` can.  Both are given by `prepare`; this package knows no other backend.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...plan.expr import Column, Expr
from ...plan.physical import Physical
from ..context import Context

if TYPE_CHECKING:
    import pyarrow as pa

    from ..cpu.table import Table

# An expression, the columns that it reads, and their values -> its values, all in the types of `plan.types.to_arrow`.
Evaluator = Callable[[Expr, "Sequence[Column]", "pa.Table"], "pa.Array"]
# A node, and the columns of its children -> its own columns, in the form of the host's operators.
Operator = Callable[[Physical, "tuple[Table, ...]", Context], "Table"]


class _Given:
    """Who computes; one evaluator and one operator a process."""

    evaluator: Evaluator | None = None
    operator: Operator | None = None


class _Thread(threading.local):
    """Where the operator that runs on a thread counts its values, by function."""

    counts: dict[str, int] | None = None


counting = _Thread()


def use(evaluator: Evaluator | None, operator: Operator | None) -> None:
    """Have single values computed by `evaluator` from now on, and nodes over few rows run by `operator`; None changes nothing."""
    _Given.evaluator = evaluator or _Given.evaluator
    _Given.operator = operator or _Given.operator


def operator() -> Operator | None:
    """Return who runs nodes over few rows."""
    return _Given.operator


def evaluate(what: str, expr: Expr, columns: Sequence[Column], values: pa.Table) -> pa.Array:
    """Return `expr` over some columns' values; `what` is the name under which they are counted."""
    if _Given.evaluator is None:
        raise RuntimeError(f"{what} needs the host for some values: call prepare(host=...) first.")
    counts = counting.counts
    if counts is not None:
        counts[what] = counts.get(what, 0) + values.num_rows
    return _Given.evaluator(expr, columns, values)
