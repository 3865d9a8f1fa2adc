"""Results of kernels, which lie on the host, and what operators do with few rows there.

A call of libcudf takes 0.05 ms and more however few the rows are, and so does a copy: to order the groups of an aggregate here
and leave them where they are takes less than to send them to the device and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...plan import physical as p
from ...plan.expr import Column
from ...plan.types import to_arrow as arrow_type
from ..context import Context

if TYPE_CHECKING:
    from .dictionaries import Held

MOST_ROWS = 4096  # beyond, the device sorts faster than the host
LONG_BITS = 64
WORD_BITS = LONG_BITS - 1  # of an integer without its sign

Arrays: TypeAlias = dict[Column, pa.Array]


class HostColumns(Mapping[int, "Held"]):
    """Columns by `Column.id` that lie on the host; when an operator asks for one, `move` puts all on the device.

    `arrays` are in the Arrow types in which results leave the engine.  Of strings that came as codes `ranks` has these, which
    compare as the strings do.
    """

    def __init__(
        self,
        arrays: Arrays,
        move: Callable[[Arrays], Mapping[int, Held]],
        ranks: Mapping[Column, Any] | None = None,
    ) -> None:
        self.arrays, self.ranks = arrays, ranks or {}
        self.move = move
        self._places = {column.id: column for column in arrays}
        self._moved: Mapping[int, Held] | None = None

    def __getitem__(self, column_id: int) -> Held:
        if self._moved is None:
            self._moved = self.move(self.arrays)
        return self._moved[column_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, column_id: object) -> bool:
        return column_id in self._places

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def array(self, column: Column) -> pa.Array:
        return self.arrays[self._places[column.id]]

    def renamed(self, pairs: Iterable[tuple[Column, Column]]) -> HostColumns:
        """Return columns under other identities, given as (new, old)."""
        same = list(pairs)
        found = HostColumns({new: self.array(old) for new, old in same}, self.move)
        if self._moved is not None:
            found._moved = {new.id: self._moved[old.id] for new, old in same}
        return found

    def take(self, rows: Any) -> HostColumns:
        """Return the rows of these numbers."""
        names = [str(i) for i in self._places]
        batch = pa.RecordBatch.from_arrays(list(self.arrays.values()), names)
        picked = batch.take(pa.array(rows)).columns
        return HostColumns(dict(zip(self.arrays, picked, strict=True)), self.move)

    def slice(self, offset: int, count: int) -> HostColumns:
        """Return rows from `offset` on without copying."""
        parts = {column: array.slice(offset, count) for column, array in self.arrays.items()}
        return HostColumns(parts, self.move)

    def to_arrow(self, columns: Sequence[Column]) -> pa.Table:
        """Return columns in the Arrow types of results."""
        types = [arrow_type(c.type) for c in columns]
        arrays = [self.array(c) for c in columns]
        exact = [a if a.type == t else a.cast(t) for a, t in zip(arrays, types, strict=True)]
        schema = pa.schema([(c.name, t) for c, t in zip(columns, types, strict=True)])
        return pa.Table.from_arrays(exact, schema=schema)


def few_on_host(
    node: p.Physical, columns: Mapping[int, Held], rows: int, context: Context
) -> HostColumns | None:
    """Return columns that a node is to handle on the host, which is noted for its profile; None for those that it is not."""
    if not isinstance(columns, HostColumns) or rows > MOST_ROWS:
        return None
    note(node, rows, context)
    return columns


def note(node: p.Physical, rows: int, context: Context) -> None:
    """Say in the profile that the host handles so many rows."""
    context.remarks[id(node)] = f"on the host: {rows:,} {'row' if rows == 1 else 'rows'}"


def sorted_order(
    columns: HostColumns, keys: Sequence[p.Order], first: int | None = None
) -> npt.NDArray[np.int64]:
    """Return the row numbers in the order of `sort.sorted_rows`, or the `first` of them; rows with equal keys keep theirs."""
    lead = _ranks(columns, keys[0])
    if first is None or len(lead) < 2 * first:
        rest = [_ranks(columns, key) for key in keys[1:]]
        return ascending([lead, *rest])[:first]
    candidates = least(lead, first)
    chosen = columns.take(candidates)
    rest = [_ranks(chosen, key) for key in keys[1:]]
    return candidates[ascending([lead[candidates], *rest])[:first]]


def least(ranks: npt.NDArray[np.int64], first: int) -> npt.NDArray[np.int64]:
    """Return the numbers of all rows that can be among the `first` by their first key, in order."""
    bound = np.partition(ranks, first - 1)[first - 1]
    return np.flatnonzero(ranks <= bound)


def ascending(keys: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the numbers of rows in the order of integers, the first key first; rows with equal keys keep theirs.

    Keys that fit into 63 bits together with the row number are sorted as one number, which takes a tenth of the time.
    """
    rows = len(keys[0])
    place = max(rows - 1, 0).bit_length()
    lows = [int(k.min()) for k in keys] if rows else []
    widths = [(int(k.max()) - low).bit_length() for k, low in zip(keys, lows, strict=False)]
    if not rows or place + sum(widths) > WORD_BITS:
        return np.lexsort(list(reversed(keys)))
    packed = np.zeros(rows, np.int64)
    for key, low, width in zip(keys, lows, widths, strict=True):
        packed = (packed << width) + (key - low)
    packed = (packed << place) + np.arange(rows)
    packed.sort()
    return packed & ((1 << place) - 1)


def _ranks(columns: HostColumns, key: p.Order) -> npt.NDArray[np.int64]:
    """Integers in the order of a key's values; equal for equal values.

    Arrow ranks strings by their bytes, all NaNs as one value above the others, and 0.0 and -0.0 alike.
    """
    array = columns.array(key.column)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    ranks = columns.ranks.get(key.column)
    if ranks is None:
        ranks = _integers(array)
    if ranks is None:
        dense = pc.rank(array, "ascending", tiebreaker="dense")
        ranks = np.asarray(dense).astype(np.int64)
    if key.descending:
        ranks = ~ranks
    if array.null_count:
        missing = np.asarray(array.is_null())
        there = ranks[~missing]
        low, high = (int(there.min()), int(there.max())) if len(there) else (0, 0)
        ranks = np.where(missing, low - 1 if key.nulls_first else high + 1, ranks)
    return ranks


def _integers(array: pa.Array) -> npt.NDArray[np.int64] | None:
    """The integers behind dates and whole numbers of at most 32 bits, or of 64 without NULL; None for other types."""
    kind = array.type
    if pa.types.is_date32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(kind) and not array.null_count:
        array = array.view(pa.int64())
    elif not pa.types.is_integer(kind) or kind == pa.uint64():
        return None
    if array.null_count:
        if array.type.bit_width == LONG_BITS:
            return None  # NULL must have a place below or above all values
        array = array.fill_null(0)
    return np.asarray(array).astype(np.int64)
