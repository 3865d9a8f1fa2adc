"""Columns of tables that operators made, as kernels read them."""

from __future__ import annotations

from ....codegen.typed_values import NotFusable
from ....plan.expr import Column
from ....storage.columns.encode import encode
from ....storage.columns.encodings import EncodedColumn
from ..table import Table


def stored_column(table: Table, column: Column, threads: int) -> EncodedColumn:
    """Return a column of a table that an operator made as kernels read it; raises `NotFusable` for one that has no encoding."""
    held = table.encoded.get(column.id)
    if held is None:
        held = encode(table[column], column.type, threads, narrow=False)
        if held is None:
            raise NotFusable(f'"{column.name}" ({column.type}) has no narrow encoding')
        table.encoded[column.id] = held
    return held
