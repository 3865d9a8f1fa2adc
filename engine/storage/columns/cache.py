"""Scanned columns, kept for the next query until a byte limit pushes them out, and the keys by which scans find theirs.

One cache serves all devices of a connection, each within its own limit; the least recently read column leaves first.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any, Literal as OneOf, NamedTuple
from weakref import ref

from ...plan import physical as p
from ...records import dataclass
from ...threads.fork_locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Mapping, Sequence

    from ...plan.expr import Column
    from ..column_store.column_store import ColumnStore
    from .agreement import ColumnForm

# In the place of a column as kernels read it, where there is no such form; `stats` says nothing of it
NO_ENCODING = object()


class CacheKey(NamedTuple):
    """What a cached value holds.

    `source` is the identity of the file or table version: a changed file has another and so misses; a table with the
    identity None is never kept.  `rows` says which part of it: None for all, else something that names the row groups.
    """

    source: Hashable
    rows: Hashable
    column: str
    device: str


class PartOf(NamedTuple):
    """The identity of some rows of a table."""

    source: Hashable
    rows: tuple[int, int]


def encoded_key(source: Hashable, rows: Hashable, column: str, device: str) -> CacheKey:
    """Return the key of a column as kernels read it, beside that of the same column as it is."""
    return CacheKey(source, ("encoded", rows), column, device)


# Where a cached column lies: in memory of the process, or in a mapped file, whose pages are the system's to drop
Tier = OneOf["memory", "store"]
HOST = "cpu"  # the device whose memory is the tier below that of others
# Copies a value of a device to the host, with its bytes there; None for one that the host does not keep.  True: it has no encoding
ToHost = Callable[["CacheKey", object, bool], "tuple[object, int] | None"]


class CachedColumn(NamedTuple):
    """One entry as `stats` shows it; `hits` counts reads since the column was loaded."""

    source: Hashable
    rows: Hashable
    column: str
    device: str
    bytes: int
    hits: int
    value: Any
    tier: Tier


def whole(source: Hashable) -> Hashable:
    """The identity of the table of which rows are cached under one."""
    return source.source if isinstance(source, PartOf) else source


@dataclass(slots=True)
class _Entry:
    value: Any
    bytes: int
    tier: Tier
    hits: int = 0


class _Together(NamedTuple):
    """What was made of the values of several keys."""

    keys: Sequence[CacheKey]
    made: object
    owner: ref[object]


def _by_device(limits: int | Mapping[str, int]) -> Mapping[str, int]:
    return defaultdict(lambda: limits) if isinstance(limits, int) else defaultdict(int, limits)


_Gone = list["tuple[CacheKey, _Entry | None]"]


class ColumnCache:
    """Values by `CacheKey`, thread-safe, least recently used out first.

    `limits` gives bytes for each device; one number holds for every device.  A value larger than the limit of its device
    is not kept.  Eviction drops the cache's reference alone: a query that reads the value keeps it alive.  A column as operators
    read it is a copy where it is also there as kernels read it, since decoding makes it again: it is kept if half of the limit has
    room for it, and leaves first and for good.  `store` has columns on disk, for who looks for one that is not here.  With `to_host`
    what leaves a device goes to the host's memory, within its limit.  `forms` are those that the workers of a cluster have agreed
    on, for who loads a column anew.
    """

    is_lasting = True  # for later queries
    is_stored = True  # what scans read goes to the store, too

    def __init__(
        self,
        limits: int | Mapping[str, int],
        store: ColumnStore | None = None,
        to_host: ToHost | None = None,
    ) -> None:
        self.limits = _by_device(limits)
        self.store, self.to_host = store, to_host
        self.left: set[CacheKey] = set()  # columns of which the host's memory cannot keep all rows
        self.forms: dict[CacheKey, ColumnForm] = {}
        self._entries: dict[str, OrderedDict[CacheKey, _Entry]] = {}
        self._used: dict[str, int] = {}
        self._together: dict[int, _Together] = {}  # by the identity of who asked
        # What was read since the last mark, in that order, and how often: by its key, or the identity of who asked
        self._reads: dict[CacheKey | int, tuple[Sequence[CacheKey], int]] = {}
        self._lock = new_lock()

    @property
    def lasting(self) -> ColumnCache:
        """The cache of the connection, which has what later queries find."""
        return self

    def get(self, key: CacheKey) -> Any | None:
        """Return the value and mark it as the most recently read, or None."""
        with self._lock:
            entries = self._entries.get(key.device)
            entry = entries.get(key) if entries else None
            if entry is None:
                return None
            self._read(key, (key,))
            return entry.value

    def together(self, owner: object) -> Any | None:
        """Return what `keep_together` was given for an owner, if all that it was made of is still there, and mark that as read.

        A hot query asks for each pipeline: no lock is taken, and marks are made when somebody asks for the order.
        """
        own = id(owner)
        found = self._together.get(own)
        if found is None:
            return None
        before = self._reads.pop(own, None)  # as `_read` does
        self._reads[own] = found.keys, 1 if before is None else before[1] + 1
        return found.made

    def keep_together(
        self, owner: object, keys: Sequence[CacheKey], values: Sequence[object], made: object
    ) -> bool:
        """Keep what was made of these values until one of any leaves, or the owner goes; False where keys do not have them now."""
        with self._lock:
            self._mark()  # reads of owners that are gone would add up
            for key, value in zip(keys, values, strict=True):
                entry = self._entries.get(key.device, OrderedDict()).get(key)
                if value is None or entry is None or entry.value is not value:
                    return False
            kept, own = self._together, id(owner)
            found = _Together(keys, made, ref(owner, lambda _: kept.pop(own, None)))
            kept[own] = found
            self._read(own, keys)
        return True

    def holds(self, key: CacheKey) -> bool:
        """Whether the value is there, without marking it as read."""
        return self.peek(key) is not None

    def peek(self, key: CacheKey) -> object | None:
        """Return the value without marking it as read, or None."""
        with self._lock:
            entries = self._entries.get(key.device)
            entry = entries.get(key) if entries else None
            return None if entry is None else entry.value

    def lies_in_memory(self, key: CacheKey) -> bool:
        """Whether the value is there and not a mapped file's."""
        with self._lock:
            entries = self._entries.get(key.device)
            entry = entries.get(key) if entries else None
            return entry is not None and entry.tier == "memory"

    def put_mapped(self, key: CacheKey, value: object) -> None:
        """Keep a value over a mapped file, which takes no memory that could be given back."""
        self.put(key, value, 0, "store")

    def put(self, key: CacheKey, value: object, nbytes: int, tier: Tier = "memory") -> None:
        """Keep `value`, which takes `nbytes` on its device, in the place of what the key held before."""
        device = key.device
        with self._lock:
            self._mark()
            entries = self._entries.setdefault(device, OrderedDict())
            self._remove(device, key)
            limit = self.limits[device]
            if nbytes > limit or key.source is None:
                return
            if _is_copy(key, entries) and self._used.get(device, 0) + nbytes > limit // 2:
                return
            gone = self._shrink(device, limit - nbytes)
            entries[key] = _Entry(value, nbytes, tier)
            self._used[device] = self._used.get(device, 0) + nbytes
        self._move_down(gone)

    def drop(self, source: Hashable) -> None:
        """Forget all columns of a file or table version, and of parts of it."""
        with self._lock:
            for device, entries in self._entries.items():
                for key in [k for k in entries if whole(k.source) == source]:
                    self._remove(device, key)
            for key in [k for k in self.forms if whole(k.source) == source]:
                del self.forms[key]

    def set_limits(self, limits: int | Mapping[str, int]) -> None:
        """Change the limits and evict what is over them."""
        with self._lock:
            self.limits = _by_device(limits)
            gone = [
                e for device in self._entries for e in self._shrink(device, self.limits[device])
            ]
        self._move_down(gone)

    def release(self, device: str, nbytes: int) -> int:
        """Evict about `nbytes` from a device that runs out of memory; return how many bytes went."""
        with self._lock:
            before = self._used.get(device, 0)
            gone = self._shrink(device, max(0, before - nbytes))
            freed = before - self._used.get(device, 0)
        self._move_down(gone)
        return freed

    def release_others(self, device: str, wanted: Container[CacheKey]) -> int:
        """Evict all but these from a device that runs out of memory; return how many bytes went."""
        with self._lock:
            before = self._used.get(device, 0)
            others = [key for key in self._entries.get(device, ()) if key not in wanted]
            gone = [(key, self._remove(device, key)) for key in others]
            freed = before - self._used.get(device, 0)
        self._move_down(gone)
        return freed

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._used.clear()
            self.forms.clear()
            self._together.clear()

    def close(self) -> None:
        """Have written what waits for that, while it is still here, and let everything go."""
        if self.store is not None:
            self.store.close()
        self.clear()

    def used(self, device: str) -> int:
        """Return the bytes that the cache holds on a device."""
        with self._lock:
            return self._used.get(device, 0)

    def stats(self) -> list[CachedColumn]:
        """Return what is cached, for each device from the least to the most recently read."""
        with self._lock:
            self._mark()
            return [
                CachedColumn(
                    key.source,
                    key.rows,
                    key.column,
                    key.device,
                    entry.bytes,
                    entry.hits,
                    entry.value,
                    entry.tier,
                )
                for entries in self._entries.values()
                for key, entry in entries.items()
                if entry.value is not NO_ENCODING
            ]

    def _read(self, what: CacheKey | int, keys: Sequence[CacheKey]) -> None:
        before = self._reads.pop(what, None)
        self._reads[what] = keys, 1 if before is None else before[1] + 1

    def _mark(self) -> None:
        """Mark values as read; with the lock."""
        reads, self._reads = self._reads, {}
        for keys, count in reads.copy().values():  # a thread may add to them still
            for key in keys:
                entries = self._entries.get(key.device, OrderedDict())
                if (entry := entries.get(key)) is not None:
                    entries.move_to_end(key)
                    entry.hits += count

    def _remove(self, device: str, key: CacheKey) -> _Entry | None:
        entry = self._entries[device].pop(key, None)
        if entry is not None:
            self._used[device] -= entry.bytes
            self._together.clear()
        return entry

    def _shrink(self, device: str, target: int) -> _Gone:
        """Evict copies, then what was read longest ago of all that takes memory, and return what is no copy."""
        self._mark()
        gone: _Gone = []
        entries = self._entries.get(device, OrderedDict())
        if self._used.get(device, 0) > target:
            for key in [key for key in entries if _is_copy(key, entries)]:
                self._remove(device, key)
        while self._used.get(device, 0) > target:
            key = next(key for key, entry in entries.items() if entry.bytes)
            gone.append((key, self._remove(device, key)))
        return gone

    def _move_down(self, gone: _Gone) -> None:
        """Keep on the host what has left a device, but what is there; called without the lock, since copies take their time."""
        while gone:
            key, entry = gone.pop(0)  # with the last reference, since the device is short of memory
            if self.to_host is None or key.device == HOST or entry is None or not entry.bytes:
                continue
            below = key._replace(device=HOST)
            if entry.bytes > self.limits[HOST] or self.lies_in_memory(below):
                continue
            mark = encoded_key(*key)
            is_refused = self.peek(mark) is NO_ENCODING
            made = self.to_host(key, entry.value, is_refused)
            if made is not None:
                if is_refused:
                    self.put(mark._replace(device=HOST), NO_ENCODING, 0)
                self.put(below, *made)


