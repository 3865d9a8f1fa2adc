"""Encoded columns as the code generator sees them."""

from __future__ import annotations

from typing import Any

from ..plan.expr import Column, Expr
from ..storage.columns.encodings import EncodedColumn
from .loop import Machine
from .ranges import IntegerRange
from .typed_values import Input, NotFusable

MOST_STRINGS = 1 << 16  # different ones: a kernel that reads more of them gains nothing by it


def input_of(column: Column, encoded: EncodedColumn) -> Input:
    """Describe an encoded column: its codes, and what values they stand for."""
    encoding, machine = encoded.encoding, None
    if encoding.is_float:
        machine = Machine.F32 if encoding.width == 4 else Machine.F64
    codes = encoding.count(encoded.high)
    whole = codes is None and machine is None
    return Input(
        column,
        encoding.width,
        encoded.validity is not None,
        encoding.base,
        encoding.step,
        codes,
        encoding.values,
        machine,
        IntegerRange(encoded.low or 0, encoded.high or 0) if whole else None,
        encoded.ascending and not whole,
        encoded.clustered,
    )


def encoded_values(expr: Expr, found: Any) -> EncodedColumn:
    """Return the encoded values of an expression if kernels can use them; raises `NotFusable`."""
    if not isinstance(found, EncodedColumn):
        raise NotFusable(f"an expression's values ({expr.type}) have no narrow encoding")
    values = found.encoding.values
    if values is not None and len(values) > MOST_STRINGS:
        raise NotFusable(f"an expression has more than {MOST_STRINGS:,} different values")
    return found
