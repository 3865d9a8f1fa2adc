"""Caches for scans of pieces, which leave nothing behind."""

from __future__ import annotations

from typing import Any

from .cache import CacheKey, ChunkCache, ColumnCache, Tier


class PassingCache(ColumnCache):
    """The column cache for scans of pieces: they read what is there whole and leave nothing behind.

    Where they `read_all`, the column store is looked into, whose files are checked as a whole before they are read.
    """

    is_lasting = is_stored = False

    def __init__(self, others: ColumnCache, read_all: bool) -> None:
        super().__init__(0, others.store if read_all else None)
        self._others = others

    @property
    def lasting(self) -> ColumnCache:
        return self._others.lasting

    def get(self, key: CacheKey) -> Any | None:
        return self._others.get(key)

    def peek(self, key: CacheKey) -> object | None:
        return self._others.peek(key)

    def put(self, key: CacheKey, value: object, nbytes: int, tier: Tier = "memory") -> None:
        """Keep nothing."""

    def release(self, device: str, nbytes: int) -> int:
        return self._others.release(device, nbytes)


class PieceCache(ChunkCache):
    """The columns of one piece that come from tiers below, before those that another cache has."""

    def __init__(self, others: ColumnCache) -> None:
        super().__init__(others, is_stored=False)

    def get(self, key: CacheKey) -> Any | None:
        found = super().get(key)
        return self._others.get(key) if found is None else found

    def peek(self, key: CacheKey) -> object | None:
        found = super().peek(key)
        return self._others.peek(key) if found is None else found