def _is_copy(key: CacheKey, entries: Mapping[CacheKey, _Entry]) -> bool:
    """Whether a column is there as kernels read it, too."""
    encoded = entries.get(encoded_key(*key))
    return encoded is not None and encoded.value is not NO_ENCODING


class ChunkCache(ColumnCache):
    """The columns of one chunk, `begun` once they are on their way; when the device runs out of memory, those of other queries go first."""

    is_lasting = False

    def __init__(self, others: ColumnCache, is_stored: bool = True) -> None:
        super().__init__(1 << 62, others.store)
        self._others, self.is_stored = others, is_stored
        self.begun = Event()

    @property
    def lasting(self) -> ColumnCache:
        return self._others.lasting

    def release(self, device: str, nbytes: int) -> int:
        freed = self._others.release(device, nbytes)
        return freed + super().release(device, max(0, nbytes - freed))

    def release_others(self, device: str, wanted: Container[CacheKey]) -> int:
        return self._others.release(device, 1 << 62) + super().release_others(device, wanted)


TableScan = p.ParquetScan | p.MemoryScan


def row_groups(scan: TableScan) -> tuple[p.RowGroups, ...] | None:
    """Return which row groups a scan reads, None for all."""
    if isinstance(scan, p.MemoryScan):
        return None
    everything = getattr(scan.table, "all_row_groups", None)
    return None if scan.selection == everything else scan.selection


def part_of(scan: TableScan, columns: Sequence[tuple[Column, str]]) -> TableScan:
    """Return the scan of some of the columns: of all in their order itself, as nearly always in hot runs."""
    made = tuple([column for column, _ in columns])
    if made == scan.made:
        return scan
    return dataclasses.replace(scan, made=made, sources=tuple([source for _, source in columns]))


def plain_key(scan: TableScan, source: str, device: str) -> CacheKey:
    """Return the key of a column as operators read it, for the rows of a scan."""
    return CacheKey(scan.table.identity, row_groups(scan), source, device)


def kernel_key(scan: TableScan, source: str, device: str) -> CacheKey:
    """Return the key of a column as kernels read it."""
    return encoded_key(scan.table.identity, row_groups(scan), source, device)
