"""Joins larger than memory: both sides are cut into parts by their keys, leave memory, and come back a few parts at a time.

Rows with equal keys are in the part of one number on both sides, and rows with NULL among their keys in the first one, so that
each row finds all of its partners in its own part: what the parts give, put together, is the join, of every kind.  There
are always `PARTS` parts; as many are joined at a time as fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..plan import physical as p
from ..plan.expr import Column
from ..plan.pipeline_steps import columns_read
from .context import Context
from .host_memory import readable
from .run_unfused import Operator, T
from .spill_area import SpillArea, SpilledFile, SpilledPiece

PARTS = 64
# Of the memory that is left, what the inputs of joined parts may take: beside them lie indexes, pairs and what comes out
SHARE_OF_ROOM = 4
SHARE_OF_SIDES = 8  # what is joined at a time of sides that the device had no memory for
PIECE_BYTES = 256 << 20  # of a side, cut at a time


class Parting(Protocol[T]):
    """What a backend does for it: `operators.cpu` and `operators.gpu` are modules with these names."""

    OPERATORS: Mapping[type[p.Physical], Operator[T]]

    # Yields the rows of a table, or of a scan of one row group, as they are decoded; None where these are read whole
    batches: Callable[[p.ParquetScan | p.MemoryScan, Iterable[int], Context], Iterator[T]] | None

    def num_bytes(self, table: T) -> int: ...

    def num_rows(self, table: T) -> int: ...

    def parted(
        self, table: T, keys: Sequence[Column], columns: Sequence[Column]
    ) -> Iterator[SpilledPiece]: ...

    def unparted(self, rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> T: ...

    def piece_of(
        self, table: T, bounds: Sequence[int], columns: Sequence[Column]
    ) -> SpilledPiece: ...

    def settled(self, table: T) -> T: ...

    def numbered(self, table: T, column: Column, start: int) -> T: ...

    def arrow_bytes(self, table: T, columns: tuple[Column, ...]) -> int: ...

    def to_arrow(self, table: T, columns: tuple[Column, ...]) -> pa.Table: ...

    def from_arrow(self, table: pa.Table, columns: tuple[Column, ...]) -> T: ...


class Parted(Protocol):
    """Rows in parts by keys."""

    keys: tuple[Column, ...]
    columns: tuple[Column, ...]

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]: ...


class SpilledRows:
    """Rows in parts by some keys, outside of the device's memory; `sizes` are the bytes of each part."""

    def __init__(
        self, keys: Sequence[Column], columns: Sequence[Column], area: SpillArea, device: p.Device
    ) -> None:
        self.keys, self.columns = tuple(keys), tuple(columns)
        self.sizes = [0] * PARTS
        self._pieces: list[SpilledPiece | SpilledFile] = []
        self._area, self._device = area, device

    def add(self, piece: SpilledPiece) -> None:
        for i in range(PARTS):
            self.sizes[i] += sum(rows.nbytes for rows in piece.parts(i, i + 1))
        self._pieces.append(self._area.keep(piece, self._device))

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        return list(self.pieces(first, last))

    def pieces(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some parts, each piece read when it is asked for."""
        for piece in self._pieces:
            yield from piece.parts(first, last)

    def drop(self) -> None:
        """Let go of all parts."""
        while self._pieces:
            self._area.drop(self._pieces.pop())

    @property
    def places(self) -> Counter[str]:
        """Where the parts lie, and how many bytes they take there."""
        found: Counter[str] = Counter()
        for piece in self._pieces:
            found[piece.place] += piece.size
        return +found


class SpilledSide(SpilledRows):
    """One side of a join in parts."""

    def __init__(self, node: p.HashJoin, place: int, area: SpillArea) -> None:
        keys = (node.left_keys, node.right_keys)[place]
        super().__init__(keys, read_of(node, place), area, node.device)


def read_of(node: p.HashJoin, place: int) -> tuple[Column, ...]:
    """Return the columns of a side that a join reads or passes on."""
    read = {*node.columns, *columns_read(node)}
    return tuple(c for c in node.children[place].columns if c in read)


def join_in_parts(
    node: p.HashJoin,
    sides: tuple[SpilledSide, SpilledSide],
    context: Context,
    backend: Parting[T],
    room: Callable[[], int | None],
) -> T:
    """Return the join of two spilled sides; `room` says how many bytes are left, None where nobody knows.

    Raises `MemoryLimitError` or `MemoryError` when a single part does not fit, nor what the parts give together.
    """
    sizes = list(map(sum, zip(sides[0].sizes, sides[1].sizes, strict=True)))
    most = sum(sizes) // SHARE_OF_SIDES
    held = first = groups = 0
    results: list[T] = []

    def hold(nbytes: int) -> None:
        nonlocal held
        held += nbytes
        context.hold(node, nbytes)

    more = witness(node, sides[1])
    try:
        while first < PARTS:
            context.check()
            left = room()
            last = end_of(sizes, first, most if left is None else min(most, left // SHARE_OF_ROOM))
            try:
                results.append(_joined(node, sides, (first, last), more, context, backend, hold))
            except MemoryError:
                if last == first + 1:
                    raise
                most = sum(sizes[first:last]) // 2
                continue
            first, groups = last, groups + 1
        places = sides[0].places + sides[1].places
        context.spilled.update(places)
        context.remarks[id(node)] = f"in {groups} part{'s' * (groups > 1)}, {spilled_text(places)}"
        rows = p.ConcatRows((node,) * len(results), node.columns, device=node.device)
        return backend.OPERATORS[p.ConcatRows](rows, tuple(results), context)
    finally:
        context.hold(node, -held)
        for side in sides:
            side.drop()


def spilled_text(places: Mapping[str, int]) -> str:
    """How many bytes lay where, memory first."""
    if not places:
        return "nothing spilled"
    parts = [f"{readable(places[place])} to {place}" for place in sorted(places, reverse=True)]
    return f"spilled {' and '.join(parts)}"


def _joined(
    node: p.HashJoin,
    sides: tuple[SpilledSide, SpilledSide],
    parts: tuple[int, int],
    more: list[pa.RecordBatch],
    context: Context,
    backend: Parting[T],
    hold: Callable[[int], None],
) -> T:
    """Join some parts; their inputs count towards the memory limit meanwhile, and the result from then on."""
    left = backend.unparted(sides[0].parts(*parts), sides[0].columns)
    right = backend.unparted([*sides[1].parts(*parts), *more], sides[1].columns)
    size = backend.num_bytes(left) + backend.num_bytes(right)
    try:
        hold(size)
        table = backend.OPERATORS[p.HashJoin](node, (left, right), context)
    finally:
        hold(-size)
    hold(backend.num_bytes(table))
    return table


def end_of(sizes: Sequence[int], first: int, most: int) -> int:
    """Return the number after the last part that is joined together with the first one: at least that one."""
    sums = accumulate(sizes[first:])
    return first + max(1, sum(1 for total in sums if total <= most))


def witness(node: p.HashJoin, right: Parted) -> list[pa.RecordBatch]:
    """Return a row that all parts of the right side of NOT IN get, if it has one: with a NULL if there is one.

    A value without a match is unknown where the right side has a NULL, and a NULL is where it has any row, in whichever part.
    Such a join passes on no right row, so that one more does no harm.
    """
    if not node.null_aware:
        return []
    place = right.columns.index(right.keys[0])
    found: list[pa.RecordBatch] = []
    for part in range(PARTS):
        for rows in filter(len, right.parts(part, part + 1)):
            null = pc.indices_nonzero(_is_null(rows.column(place)))
            if len(null):
                return [rows.slice(null[0].as_py(), 1)]
            found = found or [rows.slice(0, 1)]
        if found:  # all NULLs are in the first part
            return found
    return found


def _is_null(keys: pa.Array) -> pa.Array:
    return pc.is_null(keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys)
