"""Fuseline in Harlequin, the SQL IDE for terminals: `harlequin -a fuseline [FOLDER]`, with the extra `harlequin`.

Its three classes over a connection: queries run as frames, so that Harlequin's limit is one of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harlequin import HarlequinAdapter, HarlequinConnection, HarlequinCursor
from harlequin.autocomplete.completion import HarlequinCompletion
from harlequin.catalog import Catalog, CatalogItem
from harlequin.exception import HarlequinConnectionError, HarlequinQueryError
from harlequin.options import TextOption

from ..connection import connect
from ..errors import FuselineError
from ..plan.functions import spellings
from ..plan.text.quoted_name import distinct_names
from ..plan.types import DataType, Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from ..connection import Connection
    from ..frame.frame import Frame

PRIORITY = 1000  # of functions among what is offered: behind the names of the catalog
_SIGNS = {Kind.BOOLEAN: "t/f", Kind.VARCHAR: "s", Kind.DATE: "d", Kind.INTERVAL: "|-|"}
_DONE = (["Success"], ["Count"])  # the columns of statements that are not asked for rows


class FuselineCursor(HarlequinCursor):
    """The rows of a query, which runs when they are fetched."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def columns(self) -> list[tuple[str, str]]:
        columns = self._frame.plan.columns
        names = distinct_names([column.name for column in columns])
        return [(name, sign(c.type)) for name, c in zip(names, columns, strict=True)]

    def set_limit(self, limit: int) -> FuselineCursor:
        return FuselineCursor(self._frame.limit(limit))

    def fetchall(self) -> pa.Table | None:
        try:
            table = self._frame.to_arrow()
        except FuselineError as error:
            raise _query_error(error) from error
        names = [name for name, _ in self.columns()]
        return table.rename_columns(names) if table.num_rows else None


class FuselineConnection(HarlequinConnection):
    """A connection whose errors are Harlequin's."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(init_message=f"Fuseline on the {connection.device}.")
        self._connection = connection

    def execute(self, query: str) -> FuselineCursor | None:
        try:
            frame = self._connection.sql(query)
            is_done = frame.columns in _DONE and _is_answer(frame)
            return None if is_done else FuselineCursor(frame)
        except FuselineError as error:
            raise _query_error(error) from error

    def cancel(self) -> None:
        self._connection.interrupt()

    def get_catalog(self) -> Catalog:
        rows = self._connection.sql(
            "select table_catalog, table_schema, table_name, table_type, column_name, data_type "
            "from information_schema.columns join information_schema.tables using (table_catalog, table_schema, table_name) "
            "order by table_catalog, table_schema, table_name, ordinal_position"
        ).fetchall()
        databases: dict[tuple[str, ...], CatalogItem] = {}
        for database, schema, table, kind, column, data_type in rows:
            top = _item(databases, (database,), "db", None)
            within = _item(databases, (database, schema), "sch", top)
            label = "v" if kind == "VIEW" else "t"
            owner = _item(databases, (database, schema, table), label, within)
            owner.type_name = kind
            name = _quoted(column)
            full = f"{owner.qualified_identifier}.{name}"
            owner.children.append(
                CatalogItem(full, name, column, data_type[:3].lower(), type_name=data_type)
            )
        return Catalog(items=[item for path, item in databases.items() if len(path) == 1])

    def get_completions(self) -> list[HarlequinCompletion]:
        return [
            HarlequinCompletion(name, kind[:3], name, PRIORITY) for name, _, kind, _ in spellings()
        ]

    def validate_sql(self, text: str) -> str:
        from ..sql import unfinished

        return "" if unfinished(text) else text

    def close(self) -> None:
        if not self._connection.is_closed:
            self._connection.close()


class FuselineAdapter(HarlequinAdapter):
    """Opens a folder as a database, or one in memory."""

    IMPLEMENTS_CANCEL = True
    IMPLEMENTS_READ_ONLY = True
    IMPLEMENTS_VALIDATE_SQL = True
    ADAPTER_OPTIONS = [  # noqa: RUF012 - as Harlequin declares it
        TextOption(name="device", description="auto, gpu or cpu", default="auto"),
        TextOption(name="memory_limit", description="such as 4GB"),
    ]

    def __init__(self, conn_str: Sequence[str], read_only: bool = False, **options: Any) -> None:
        self._path = conn_str[0] if conn_str else None
        self._read_only = read_only
        known = ("device", "memory_limit")
        self._settings = {name: options[name] for name in known if options.get(name)}

    def connect(self) -> FuselineConnection:
        try:
            return FuselineConnection(connect(self._path, self._read_only, **self._settings))
        except FuselineError as error:
            raise HarlequinConnectionError(str(error), title="Fuseline") from error


def sign(data_type: DataType) -> str:
    """Return the few characters that stand for a type beside a column's name."""
    if data_type.is_integer:
        return "##" if data_type.name in ("BIGINT", "UBIGINT", "HUGEINT") else "#"
    if data_type.is_numeric:
        return "#.#"
    if data_type.is_temporal and data_type.kind is not Kind.DATE:
        return "ts"
    return _SIGNS.get(data_type.kind, "?")


def _is_answer(frame: Frame) -> bool:
    """Whether a frame is what a statement answered, and no query."""
    table = getattr(frame.plan, "table", None)
    return getattr(table, "name", None) == "answer"


def _item(
    known: dict[tuple[str, ...], CatalogItem],
    path: tuple[str, ...],
    label: str,
    above: CatalogItem | None,
) -> CatalogItem:
    if path not in known:
        name = ".".join(map(_quoted, path))
        known[path] = CatalogItem(name, name, path[-1], label)
        if above is not None:
            above.children.append(known[path])
    return known[path]


def _quoted(name: str) -> str:
    from ..sql import quoted

    return quoted(name)


def _query_error(error: FuselineError) -> HarlequinQueryError:
    return HarlequinQueryError(str(error), title=type(error).__name__)
