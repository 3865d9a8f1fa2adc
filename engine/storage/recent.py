"""What was asked for last, in a bounded number: what readers keep of files, what kernels were made, and their machine code."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from ..threads.fork_locks import new_lock

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by keys, for several threads; beyond `most`, or `most_bytes`, those go that were not asked for the longest time."""

    def __init__(
        self, most: int, most_bytes: int = 0, size: Callable[[V | None], int] | None = None
    ) -> None:
        self._most, self._most_bytes, self._size = most, most_bytes, size
        self._bytes = 0
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = new_lock()

    def find(self, key: K) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: K, value: V) -> None:
        with self._lock:
            self._put(key, value)

    def find_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, which is made at most once."""
        with self._lock:
            found = self._kept.get(key)
            value = make() if found is None else found
            self._put(key, value)
            return value

    def forget(self) -> None:
        """Let go of everything, as a new process would."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _put(self, key: K, value: V) -> None:
        if self._size is not None:
            self._bytes += self._size(value) - self._size(self._kept.get(key))
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            _, gone = self._kept.popitem(last=False)
            if self._size is not None:
                self._bytes -= self._size(gone)
