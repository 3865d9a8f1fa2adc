"""Statements about whole databases and their schemas."""

from __future__ import annotations

from collections.abc import Mapping

from ...records import dataclass


class OnlyReads:
    """A statement that every client of a server may send."""


class Writes:
    """A statement that changes or writes tables or files, for clients of a server that takes changes."""


class OfSession:
    """A statement that changes a session, for clients that have one of their own."""


@dataclass(frozen=True)
class Attach:
    """ATTACH [IF NOT EXISTS] 'path' [AS name] [(READ_ONLY)]."""

    path: str
    name: str | None = None
    read_only: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Detach:
    """DETACH [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class UseSchema:
    """USE database, schema or database.schema."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class CreateSchema(Writes):
    """CREATE SCHEMA [IF NOT EXISTS] [database.]name."""

    parts: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema(Writes):
    """DROP SCHEMA [IF EXISTS] [database.]name [CASCADE]."""

    parts: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Checkpoint(OnlyReads):
    """CHECKPOINT [database]."""

    database: str | None = None


@dataclass(frozen=True)
class ExportDatabase:
    """EXPORT DATABASE [database TO] 'folder' [(options)]; the options are those of COPY TO."""

    path: str
    database: str | None
    format: str
    options: Mapping[str, object]


@dataclass(frozen=True)
class ImportDatabase:
    """IMPORT DATABASE 'folder'."""

    path: str


DatabaseStatement = (
    Attach
    | Detach
    | UseSchema
    | CreateSchema
    | DropSchema
    | Checkpoint
    | ExportDatabase
    | ImportDatabase
)
