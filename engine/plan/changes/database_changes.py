"""Statements about whole databases and their schemas."""

from __future__ import annotations

from dataclasses import dataclass


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
class CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [database.]name."""

    parts: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema:
    """DROP SCHEMA [IF EXISTS] [database.]name [CASCADE]."""

    parts: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """CHECKPOINT [database]."""

    database: str | None = None


DatabaseStatement = Attach | Detach | UseSchema | CreateSchema | DropSchema | Checkpoint
