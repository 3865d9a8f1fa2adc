"""The sides of a join that does not fit into device memory: cut into parts by their keys, and put together again.

On the host they lie in the types of results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pylibcudf as plc

from ...plan.expr import Column
from ...plan.types import to_arrow as arrow_type
from ..spilling import PARTS, PIECE_BYTES, Piece
from . import table as tables
from .columns import INT32, as_key, binary, cast, scalar, select, sequence
from .device import is_out_of_memory
from .table import Table

UINT32 = plc.DataType(plc.TypeId.UINT32)
Op = plc.binaryop.BinaryOperator
ASCENDING, NO_NULLS = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
FEWEST_ROWS = 1 << 10  # of a piece, whatever little memory there is


def parted(table: Table, keys: Sequence[Column], columns: Sequence[Column]) -> Iterator[Piece]:
    """Yield the rows of a table, some at a time, in the order of their parts; an empty table as one piece.

    Pieces become smaller where the device has no memory to bring them into that order.
    """
    step = max(1, table.num_rows * PIECE_BYTES // max(1, tables.num_bytes(table)))
    start = 0
    while start < max(1, table.num_rows):
        try:
            piece = _piece(tables.slice_rows(table, start, step), keys, columns)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error) or step <= FEWEST_ROWS:
                raise
            step //= 4
            continue
        start += step
        yield piece


def unparted(rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> Table:
    """Return rows of pieces as a table; raises `MemoryError` when the device has no room for it."""
    schema = pa.schema([(str(c.id), arrow_type(c.type)) for c in columns])
    try:
        return tables.from_arrow(pa.Table.from_batches(rows, schema), columns)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError(str(error)) from error


def _piece(rows: Table, keys: Sequence[Column], columns: Sequence[Column]) -> Piece:
    if not rows.num_rows:
        return Piece(_batch(rows, columns), [0] * (PARTS + 1))
    numbers = plc.Table([part_numbers([rows[key] for key in keys])])
    # Not `partitioning.partition`, which gave wrong DECIMAL128 beside a BIGINT (libcudf 26.10, H200)
    order = plc.sorting.stable_sorted_order(numbers, ASCENDING, NO_NULLS)
    ordered = plc.copying.gather(numbers, order, tables.DONT_CHECK)
    wanted = plc.Table([sequence(PARTS + 1)])
    bounds = plc.search.lower_bound(ordered, wanted, ASCENDING, NO_NULLS)
    batch = _batch(tables.gather(rows, order, columns), columns)
    return Piece(batch, bounds.to_arrow().to_pylist())


def part_numbers(keys: Sequence[plc.Column]) -> plc.Column:
    """Return the part of each row: the same for keys that are equal in SQL, 0 where one of them is NULL."""
    hashes = plc.hashing.murmurhash3_x86_32(plc.Table([as_key(key) for key in keys]))
    numbers = cast(binary(hashes, scalar(PARTS, UINT32), Op.MOD, UINT32), INT32)
    for key in keys:
        if key.null_count():
            numbers = select(plc.unary.is_valid(key), numbers, scalar(0, INT32))
    return numbers


def _batch(table: Table, columns: Sequence[Column]) -> Any:
    host = tables.to_arrow(table, columns).combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in host.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, [str(c.id) for c in columns])
