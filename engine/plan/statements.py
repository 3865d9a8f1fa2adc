"""What a SQL text asks for: a query, or one of the statements around it.

`sql.plan_sql` makes these and `connection` carries them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from .logical import Logical
from .types import DataType


@dataclass(frozen=True)
class Query:
    """A plan whose columns are the result; two of them may have the same name."""

    plan: Logical


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [ANALYZE] of a query."""

    query: Query
    analyze: bool


@dataclass(frozen=True)
class CreateTable:
    """CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (columns) or AS query (`query` set)."""

    name: str
    columns: tuple[tuple[str, DataType], ...]
    query: Query | None = None
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW; `text` is the query's SQL, bound anew wherever the view is named.

    `columns` are the names given in parentheses after the view's name.
    """

    name: str
    text: str
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Insert:
    """INSERT INTO table [(columns)] query; the query's columns have the types of `columns`, in that order."""

    table: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class Drop:
    """DROP TABLE or VIEW."""

    kind: OneOf["table", "view"]
    name: str
    if_exists: bool


@dataclass(frozen=True)
class Describe:
    """DESCRIBE table or query: one row a column."""

    query: Query


@dataclass(frozen=True)
class ShowTables:
    """SHOW TABLES."""


@dataclass(frozen=True)
class SetOption:
    """SET name = value, or RESET name (`reset`)."""

    name: str
    value: object
    reset: bool = False


@dataclass(frozen=True)
class Transaction:
    """BEGIN [TRANSACTION] [READ ONLY], COMMIT or ROLLBACK."""

    action: OneOf["begin", "commit", "roll back"]
    only_reads: bool = False


@dataclass(frozen=True)
class NoOperation:
    """A statement that is accepted and does nothing (CREATE INDEX, ANALYZE, CHECKPOINT ...)."""


Statement = (
    Query
    | Explain
    | CreateTable
    | CreateView
    | Insert
    | Drop
    | Describe
    | ShowTables
    | SetOption
    | Transaction
    | NoOperation
)
