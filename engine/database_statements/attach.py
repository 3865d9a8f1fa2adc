"""Folders as databases of a connection."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..database.attached_databases import AttachedDatabase
from ..database.open_folders import close_folder, open_folder
from ..errors import CatalogError, InvalidQuery, WrongArguments, check_text, shown
from ..plan.changes.catalog_objects import MEMORY, TEMP
from ..storage.tables.access import EVERYTHING, AccessRules

if TYPE_CHECKING:
    from ..connection import Connection

IN_MEMORY = ":memory:"
DEVICES = ("auto", "cpu", "gpu")  # which connect takes in the place of a database
_SERVER = re.compile(r"grpc(\+\w+)?://", re.IGNORECASE)
_RESERVED = ("main", MEMORY, TEMP, "system")  # which mean other things before the name of a table


def is_address(database: object) -> bool:
    """Whether what is to be opened is the address of a server."""
    return isinstance(database, str) and _SERVER.match(database) is not None


def open_home(
    connection: Connection, database: str | PathLike[str] | None, read_only: bool
) -> Connection:
    """Return a connection whose tables are those of a database; one that cannot be opened closes it."""
    try:
        path = _path(database, read_only)
        if path != IN_MEMORY:
            name = database_name(path)
            if name.lower() in _RESERVED:
                name = f"{name}_db"
            made = _opened(connection, path, name, read_only, EVERYTHING)
            _attach(connection, made, home=True)
    except BaseException:
        connection.close()
        raise
    return connection


def _path(database: object, read_only: object) -> str:
    if not isinstance(read_only, bool):
        raise WrongArguments(f"read_only= is True or False, not {shown(read_only)}.")
    if database is None:
        database = IN_MEMORY
    if not isinstance(database, str | PathLike):
        raise WrongArguments(
            f"A database is a folder's path, or ':memory:', not {shown(database)}."
        )
    path = os.fspath(database)
    if not isinstance(path, str) or "\0" in path:
        raise WrongArguments(f"A database's path is text, not {shown(path)}.")
    check_text(path, "The path of a database")
    if path in ("", IN_MEMORY):
        if read_only:
            raise WrongArguments("read_only=True goes with a folder: memory begins empty.")
        return IN_MEMORY
    return path


def database_name(path: str) -> str:
    """Return the name that a database has by its path: the folder's, without what stands behind a dot."""
    name = Path(os.path.realpath(path)).name
    return re.sub(r"(?<=.)\..*", "", name) or "database"


def attach(
    connection: Connection, path: str, name: str | None, read_only: bool, if_not_exists: bool
) -> None:
    """Add a database to those of a connection; raises `FileError`, `AccessDenied` and `CatalogError`."""
    catalog = connection.catalog
    in_memory = path in ("", IN_MEMORY)
    name = name or (MEMORY if in_memory else database_name(path))
    if name.lower() in _RESERVED and name.lower() != MEMORY:
        raise CatalogError(f'A database cannot be called "{name}": give it another name with AS.')
    if in_memory:
        if read_only:
            raise InvalidQuery("READ_ONLY goes with a folder: memory begins empty.")
        if not (if_not_exists and name.lower() in catalog.databases):
            catalog.attach(AttachedDatabase(name))
        return
    if if_not_exists and name.lower() in catalog.databases:
        return
    _attach(connection, _opened(connection, path, name, read_only, catalog.access.rules))


def _opened(
    connection: Connection, path: str, name: str, read_only: bool, rules: AccessRules
) -> AttachedDatabase:
    folder = open_folder(path, read_only, connection.settings.spill_dir, rules)
    return AttachedDatabase(name, folder, read_only)


def _attach(connection: Connection, database: AttachedDatabase, home: bool = False) -> None:
    assert database.folder is not None
    try:
        connection.catalog.attach(database, home)
    except BaseException:
        close_folder(database.folder)
        raise
