"""What a table function tells of this moment, such as `fuseline_columns()`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from .memory_table import MemoryTable

WORKERS = pa.schema(
    {
        "worker": pa.int64(),
        "address": pa.string(),
        "host": pa.string(),
        "process_id": pa.int64(),
        "device": pa.string(),
        "device_name": pa.string(),
        "threads": pa.int64(),
        "memory": pa.int64(),
        "free_memory": pa.int64(),
        "cached_bytes": pa.int64(),
        "cache_limit": pa.int64(),
        "runs_query": pa.bool_(),
    }
)  # what `fuseline_workers()` tells of a cluster


class LiveTable(MemoryTable):
    """What `make` gives at one moment; each run of a query reads it anew, and none of its columns is cached."""

    def __init__(self, name: str, make: Callable[[], pa.Table]) -> None:
        super().__init__(name, make())
        self._make = make
        self.identity = None

    def is_current(self) -> bool:
        return False

    def reopened(self) -> LiveTable:
        return LiveTable(self.name, self._make)
