"""The leaves of a pipeline's body: scans, of which the cache has the columns, and rows that operators have left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ....plan.expr import Column
from ....storage.columns.cache import CacheKey, TableScan, plain_key
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ...known_inputs import Names
from ..dictionaries import Held
from ..memory.host_table import HostColumns
from ..scan.encoded import plain_column
from ..scan.scan import DEVICE
from ..table import Table
from .stored import stored_columns


class Leaf(Protocol):
    """The columns of a scan or of stored rows."""

    @property
    def rows(self) -> int: ...

    def encoded(self, column: Column) -> EncodedColumn | None:
        """Return a column for kernels, or None without an encoding."""
        ...

    def narrow(self, column: Column) -> EncodedColumn | None:
        """Return a column's codes where it lies on the device as such."""
        ...

    def held(self, column: Column) -> Held:
        """Return a column as operators read it."""
        ...


class ScanLeaf:
    """A scan whose columns are in the cache."""

    def __init__(
        self, names: Names, encoded: Mapping[str, EncodedColumn], rows: int, context: Context
    ) -> None:
        self.names, self.rows = names, rows
        self._encoded, self._context = dict(encoded), context

    @property
    def scan(self) -> TableScan:
        return self.names.scan

    @property
    def sources(self) -> Mapping[Column, str]:
        return self.names.sources

    def encoded(self, column: Column) -> EncodedColumn | None:
        source = self.sources[column]
        if source not in self._encoded:
            found = self._context.cache.get(self.names.key(source))
            if isinstance(found, EncodedColumn):
                self._encoded[source] = found
        return self._encoded.get(source)

    def narrow(self, column: Column) -> EncodedColumn | None:
        return self.encoded(column)

    def held(self, column: Column) -> Held:
        context = self._context
        found: Held | None = context.cache.get(plain_key(self.scan, self.sources[column], DEVICE))
        if found is None:
            return plain_column(self.scan, column, context)
        context.bytes_read += found.device_buffer_size()  # as the scan counts it
        return found

    def cached(self, column: Column) -> tuple[CacheKey, object]:
        """Return what is fetched of a column, and by what key the cache has that."""
        source, found = self.sources[column], self.encoded(column)
        if found is not None:
            return self.names.key(source), found
        key = plain_key(self.scan, source, DEVICE)
        return key, self._context.cache.peek(key)

    def origin(self, column: Column) -> CacheKey | None:
        """Return what names a column of a version of a table; None for a table that has no identity."""
        key = self.names.key(self.sources[column])
        return None if key.source is None else key


class StoredLeaf:
    """The rows of an operator's result."""

    def __init__(self, table: Table) -> None:
        self.table, self.rows = table, table.num_rows
        self._encoded: dict[int, EncodedColumn | None] = {}  # by `Column.id`

    def encoded(self, column: Column) -> EncodedColumn | None:
        if column.id not in self._encoded:
            self.encode([column])
        return self._encoded[column.id]

    def encode(self, columns: Iterable[Column]) -> None:
        """Encode several columns together, which waits for the device once: all of rows that lie on the host, which so move once."""
        missing = [c for c in columns if c.id not in self._encoded]
        if missing:
            held = self.table.columns
            wanted = held.columns if type(held) is HostColumns else missing
            self._encoded |= stored_columns(self.table, wanted)

    def narrow(self, column: Column) -> EncodedColumn | None:
        is_on_host = type(self.table.columns) is HostColumns
        return self._encoded.get(column.id) if is_on_host else None

    def held(self, column: Column) -> Held:
        return self.table.columns[column.id]
