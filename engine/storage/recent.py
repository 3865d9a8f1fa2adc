"""What was asked for last, in a bounded number: what readers keep of files, and what kernels were made."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by keys, for several threads; beyond `most` the value goes that was not asked for the longest time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

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

    def _put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
