"""Columns that are encoded for the kernels of one run: those of tables that operators made, and expressions over one column, evaluated on
all its rows before: LIKE over long strings, say.
"""

from __future__ import annotations

import pyarrow as pa

from ....codegen.row_sources import encoded_values
from ....codegen.typed_values import NotFusable, unnumbered
from ....errors import ConversionError, ExecutionError, OutOfRange
from ....plan.expr import Column, Expr
from ....plan.types import Kind
from ....storage.columns.encode import encode
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ..functions.expressions import evaluate
from ..table import Table


def derived(expr: Expr, column: Column, held: pa.Array, context: Context) -> EncodedColumn:
    """Return the values of an expression over `column` in all rows of `held`, encoded.

    A BOOLEAN's encoding does not depend on its values, so that a kernel made for one run fits the next.  Raises `NotFusable` for
    what has no encoding, and where the expression fails in some row, which an operator's filters may never get to.
    """
    try:
        values = evaluate(expr, Table({column.id: held}, len(held)), context.threads)
    except (ConversionError, ExecutionError, OutOfRange) as error:
        raise NotFusable(f"an expression fails in some row: {error.message}") from error
    narrow = expr.type.kind is not Kind.BOOLEAN
    return encoded_values(expr, encode(values, expr.type, context.threads, narrow))


def stored_column(table: Table, column: Column, threads: int) -> EncodedColumn:
    """Return a column of a table that an operator made as kernels read it; raises `NotFusable` for one that has no encoding."""
    held = table.encoded.get(column.id)
    if held is None:
        held = encode(table[column], column.type, threads, narrow=False)
        if held is None:
            raise unnumbered(f'"{column.name}"', column.type)
        table.encoded[column.id] = held
    return held
