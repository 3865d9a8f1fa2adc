"""Columns that are gathered when somebody asks for them, by the numbers of their rows: the first rows in an order are picked before their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SAMPLED = 1 << 6  # rows, by which the bytes of a column are estimated
Rows = npt.NDArray[np.int64]
Gather = Callable[[Sequence[int], Rows | None], list[pa.Array]]


class DeferredColumns(Mapping[int, pa.Array]):
    """Columns by `Column.id`: some `there`, and `late` ones; `gather` returns these at some of the `length` rows, or at all.

    Who asks for one as a mapping gets all of them gathered, as they would have been at first.
    """

    def __init__(
        self, there: Mapping[int, pa.Array], late: Sequence[int], gather: Gather, length: int
    ) -> None:
        self._there = dict(there)
        self._late, self._gather, self._length = tuple(late), gather, length

    def __getitem__(self, column_id: int) -> pa.Array:
        if column_id not in self._there and column_id in self._late:
            self.fetch(self._late)
        return self._there[column_id]

    def __iter__(self) -> Iterator[int]:
        yield from self._there
        yield from (i for i in self._late if i not in self._there)

    def __len__(self) -> int:
        return len(self._there.keys() | set(self._late))

    def __contains__(self, column_id: object) -> bool:
        return column_id in self._there or column_id in self._late

    def fetch(self, column_ids: Iterable[int]) -> None:
        """Gather those of some columns that are not there yet."""
        missing = self._missing(column_ids)
        if missing:
            self._there |= zip(missing, self._gather(missing, None), strict=True)

    def picked(
        self, column_ids: Iterable[int], rows: Rows
    ) -> tuple[dict[int, pa.Array], dict[int, pa.Array]]:
        """Return the columns that are there, all their rows, and others at some rows alone."""
        wanted = list(column_ids)
        missing = self._missing(wanted)
        picked = self._gather(missing, rows) if missing else []
        there = {i: self._there[i] for i in wanted if i in self._there}
        return there, dict(zip(missing, picked, strict=True))

    def size(self, column_ids: Iterable[int]) -> int:
        """Return the bytes of some columns, of what is late by a sample as if it were there: it may be, later."""
        wanted = list(column_ids)
        missing = self._missing(wanted)
        rows = np.arange(min(SAMPLED, self._length), dtype=np.int64)
        sizes = [_bytes(a, self._length) for a in self._gather(missing, rows)] if missing else []
        return sum(sizes) + sum(self._there[i].nbytes for i in wanted if i in self._there)

    def _missing(self, column_ids: Iterable[int]) -> list[int]:
        return [i for i in column_ids if i not in self._there]


def _bytes(sample: pa.Array, length: int) -> int:
    if isinstance(sample, pa.DictionaryArray):
        return int(sample.dictionary.nbytes) + length * sample.type.index_type.bit_width // 8
    return int(sample.nbytes) * length // max(1, len(sample))
