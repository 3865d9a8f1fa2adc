"""The runner of a connection to a server: texts go there, and what is done with the rows of their answers is done here.

What `connect` makes of the address of a server and what it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa

from .. import errors as err
from ..answers import Answer, counted, done
from ..catalog import Catalog
from ..plan.arrow.arrow_types import from_arrow
from ..plan.coercion import parse_type
from ..plan.expr import new_column
from ..plan.logical import Scan
from ..plan.types import DataType, to_arrow
from ..plan_cache import CachedPlan, Parameters
from ..running import QueryRunner
from ..settings import Settings
from ..sql import split
from ..storage.tables.memory_table import MemoryTable
from .server_calls import COMMIT, ROLLBACK, Login, ServerCalls

# First words of statements that are not written for rows
_CHANGES = frozenset(["ALTER", "ANALYZE", "ATTACH", "CHECKPOINT", "COMMENT", "COPY", "CREATE", "DEALLOCATE", "DELETE", "DETACH", "DROP", "EXPORT", "IMPORT", "INSERT", "INSTALL", "LOAD", "MERGE", "PREPARE", "RESET", "SET", "TRUNCATE", "UPDATE", "USE", "VACUUM"])  # fmt: skip
_QUERIES = frozenset(
    [
        "DESC",
        "DESCRIBE",
        "FROM",
        "PIVOT",
        "SELECT",
        "SHOW",
        "SUMMARIZE",
        "TABLE",
        "UNPIVOT",
        "VALUES",
        "WITH",
    ]
)
_CHANGING = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_BEGIN = re.compile(r"(BEGIN|START)(\s+(TRANSACTION|WORK))?", re.IGNORECASE)
_COMMIT = re.compile(r"(COMMIT|END)(\s+(TRANSACTION|WORK))?", re.IGNORECASE)
_ROLLBACK = re.compile(r"(ROLLBACK|ABORT)(\s+(TRANSACTION|WORK))?", re.IGNORECASE)
_FIRST = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(\w*)", re.DOTALL)
_RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)
TYPE_NAME = b"ARROW:FLIGHT:SQL:TYPE_NAME"


class RemoteTable(MemoryTable):
    """The rows of a query that a server runs, fetched whenever a plan of them runs; until then there are none."""

    def __init__(
        self,
        calls: ServerCalls,
        text: str,
        params: Parameters,
        columns: pa.Schema,
        rows: pa.Table | None = None,
    ) -> None:
        types = [_type_of(field) for field in columns]
        made = columns.empty_table() if rows is None else rows
        arrays = [c.cast(to_arrow(t)) for c, t in zip(made.columns, types, strict=True)]
        super().__init__("answer", pa.table(arrays, names=columns.names), types)
        self.identity = None
        self._calls, self._asked, self._columns = calls, (text, params), columns

    def is_current(self) -> bool:
        return False

    def reopened(self) -> RemoteTable:
        """Return the table with the rows of now; raises what the server raises."""
        text, params = self._asked
        rows = self._calls.rows(text, params)
        if rows.schema.types != self._columns.types:
            raise err.InvalidQuery(
                "The columns of this query are no longer those that it had: make it anew."
            )
        return RemoteTable(self._calls, text, params, self._columns, rows)


def _type_of(field: pa.Field) -> DataType:
    """Return the SQL type that the server names, where its values come in Arrow's type for it."""
    named = (field.metadata or {}).get(TYPE_NAME, b"").decode()
    try:
        found = parse_type(named)
        if to_arrow(found) == field.type:
            return found
    except err.FuselineError:
        pass
    return from_arrow(field.type, field.name)


