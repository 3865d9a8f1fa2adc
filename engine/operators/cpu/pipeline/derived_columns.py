"""Expressions over one column, evaluated on all its rows before the kernel that reads them runs: LIKE over long strings, say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ....codegen.typed_values import NotFusable
from ....errors import ConversionError, ExecutionError, OutOfRange
from ....plan.expr import Column, Expr
from ....plan.types import BOOLEAN, Kind
from ....storage.columns.encode import encode
from ....storage.columns.encodings import PADDING, Dictionary, EncodedColumn, Narrow
from ...context import Context
from ...text_limits import MOST_STRINGS
from ..functions.expressions import evaluate
from ..table import Table, to_numpy, validity


def derived(expr: Expr, column: Column, held: pa.Array, context: Context) -> EncodedColumn:
    """Return the values of an expression over `column` in all rows of `held`, encoded.

    A BOOLEAN's encoding does not depend on its values, so that a kernel made for one run fits the next.  Raises `NotFusable` for
    what has no encoding, and where the expression fails in some row, which an operator's filters may never get to.
    """
    try:
        values = evaluate(expr, Table({column.id: held}, len(held)), context.threads)
    except (ConversionError, ExecutionError, OutOfRange) as error:
        raise NotFusable(f"an expression fails in some row: {error.message}") from error
    if expr.type.kind is Kind.BOOLEAN:
        return truths(values)
    encoded = encode(values, expr.type, context.threads)
    if encoded is None:
        raise NotFusable(f"an expression's values ({expr.type}) have no narrow encoding")
    if isinstance(encoded.encoding, Dictionary) and len(encoded.encoding.values) > MOST_STRINGS:
        raise NotFusable(f"an expression has more than {MOST_STRINGS:,} different values")
    return encoded


def truths(values: pa.Array) -> EncodedColumn:
    """Encode a BOOLEAN array: a byte a row, 0 or 1, whichever of them occur."""
    rows = len(values)
    codes = _padded(to_numpy(values).view(np.uint8))
    mask = validity(values)
    if mask is None:
        return EncodedColumn(BOOLEAN, Narrow(0, 1, 1), rows, codes, None, 0, 0, 1, rows)
    codes *= mask
    bitmap = _padded(np.packbits(mask, bitorder="little"))
    size, nulls = rows + len(bitmap), values.null_count
    return EncodedColumn(BOOLEAN, Narrow(0, 1, 1), rows, codes, bitmap, nulls, 0, 1, size)


def _padded(values: Any) -> Any:
    """A copy of bytes in a buffer of a multiple of `PADDING`."""
    buffer = np.zeros(-(-len(values) // PADDING) * PADDING, np.uint8)
    buffer[: len(values)] = values
    return buffer[: len(values)]
