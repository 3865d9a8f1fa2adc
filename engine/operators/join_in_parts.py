"""Joins of sides in parts: each row finds all of its partners in the part of the other side that has its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..plan import physical as p
from ..plan.expr import Column
from ..plan.pipeline_steps import columns_read
from .run_unfused import T
from .spilling import PARTS, SHARE_OF_PARTS, Spool, Workspace, in_parts

# Of the room that is left to joins of whole tables, what the inputs of parts may take, and of these sides:
# beside them lie indexes, pairs and what comes out
SHARE_OF_ROOM = 4
SHARE_OF_SIDES = 8


def side_of(workspace: Workspace[T], node: p.HashJoin, place: int) -> Spool[T]:
    """Return where the rows of a join's side gather: the columns that the join reads or passes on."""
    read = {*node.columns, *columns_read(node)}
    child = node.children[place]
    keys: tuple[Column, ...] = (node.left_keys, node.right_keys)[place]
    return Spool(workspace, child, keys, [c for c in child.columns if c in read])


def join_tables(workspace: Workspace[T], node: p.HashJoin, sides: Sequence[Spool[T]]) -> T:
    """Return the join of sides that were tables.

    Raises `MemoryLimitError` or `MemoryError` when a single part does not fit, nor what the parts give together.
    """
    backend, held = workspace.backends[node.device], 0
    results: list[T] = []

    def joined(tables: Sequence[T]) -> Iterator[T]:
        yield workspace.run(node, tuple(tables))

    try:
        for table in joined_parts(workspace, node, sides, joined, (SHARE_OF_ROOM, SHARE_OF_SIDES)):
            results.append(backend.settled(table))
            size = backend.num_bytes(results[-1])
            held += size
            workspace.hold(node, size)
            del table
        return workspace.together(node, results, node.columns)
    finally:
        workspace.hold(node, -held)


def joined_parts(
    workspace: Workspace[T],
    node: p.HashJoin,
    sides: Sequence[Spool[T]],
    join: Callable[[Sequence[T]], Iterator[T]],
    shares: tuple[int, int] = (SHARE_OF_PARTS, 1),
) -> Iterator[T]:
    """Yield what `join` makes of the parts of both sides."""
    more: list[Sequence[pa.RecordBatch]] = [(), ()]
    if node.null_aware and any(side.spilled for side in sides):
        for side in sides:
            side.spill()
        more[1] = _witness(sides[1])
    yield from in_parts(workspace, node, sides, join, more, shares=shares)


def _witness(right: Spool[T]) -> list[pa.RecordBatch]:
    """Return a row that all parts of the right side of NOT IN get, if it has one: with a NULL if there is one.

    A value without a match is unknown where the right side has a NULL, and a NULL is where it has any row, in whichever part.
    Such a join passes on no right row, so that one more does no harm.
    """
    place = right.columns.index(right.keys[0])
    found: list[pa.RecordBatch] = []
    for part in range(PARTS):
        for rows in filter(len, right.batches(part, part + 1)):
            null = pc.indices_nonzero(_is_null(rows.column(place)))
            if len(null):
                return [rows.slice(null[0].as_py(), 1)]
            found = found or [rows.slice(0, 1)]
        if found:  # all NULLs are in the first part
            return found
    return found


def _is_null(keys: pa.Array) -> pa.Array:
    return pc.is_null(keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys)
