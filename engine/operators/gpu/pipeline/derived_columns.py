"""Expressions over one column, evaluated on all its rows before the kernel that reads them runs: LIKE over long strings, say."""

from __future__ import annotations

import pylibcudf as plc

from ....codegen.row_sources import encoded_values
from ....codegen.typed_values import NotFusable
from ....errors import ConversionError, ExecutionError, OutOfRange
from ....plan.expr import Column, Expr, new_column
from ....plan.types import BOOLEAN, Kind
from ....storage.columns.device_encode import encoded_as
from ....storage.columns.encodings import TRUTHS, EncodedColumn
from ...context import Context
from ..columns import reinterpret, without_nulls
from ..dictionaries import Coded, Held
from ..functions.expressions import evaluate_all
from ..memory.device import kernel_files
from ..scan import run_column_kernels, substring_codes
from ..scan.dictionary_lookup import Substring
from ..scan.encode_columns import Encoded, encode_by_libcudf, encode_together
from ..table import Table

UINT8 = plc.DataType(plc.TypeId.UINT8)


def derived(expr: Expr, column: Column, held: Held, context: Context) -> EncodedColumn:
    """Return the values of an expression over `column` in all rows of `held`, encoded.

    A BOOLEAN's encoding does not depend on its values: a kernel made for one run fits the next, and nothing waits for the device.
    Of texts it may have values that an earlier run has found and that do not occur any more.
    Raises `NotFusable` for what has no encoding, and where the expression fails in some row, which an operator's filters may
    never get to.
    """
    context.check()
    kernel_files.place = context.kernel_directory, context.fuse
    source = substring_codes.source_of(expr, held.size())
    known = None
    if source is not None and isinstance(source[2], Substring):
        known = substring_codes.numbered(source, held, context)
    if known is not None:
        return known
    try:
        (values,) = evaluate_all([expr], Table({column.id: held}, held.size()))
    except (ConversionError, ExecutionError, OutOfRange) as error:
        raise NotFusable(f"an expression fails in some row: {error.message}") from error
    if expr.type.kind is Kind.BOOLEAN and not isinstance(values, Coded):
        return truths(values)
    if source is not None and isinstance(source[2], Expr):
        known = substring_codes.numbered(source, values, context)
    if known is not None:
        return known
    encoded = encoded_values(expr, _encoded(values, expr, context))
    if source is not None:
        substring_codes.remember(source, encoded)
    return encoded


def _encoded(values: Held, expr: Expr, context: Context) -> Encoded:
    if isinstance(values, Coded) or not run_column_kernels.ready(context, values.size()):
        return encode_by_libcudf(values, expr.type)
    column = new_column("derived", expr.type)
    stream = plc.utils.CUDF_DEFAULT_STREAM
    ((_, found),) = encode_together({"": values}, {"": column}, stream, context, False)
    return found


def truths(values: plc.Column) -> EncodedColumn:
    """Encode a BOOL8 column: its own bytes, 0 or 1, whichever of them occur."""
    if values.offset():
        values = values.copy()
    codes = without_nulls(reinterpret(values, UINT8), 0)
    return encoded_as(BOOLEAN, TRUTHS, values, codes, 0, 1)
