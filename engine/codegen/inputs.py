"""Encoded columns as the code generator sees them."""

from __future__ import annotations

from ..plan.expr import Column
from ..storage.columns.encodings import Dictionary, EncodedColumn, Narrow, Plain
from .loop import Machine
from .ranges import IntegerRange
from .typed_values import Input


def input_of(column: Column, encoded: EncodedColumn) -> Input:
    """Describe an encoded column: its codes, and what values they stand for."""
    nullable = encoded.validity is not None
    match encoded.encoding:
        case Narrow(width=8):
            whole = IntegerRange(encoded.low or 0, encoded.high or 0)
            return Input(column, 8, nullable, raw=whole, clustered=encoded.clustered)
        case Narrow(base, step, width):
            last = 0 if encoded.high is None else (encoded.high - base) // step
            return Input(
                column,
                width,
                nullable,
                base,
                step,
                last + 1,
                ascending=encoded.ascending,
                clustered=encoded.clustered,
            )
        case Dictionary(values, width):
            return Input(column, width, nullable, codes=max(len(values), 1), values=values)
        case Plain(width):
            machine = Machine.F32 if width == 4 else Machine.F64
            return Input(column, width, nullable, machine=machine)
