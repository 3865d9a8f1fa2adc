"""The folder of encoded columns: what is found there instead of in Parquet, what is written to it, and how much of it is kept.

A file's name is the hash of all that its content follows from: the files of the table as they were looked at, their footers, the row
groups, the column and its type, and the versions of what reads and encodes.  Several processes share a folder without locks: a file
appears as a whole under its name, and one that is removed stays whole for who has mapped it.  Whatever is wrong with a file or the
folder, the column is read from Parquet.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import time
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa

from ...errors import AccessDenied
from ...threads.fork_locks import new_lock
from ..columns.encode import encode, with_order
from ..columns.encodings import EncodedColumn
from ..spill_folders import PREFIX, NotPrivate, check_folder, make_folder
from ..tables.parquet import ParquetTable
from .column_file import MAGIC, UNFINISHED, Damaged, StoredColumn, read_column, write_column
from .column_parts import ColumnParts
from .store_writer import Check, Ended, StoreWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.parquet as pq

    from ...plan.physical import RowGroups

SUFFIX = ".column"
NAME_LETTERS = 40  # of a table and a column, in the name of a file, for people
FREE_SHARE = 2  # part of the disk's free room that is taken, where no limit says otherwise
ROOM_SHARE = 0.9  # of the limit, when something has to go
SECONDS_UNFINISHED = 3600  # after which nobody is about to finish what is unfinished

_tables: WeakKeyDictionary[ParquetTable, str] = WeakKeyDictionary()


class StoredPlace(NamedTuple):
    """A column of some row groups of a table, None for all."""

    table: ParquetTable
    rows: tuple[RowGroups, ...] | None
    source: str

    @property
    def key(self) -> str:
        """The hash of all that its content follows from."""
        table, source = self.table, self.source
        rows = None if self.rows is None else [[part.file, part.groups] for part in self.rows]
        own = [
            (table.name_in(source, i), repr(table.type_in(source, i)))
            for i in range(len(table.files))
        ]
        said = [_versions(), _table_key(table), rows, source, repr(table.types[source]), own]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def file_name(self, key: str) -> str:
        letters = re.sub(r"\W", "_", f"{Path(self.table.files[0].path).stem}_{self.source}")
        return f"{letters[:NAME_LETTERS]}_{key[:32]}{SUFFIX}"


class StoreAnswer(NamedTuple):
    """A column of the store, or why it has none; without a reason it was never there."""

    column: StoredColumn | None
    reason: str = ""


class ColumnStore:
    """A folder, and this process's view of it; `limit` is in bytes, None for half of what the disk has free."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        """Make the folder; raises `AccessDenied` for one that is not this user's alone."""
        self.folder, self.limit = folder.absolute(), limit
        self.refusal = ""  # why nothing is written any more
        # Files that are there or wait; whether in their last form
        self._known: dict[str, bool] = {}
        self._left: set[str] = (
            set()
        )  # of which nothing can be made as a whole, or that are too large
        self._size: int | None = None  # None until it was looked through
        self._lock = new_lock()
        self._writer = StoreWriter()
        try:
            make_folder(self.folder)
            check_folder(self.folder, secret=True)
        except NotPrivate as error:
            raise AccessDenied(
                f"column_store cannot be used: {error}. Take the rights of others away (chmod 700), or name another folder."
            ) from error
        except OSError as error:
            self.refusal = _reason(error)

    def find(self, place: StoredPlace, threads: int) -> StoreAnswer:
        """Return a column over its mapped file."""
        key = place.key
        path = self.folder / place.file_name(key)
        try:
            found = read_column(path, key, place.table.types[place.source], threads)
        except FileNotFoundError:
            return StoreAnswer(None, self.refusal)
        except OSError as error:
            return StoreAnswer(None, _reason(error))
        except Damaged as error:
            self._known.pop(path.name, None)
            with suppress(OSError):
                path.unlink()
            return StoreAnswer(None, f"its file {error}")
        if _rows_of(found) != _row_count(place):
            return StoreAnswer(None, "its file has other rows than the table")
        self._known[path.name] = _is_final(found)
        return StoreAnswer(found)

    def keep(self, place: StoredPlace, column: StoredColumn) -> None:
        """Have a column written, if it is not there; an array of numbers is encoded before."""
        nbytes = column.value.nbytes
        self.keep_made(place, nbytes, partial(_encoded, place, column), _is_final(column))

    def keep_made(
        self,
        place: StoredPlace,
        nbytes: int,
        make: Callable[[], StoredColumn | None],
        is_final: bool = True,
    ) -> None:
        """Have a column written that `make` gives in the writer's thread, None if there is no need any more."""
        if self.refusal:
            return
        key = place.key
        name = place.file_name(key)
        known = self._known.get(name)
        if known is not None and known >= is_final:
            return
        work = partial(self._write, name, key, make)
        if self._writer.submit(name, nbytes, work):
            self._known[name] = is_final

    def write(self, place: StoredPlace, column: StoredColumn, check: Check) -> bool:
        """Write a column now; False where there is no room, or nothing can be written any more."""
        if self.refusal or (self.limit is not None and column.value.nbytes > self.limit):
            return False
        key = place.key
        name = place.file_name(key)
        try:
            self._make_room(write_column(self.folder / name, key, column, check))
        except OSError as error:
            self.refuse(error)
            return False
        self._known[name] = True
        return True

    def parts(self, place: StoredPlace) -> ColumnParts | None:
        """Begin a column that is made a part at a time; None where nothing can be written, or it was tried in vain."""
        if self.refusal or place.file_name(place.key) in self._left:
            return None
        try:
            make_folder(self.folder)
            return ColumnParts(self.folder, place.table.types[place.source])
        except OSError as error:
            self.refuse(error)
            return None

    def leave(self, place: StoredPlace) -> None:
        """Do not begin a column again."""
        self._left.add(place.file_name(place.key))

    def refuse(self, error: Exception) -> None:
        """Write nothing more, since that went wrong."""
        self.refusal = f"nothing can be written: {_reason(error)}"

    def close(self) -> None:
        """Write what waits, as far as there is time for it."""
        self._writer.close()

    def sizes(self) -> list[int]:
        """Return the bytes of each file."""
        return [size for _, size, _ in self._files()]

    def _write(
        self, name: str, key: str, make: Callable[[], StoredColumn | None], check: Check
    ) -> None:
        try:
            column = make()
            if column is None or (self.limit is not None and column.value.nbytes > self.limit):
                self._known.pop(name, None)
                return
            make_folder(self.folder)
            written = write_column(self.folder / name, key, column, check)
            self._known[name] = _is_final(column)
            self._make_room(written)
        except Ended:
            raise
        except MemoryError:
            self._known.pop(name, None)
        except Exception as error:  # also the next one would fail
            self._known.pop(name, None)
            self.refuse(error)

    def _make_room(self, added: int) -> None:
        """Remove what was used longest ago where there is too much."""
        with self._lock:
            if self._size is None:
                self._sweep()
                self._size = sum(self.sizes())
            else:
                self._size += added
            if self.limit is None:
                self.limit = self._size + shutil.disk_usage(self.folder).free // FREE_SHARE
            if self._size <= self.limit:
                return
            room = int(self.limit * ROOM_SHARE)
            self._size = 0
            for _, size, name in sorted(self._files(), reverse=True):  # the last used first
                if self._size + size <= room:
                    self._size += size
                else:
                    room = self._size  # nothing older stays either
                    self._known.pop(name, None)
                    with suppress(OSError):
                        (self.folder / name).unlink()

    def _sweep(self) -> None:
        """Remove what processes have left that were killed while they wrote."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.endswith(UNFINISHED) and _age(entry) > SECONDS_UNFINISHED:
                        (self.folder / entry.name).unlink()

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """When each file was last used, its bytes, and its name."""
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # another process was faster
                        found = entry.stat(follow_symlinks=False)
                        yield found.st_mtime, found.st_size, entry.name


def place_of(table: object, rows: tuple[RowGroups, ...] | None, source: str) -> StoredPlace | None:
    """Return the place of a column that may be kept: one of local files that have settled, and that stay when the process ends."""
    if not isinstance(table, ParquetTable) or not table.settled or table.is_remote:
        return None
    if (
        source in table.constants
        or rows == ()
        or any(f"/{PREFIX}" in file.path for file in table.files)
    ):
        return None
    return StoredPlace(table, rows, source)


def _encoded(place: StoredPlace, column: StoredColumn) -> StoredColumn:
    """Return a column in the form in which it is written; what operators have read is encoded, text with many values as it is."""
    if column.refused or isinstance(column.value, EncodedColumn):
        return column
    made = encode(column.value, place.table.types[place.source])
    return column if made is None else StoredColumn(with_order(made))


def _is_final(column: StoredColumn) -> bool:
    """Whether no better form of a column will come."""
    return column.refused or isinstance(column.value, EncodedColumn)


def _rows_of(column: StoredColumn) -> int:
    value = column.value
    return value.rows if isinstance(value, EncodedColumn) else len(value)


def _row_count(place: StoredPlace) -> int:
    table = place.table
    parts = table.all_row_groups if place.rows is None else place.rows
    return sum(table.group_rows[part.file][group] for part in parts for group in part.groups)


def _table_key(table: ParquetTable) -> str:
    """The hash of a table's files as they were looked at, of their footers, and of how they are read."""
    if table not in _tables:
        files = [
            [*file, _footer_hash(f)] for file, f in zip(table.files, table.footers, strict=True)
        ]
        said = [files, table.rows, sorted(table.constants), repr(sorted(table.options.items()))]
        _tables[table] = hashlib.sha256(
            json.dumps(said).encode("utf-8", "surrogatepass")
        ).hexdigest()
    return _tables[table]


def _footer_hash(footer: pq.FileMetaData) -> str:
    text = BytesIO()
    footer.write_metadata_file(text)
    return hashlib.sha256(text.getvalue()).hexdigest()


@cache
def _versions() -> str:
    """What reads files and encodes columns, and the form of files."""
    here = Path(__file__).parent
    texts = [here.parent / "columns" / name for name in ("encode.py", "encodings.py")]
    codes = hashlib.sha256(b"".join(text.read_bytes() for text in texts)).hexdigest()
    return f"{MAGIC.decode()} {version('fuseline')} {pa.__version__} {sys.byteorder} {codes}"


def _age(entry: os.DirEntry[str]) -> float:
    return time.time() - entry.stat(follow_symlinks=False).st_mtime


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, NotPrivate):
        return error.strerror or str(error)
    return str(error) or type(error).__name__
