"""Plans as they go to workers: tables in memory by number, so that each is sent once, whatever plans read it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, finalize

from ..plan.physical import Physical
from ..storage.tables.memory_table import MemoryTable


class TableNumbers:
    """The numbers of tables, each another one as long as it lives; `take_gone` tells those that live no more."""

    def __init__(self) -> None:
        self._next = count()
        self._lock = Lock()
        self._known: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._gone: list[int] = []

    def of(self, table: Any) -> int:
        with self._lock:
            number = self._known.get(table)
            if number is None:
                number = self._known[table] = next(self._next)
                finalize(table, self._gone.append, number).atexit = False
            return number

    def take_gone(self) -> set[int]:
        gone = set(self._gone)
        del self._gone[: len(gone)]
        return gone


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, numbers: TableNumbers) -> None:
        super().__init__(file, protocol=5)
        self._numbers = numbers
        self.tables: dict[int, Any] = {}

    def persistent_id(self, value: Any) -> int | None:
        # A table that serves one run is part of the plan
        if not isinstance(value, MemoryTable) or value.identity is None:
            return None
        number = self._numbers.of(value)
        self.tables[number] = value
        return number


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tables: Mapping[int, Any]) -> None:
        super().__init__(file)
        self._tables = tables

    def persistent_load(self, number: Any) -> Any:
        return self._tables[number]


def packed(plan: Physical, numbers: TableNumbers) -> tuple[bytes, dict[int, Any]]:
    """Return a plan without its tables, and these by their numbers."""
    file = io.BytesIO()
    packer = _Packer(file, numbers)
    packer.dump(plan)
    return file.getvalue(), packer.tables


def unpacked(sent: bytes, tables: Mapping[int, Any]) -> Physical:
    """Return a plan over a worker's tables; raises `KeyError` for one that it does not have."""
    plan: Physical = _Unpacker(io.BytesIO(sent), tables).load()
    return plan
