"""Results of kernels, which lie on the host, and what operators do with few rows there.

A call of libcudf takes 0.05 ms and more however few the rows are, and so does a copy: to order the groups of an aggregate here
and leave them where they are takes less than to send them to the device and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan import physical as p
from ...plan.expr import Column
from ...plan.types import to_arrow as arrow_type
from ..context import Context

if TYPE_CHECKING:
    from .dictionaries import Held

MOST_ROWS = 4096  # beyond, the device sorts faster than the host
_NULL_RANK = MOST_ROWS + 1  # above the rank of any value

Arrays: TypeAlias = dict[Column, pa.Array]


class HostColumns(Mapping[int, "Held"]):
    """Columns by `Column.id` that lie on the host; when an operator asks for one, `move` puts all on the device.

    `arrays` are in the Arrow types in which results leave the engine.
    """

    def __init__(self, arrays: Arrays, move: Callable[[Arrays], Mapping[int, Held]]) -> None:
        self.arrays = arrays
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

    def renamed(self, pairs: Sequence[tuple[Column, Column]]) -> HostColumns:
        """Return columns under other identities, given as (new, old)."""
        return HostColumns({new: self.array(old) for new, old in pairs}, self.move)

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
    context.remarks[id(node)] = f"on the host: {rows:,} {'row' if rows == 1 else 'rows'}"
    return columns


def sorted_order(columns: HostColumns, keys: Sequence[p.Order]) -> Any:
    """Return the row numbers in the order of `sort.sorted_rows`; rows with equal keys keep theirs."""
    return np.lexsort([_ranks(columns.array(key.column), key) for key in reversed(keys)])


def _ranks(array: pa.Array, key: p.Order) -> Any:
    """Integers in the order of a key's values; equal for equal values.

    Arrow ranks strings by their bytes, all NaNs as one value above the others, and 0.0 and -0.0 alike.
    """
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    dense = pc.rank(array, "ascending", tiebreaker="dense")
    ranks = np.asarray(dense).astype(np.int64)
    if key.descending:
        ranks = -ranks
    if array.null_count:
        place = -_NULL_RANK if key.nulls_first else _NULL_RANK
        ranks[np.asarray(array.is_null())] = place
    return ranks