class RemoteRunner(QueryRunner):
    """Has a server carry out texts, and runs plans over their answers here."""

    def __init__(self, catalog: Catalog, settings: Settings, address: str, login: Login) -> None:
        super().__init__(catalog, settings)
        self._calls = ServerCalls(address, login)
        self.server = self._calls.address

    def answer_text(
        self, text: str, params: Parameters, rows: pa.Table | None
    ) -> CachedPlan | Answer:
        """Have the server carry out a text; with `rows` its one INSERT for each of them."""
        pieces = [piece.sql for piece in split(text)]
        if not pieces:
            raise err.InvalidQuery("There is no statement in the text.")
        if len(pieces) > 1 and params is not None and len(params):
            raise err.Unsupported(
                "Several statements with parameters do not go to a server at once: send one after the other."
            )
        with self.stoppable():
            *before, last = pieces
            for piece in before:
                if isinstance(self._answer_of(piece, None), CachedPlan):
                    self._calls.rows(piece, None)
            if rows is not None:
                return counted(self._calls.change_by_rows(last, rows))
            return self._answer_of(last, params)

    def _answer_of(self, piece: str, params: Parameters) -> CachedPlan | Answer:
        statement = piece.strip().rstrip(";").strip()
        if _BEGIN.fullmatch(statement):
            return self._with_transaction()
        for pattern, action in ((_COMMIT, COMMIT), (_ROLLBACK, ROLLBACK)):
            if pattern.fullmatch(statement):
                return self._without_transaction(action)
        found = _FIRST.match(piece)
        first = found[1].upper() if found is not None else ""
        if first in _CHANGES and not _RETURNING.search(piece):
            count = self._calls.change(piece, params)
            return done() if count < 0 else counted(count)
        if first and (first not in _QUERIES or (first == "WITH" and _CHANGING.search(piece))):
            rows = self._calls.rows(piece, params)  # once: it may do more than tell
            return Answer(rows, rows.num_rows, True, tuple(map(_type_of, rows.schema)))
        table = RemoteTable(self._calls, piece, params, self._calls.columns(piece, params))
        made = tuple(new_column(name, kind) for name, kind in table.fields)
        return CachedPlan(Scan(table, made, tuple(name for name, _ in table.fields)), piece)

    def _with_transaction(self) -> Answer:
        self.catalog.begin()  # which tells that there is one, and that there is none yet
        try:
            self._calls.begin()
        except BaseException:
            self.catalog.roll_back()
            raise
        return done()

    def _without_transaction(self, action: int) -> Answer:
        if not self.catalog.in_transaction:
            raise err.TransactionError("There is no transaction to end: write BEGIN first.")
        self.catalog.roll_back()  # nothing was changed here
        self._calls.end(action)
        return done()

    def taken(self, name: str, source: object) -> MemoryTable | None:
        """Refuse an object, which the server's queries could not see."""
        raise err.Unsupported(
            f"Queries of this connection run at {self.server}, which sees no objects of this process: store the rows there "
            "with INSERT, where it is writable, or open a connection of this process with connect()."
        )

    def configure(self, new: Settings) -> None:
        """Refuse a setting: those of queries are the server's."""
        raise err.Unsupported(
            f"The settings are those of the server at {self.server}: start it with --set name=value."
        )

    def clear(self) -> None:
        super().clear()
        self._calls.close()


SCHEMES = ("grpc://", "grpc+tls://")
_KNOWN = ("token", "user", "password", "certificates")


def open_remote(
    address: str, login: object, others: tuple[object, ...]
) -> Callable[[Catalog, Settings], RemoteRunner]:
    """Return what makes the runner of a connection to a server; raises `WrongArguments` and `FileError`.

    `others` are arguments of `connect` that do not go with an address.
    """
    if any(others):
        raise err.WrongArguments(
            "The address of a server goes with login= and settings of this process, without read_only, cluster and workers."
        )
    scheme, _, place = address.partition("://")
    if f"{scheme.lower()}://" not in SCHEMES or not place.strip("/"):
        raise err.WrongArguments(
            f'A server\'s address is "grpc://host:port" or "grpc+tls://host:port", not {err.shown(address)}.'
        )
    location = f"{scheme.lower()}://{place.rstrip('/')}"
    return partial(RemoteRunner, address=location, login=_login(login))


def _login(login: object) -> Login:
    if not isinstance(login, Mapping | None):
        raise err.WrongArguments(f"login= is a dictionary, not {err.shown(login)}.")
    given = dict(login or {})
    for name, value in given.items():
        if name not in _KNOWN or not isinstance(value, str):
            hint = err.nearest(str(name), _KNOWN) or f" It has {', '.join(_KNOWN)}."
            raise err.WrongArguments(f"login= has no text {err.shown(name)}.{hint}")
    if ("user" in given) != ("password" in given) or {"token", "user"} <= given.keys():
        raise err.WrongArguments("login= has a token, or a user with a password.")
    path = given.pop("certificates", None)
    certificates = None
    if path is not None:
        try:
            certificates = Path(path).read_bytes()
        except OSError as error:
            raise err.FileError(f'The file "{path}" cannot be read: {error}.') from error
    return Login(**given, certificates=certificates)
