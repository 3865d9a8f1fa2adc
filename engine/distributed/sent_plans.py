"""Plans as they go to workers: tables in memory by their identity, so that each is sent once, whatever plans read it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakSet, finalize, ref

from ..plan.physical import Physical
from ..settings import Settings
from ..storage.shards import Placement
from ..storage.tables.memory_table import MemoryTable
from .own_plans import Form


@dataclass(frozen=True)
class KnownPlan:
    """A plan that workers may have: its number, what it is for, its form, and what tells that it is gone."""

    number: int
    team: int
    settings: Settings
    placement: Placement
    form: Form
    plan: ref[Physical]

    def is_for(self, team: int, settings: Settings) -> bool:
        same = self.settings is settings or self.settings == settings
        return same and self.team == team


class SentTables:
    """The tables of this process that workers may have; `take_gone` tells those that live here no more."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakSet[MemoryTable] = WeakSet()
        self._gone: list[Hashable] = []

    def note(self, table: MemoryTable) -> None:
        with self._lock:
            if table not in self._known:
                self._known.add(table)
                finalize(table, self._gone.append, table.identity).atexit = False

    def take_gone(self) -> set[Hashable]:
        gone = self._gone[:]
        del self._gone[: len(gone)]
        return set(gone)


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.tables: dict[Hashable, MemoryTable] = {}

    def persistent_id(self, value: Any) -> Hashable:
        # A table that serves one run is part of the plan
        if not isinstance(value, MemoryTable) or value.identity is None:
            return None
        self.tables[value.identity] = value
        return value.identity


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tables: Mapping[Hashable, MemoryTable]) -> None:
        super().__init__(file)
        self._tables = tables

    def persistent_load(self, identity: Any) -> MemoryTable:
        return self._tables[identity]


def packed(plan: Physical) -> tuple[bytes, dict[Hashable, MemoryTable]]:
    """Return a plan without its tables, and these by their identities."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(plan)
    return file.getvalue(), packer.tables


def unpacked(sent: bytes, tables: Mapping[Hashable, MemoryTable]) -> Physical:
    """Return a plan over a worker's tables; raises `KeyError` for one that it does not have."""
    plan: Physical = _Unpacker(io.BytesIO(sent), tables).load()
    return plan
