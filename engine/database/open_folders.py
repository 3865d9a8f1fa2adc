"""Opening a folder as a database: what is there, and the folders that this process has open, each once."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ..errors import FileError
from ..storage.tables.access import AccessRules
from ..storage.tables.files import place_here
from ..threads.fork_locks import new_lock
from .commit_log import UNFINISHED, newest_segment, refused, sync_folder
from .folder_database import DATA, FolderDatabase
from .folder_locks import READERS, WRITER

_open: dict[Path, FolderDatabase] = {}
_lock = new_lock()
_NAMED_AS_DUCKDBS = (".duckdb", ".ddb")
_OF_DUCKDB = 8, b"DUCK"  # where such a file has which bytes


def _opened_by_the_parent() -> None:
    """Forget the folders of a process that was forked, whose locks this one has not; its threads hold nothing here."""
    _lock._at_fork_reinit()  # type: ignore[attr-defined]
    _open.clear()


os.register_at_fork(after_in_child=_opened_by_the_parent)


def open_folder(path: str, read_only: bool, spill_dir: Path, rules: AccessRules) -> FolderDatabase:
    """Return the database of a folder, made where there is none unless it is only read; `close_folder` ends its use.

    Raises `FileError`, and `AccessDenied` for what the rules forbid.
    """
    if "\0" in path or not path:
        raise FileError(f"A database is a folder, and {path!r} names none.")
    folder = place_here(path, rules)
    with _lock:
        known = _open.get(folder)
        if known is None:
            _prepare(folder, read_only)
            known = FolderDatabase(folder, not read_only, spill_dir)
            _open[folder] = known
        elif not read_only:
            known.begin_writing()
        known.users += 1
        return known


def close_folder(database: FolderDatabase) -> None:
    """End one use of a folder; the last one closes it."""
    with _lock:
        database.users -= 1
        if database.users > 0:
            return
        if _open.get(database.path) is database:
            del _open[database.path]
        database.close()


def _prepare(folder: Path, read_only: bool) -> None:
    """Raise `FileError` for what is no database and cannot become one; make a folder that is not there."""
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        if read_only:
            raise FileError(
                f'There is no database "{folder}": read_only=True opens one that is there.'
            ) from None
        if not folder.parent.is_dir():
            raise FileError(
                f'There is no folder "{folder.parent}" to make the database "{folder.name}" in.'
            ) from None
        if folder.suffix in _NAMED_AS_DUCKDBS:
            raise FileError(
                f'"{folder}" is named as a database file of DuckDB, and a database here is a folder: give it a name without {folder.suffix}.'
            ) from None
        with refused(folder):
            folder.mkdir(mode=0o700)
        with suppress(FileError):  # a folder above that may not be opened
            sync_folder(folder.parent)
        return
    except OSError as error:
        raise FileError(f'The database "{folder}" cannot be opened: {error.strerror}.') from error
    if not stat.S_ISDIR(mode):
        raise FileError(_no_folder(folder))
    try:
        is_database = newest_segment(folder) is not None
        names = set(os.listdir(folder)) - {WRITER, READERS, DATA}  # noqa: PTH208
    except OSError as error:
        raise FileError(f'The database "{folder}" cannot be opened: {error.strerror}.') from error
    if is_database:
        return
    if read_only:
        raise FileError(f'The folder "{folder}" is no database: it has no catalog.')
    others = sorted(name for name in names if not UNFINISHED.fullmatch(name))
    if others:
        raise FileError(
            f'The folder "{folder}" has other files ("{others[0]}") and is no database: name an empty folder, or one that is not '
            "there. Files are read with read_parquet and its kin."
        )


def _no_folder(path: Path) -> str:
    place, magic = _OF_DUCKDB
    with suppress(OSError), path.open("rb") as file:
        if file.read(place + len(magic))[place:] == magic:
            return (
                f"\"{path}\" is a database file of DuckDB, which Fuseline does not read: write EXPORT DATABASE 'folder' (FORMAT parquet) "
                "in DuckDB, and IMPORT DATABASE 'folder' here."
            )
    return f'"{path}" is a file, and a database is a folder: name a folder, or read the file with read_parquet and its kin.'
