"""A folder in which tables, views, macros and types last, as a process has it open: what was committed, and commits.

A process has a folder open once, for all of its connections.  A commit writes the files of new rows, syncs them, and then a line of the log,
which is the moment from which it is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence as Listed
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..errors import FileError, TransactionError
from ..plan.changes.catalog_objects import MAIN, Macro, ObjectKey, SchemaObject, UserType, View
from ..plan.changes.sequences import Sequence
from ..storage.spill_folders import SpillFolder
from ..threads.fork_locks import new_reentrant_lock
from .commit_log import (
    UNFINISHED,
    Change,
    LogSegment,
    begin_segment,
    newest_segment,
    refused,
    remove_segments,
    sync_folder,
)
from .folder_locks import (
    FolderLock,
    lock_to_read,
    lock_to_write,
    without_readers,
)
from .log_records import Objects, Stored, appended_record, carry_out, moved_record, record_of
from .rows_files import NAME, RowsFile
from .stored_table import RowsPlace, StoredTable, merged, stored, without_tail

DATA = "data"
INLINE_BYTES = 1 << 16  # of rows that a commit adds to a table, up to which they stand in the log
TAIL_BYTES = 1 << 20  # of a table's rows in the log, beyond which they become a file
CHECKPOINT_TAIL_BYTES = 1 << 14  # the same at CHECKPOINT, whose log each connect reads
SMALL_FILE, LARGEST_MERGED = 8 << 20, 256 << 20  # bytes of files that become one
MOST_SMALL_FILES = 16  # of a table, beyond which a commit that adds one merges them
LOG_BYTES = (
    16 << 20
)  # behind a header, after which a commit begins a new segment; DuckDB's limit for its log
MOST_UNUSED = 64  # files that no table has any more, after which a commit removes them
RETRIES = 10  # of a reader that finds a segment gone

Changes = Mapping[ObjectKey, object | None]


class ConflictError(TransactionError):
    """Another transaction has changed the same table since this one began."""


class FolderDatabase:
    """One folder; `version` counts what was committed, and `objects` have keys without a database."""

    def __init__(self, path: Path, can_write: bool, spill_dir: Path) -> None:
        """Open a folder that is a database, or make it one; raises `FileError`."""
        self.path, self.version = path, 0
        self.objects: Objects = {}
        self.lock = new_reentrant_lock()
        self.users = 0
        self._spill_dir = spill_dir
        self._scratch: SpillFolder | None = None
        self._changed_at: dict[ObjectKey, int] = {}
        self._writer: FolderLock | None = None
        self._reader: FolderLock | None = None
        self._is_broken = False
        self._unused = 0
        self.place = RowsPlace(path / DATA, self._scratch_folder)
        if can_write:
            self.begin_writing()
        else:
            self._reader = lock_to_read(path)
            self._log = self._read_whole()

    def begin_writing(self) -> None:
        """Take the lock of the one that writes, if this process has it not yet; raises `FileError`."""
        with self.lock:
            if self._writer is not None:
                return
            with refused(self.path):
                self.place.data.mkdir(mode=0o700, exist_ok=True)
            self._writer = lock_to_write(self.path)
            if self._reader is not None:
                self._reader.release()
                self._reader = None
            try:
                if newest_segment(self.path) is None:
                    begin_segment(self.path, None, [])
                self._log = self._read_whole()
                self._log.cut_unfinished()
                remove_segments(self.path, self._log.path)
                self.remove_unused()
            except BaseException:
                self._writer.release()
                self._writer = None
                raise

    # Reading

    def refresh(self) -> int:
        """Read what other processes have committed, and return the version; a look at the log where this one does not write."""
        if self._writer is not None:
            return self.version
        with self.lock:
            try:
                if self._log.is_behind():
                    self._read_on()
            except FileNotFoundError:
                self._log = self._read_whole()
        return self.version

    def _read_on(self) -> None:
        objects, end = dict(self.objects), self._log.end
        for changes in self._log.new_commits():
            carry_out(changes, objects, self.place)
        if self._log.end != end:
            self._publish(objects)

    def _read_whole(self) -> LogSegment:
        for _ in range(RETRIES):
            path = newest_segment(self.path)
            if path is None:
                raise FileError(f'The folder "{self.path}" is no database: it has no catalog.')
            try:
                log, objects = LogSegment(path), Objects()
                for changes in log.new_commits():
                    carry_out(changes, objects, self.place)
            except FileNotFoundError:  # another segment has taken its place
                continue
            except OSError as error:
                reason = error.strerror or str(error)
                raise FileError(f'The catalog "{path}" cannot be read: {reason}.') from error
            self._publish(objects)
            return log
        raise FileError(f'The catalog of "{self.path}" is replaced all the time: try again.')

    def _publish(self, objects: Objects) -> None:
        self.version += 1
        for key in self.objects.keys() | objects.keys():
            if self.objects.get(key) is not objects.get(key):
                self._changed_at[key] = self.version
        for key, entry in objects.items():
            if isinstance(entry, Sequence):
                entry.keep = partial(self._keep, key, entry)
        self.objects = objects

    # Writing

    def commit(self, base: int, changes: Changes) -> dict[ObjectKey, Stored | None]:
        """Keep changes that were made to the version `base`, all or none, and return what they became.

        Raises `FileError` where they cannot be written, and `ConflictError` where others have changed the same objects since.
        """
        with self.lock:
            self._check_can_write()
            for key in changes:
                if self._changed_at.get(key, 0) > base:
                    raise ConflictError(
                        f'Another transaction has changed "{key.name or key.schema}" meanwhile: run this one again.'
                    )
            self._check_schemas(changes)
            before = self._files()
            kept = self._written(changes)
            objects = {**self.objects, **kept}
            self._publish({key: entry for key, entry in objects.items() if entry is not None})
            self._unused += len(before - self._files())
            self._limit_log()
            if self._unused > MOST_UNUSED:
                self.remove_unused()
            return kept

    def _written(self, changes: Changes) -> dict[ObjectKey, Stored | None]:
        """Write files and log of a commit, or nothing."""
        self.place.written.clear()
        try:
            kept = {key: self._stored(key, entry) for key, entry in changes.items()}
            if self.place.written:
                sync_folder(self.place.data)
            records = [self._record(key, entry) for key, entry in _in_order(kept)]
            self._log_changes([record for record in records if record is not None])
        except BaseException:
            for name in () if self._is_broken else self.place.written:
                (self.place.data / name).unlink(missing_ok=True)
            raise
        return kept

    def _log_changes(self, records: Listed[Change]) -> None:
        try:
            self._log.commit(records)
        except BaseException:
            self._is_broken = self._log.is_behind()
            raise

    def _limit_log(self) -> None:
        if self._log.end - self._log.header_bytes > max(LOG_BYTES, self._log.header_bytes):
            self._begin_segment()

    def _keep(self, key: ObjectKey, sequence: Sequence) -> None:
        """Write down how far a sequence is, unless it is gone meanwhile."""
        with self.lock:
            if self.objects.get(key) is sequence:
                self._check_can_write()
                self._log_changes([moved_record(key, sequence)])
                self._limit_log()

    def _check_can_write(self) -> None:
        if self._writer is None:
            raise FileError(f'The database "{self.path}" was opened to read only.')
        if self._writer.owner != os.getpid():
            raise FileError(
                f'The database "{self.path}" was opened before this process was forked: open a connection in this process.'
            )
        if self._is_broken:
            raise FileError(
                f'The log of "{self.path}" could not be put right after a failed write: close its connections and open it anew.'
            )

    def _check_schemas(self, changes: Changes) -> None:
        for key, entry in changes.items():
            schema = ObjectKey("", "schema", key.schema, "")
            known = changes.get(schema, self.objects.get(schema))
            if entry is not None and key.kind != "schema" and key.schema != MAIN and known is None:
                raise ConflictError(f'Another transaction has dropped the schema "{key.schema}".')

    def _stored(self, key: ObjectKey, entry: object | None) -> Stored | None:
        """Return an object as the folder keeps it, with its rows written unless they are few."""
        if entry is None or isinstance(entry, View | Macro | UserType | Sequence | SchemaObject):
            return entry
        if not isinstance(entry, StoredTable):
            return stored(entry, self.place, INLINE_BYTES)  # type: ignore[arg-type]
        old = self.objects.get(key)
        known = len(old.tail) if isinstance(old, StoredTable) else 0
        sizes = [part.size for part in entry.tail]
        if sum(sizes) > TAIL_BYTES or sum(sizes[known:]) > INLINE_BYTES:
            entry = without_tail(entry)
            small = sum(file.bytes < SMALL_FILE for file in entry.files)
            return merged(entry, SMALL_FILE, LARGEST_MERGED) if small > MOST_SMALL_FILES else entry
        return entry

    def _record(self, key: ObjectKey, entry: Stored | None) -> Change | None:
        old = self.objects.get(key)
        if entry is None and old is None:
            return None
        if isinstance(entry, StoredTable) and isinstance(old, StoredTable):
            same = (entry.fields, entry.table_rules, entry.files, str(entry.name))
            parts = len(old.tail)
            if same == (old.fields, old.table_rules, old.files, str(old.name)) and (
                entry.tail[:parts] == old.tail
            ):
                return appended_record(key, entry.tail[parts:])
        return record_of(key, entry)

    def _begin_segment(self) -> None:
        records = [record_of(key, entry) for key, entry in _in_order(self.objects)]
        self._log = begin_segment(self.path, self._log.path, records)

    # Upkeep

    def checkpoint(self) -> None:
        """Give rows in the log files, merge small files, begin a new log, and remove files that nothing needs any more."""
        with self.lock:
            self._check_can_write()
            objects = dict(self.objects)
            for key, entry in objects.items():
                if isinstance(entry, StoredTable):
                    tail = sum(part.size for part in entry.tail)
                    whole = (
                        entry
                        if tail <= CHECKPOINT_TAIL_BYTES and not entry.files
                        else without_tail(entry)
                    )
                    objects[key] = merged(whole, SMALL_FILE, LARGEST_MERGED)
            if any(objects[key] is not entry for key, entry in self.objects.items()):
                sync_folder(self.place.data)
                changed_at = dict(self._changed_at)
                self._publish(objects)
                self._changed_at = changed_at  # the rows are the same
            self._begin_segment()
            self.remove_unused()

    def bytes_on_disk(self) -> tuple[int, int]:
        """Return how long the files of rows are, and the log."""
        return sum(file.bytes for file in self._files()), self._log.end

    def _files(self) -> set[RowsFile]:
        tables = (t for t in self.objects.values() if isinstance(t, StoredTable))
        return {file for table in tables for file in table.files}

    def remove_unused(self) -> None:
        """Remove files that no table has, unless another process reads: it may have an older version."""
        with self.lock, without_readers(self.path) as alone:
            if not alone:
                return
            used = self.place.names_in_use()
            for name in os.listdir(self.place.data):  # noqa: PTH208
                if (NAME.fullmatch(name) and name not in used) or UNFINISHED.fullmatch(name):
                    (self.place.data / name).unlink(missing_ok=True)
            for name in os.listdir(self.path):  # noqa: PTH208
                if UNFINISHED.fullmatch(name):
                    (self.path / name).unlink(missing_ok=True)
            self._unused = 0

    def close(self) -> None:
        """Let go of the folder, after a CHECKPOINT where there were commits."""
        with self.lock:
            try:
                is_mine = self._writer is not None and self._writer.owner == os.getpid()
                if is_mine and not self._is_broken and self._log.commits > 1:
                    with suppress(FileError):  # what was committed is there all the same
                        self.checkpoint()
            finally:
                for held in (self._writer, self._reader):
                    if held is not None:
                        held.release()
                if self._scratch is not None:
                    self._scratch.remove()
                self._writer = self._reader = self._scratch = None

    def _scratch_folder(self) -> Path:
        with self.lock:
            if self._scratch is None:
                self._scratch = SpillFolder(self._spill_dir)
            return self._scratch.path


def _in_order(entries: Mapping[ObjectKey, Stored | None]) -> list[tuple[ObjectKey, Stored | None]]:
    """Return objects with new schemas before what is in them, and dropped ones behind."""

    def rank(item: tuple[ObjectKey, Stored | None]) -> int:
        return 1 if item[0].kind != "schema" else 2 if item[1] is None else 0

    return sorted(entries.items(), key=rank)
