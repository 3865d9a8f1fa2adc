"""The objects of a catalog as rows: its tables, views, columns and constraints."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..catalog import View
from ..errors import FuselineError, UnknownName, nearest
from ..plan.changes.table_rules import NO_RULES, TableRules, rules_of
from ..plan.statements import Describe
from ..plan.text.quoted_name import quoted_name
from ..plan.types import INTEGER_BITS, DataType, Kind
from .system_views import SYSTEM_VIEWS

if TYPE_CHECKING:
    from ..catalog import Catalog
    from ..plan.logical import CatalogTable
    from ..settings import Settings

Row = tuple[object, ...]
Fields = Sequence[tuple[str, DataType]]

DATABASE, SYSTEM = "memory", "system"
_FLOAT_DIGITS = {Kind.FLOAT: 24, Kind.DOUBLE: 53}
_binds_views: ContextVar[bool] = ContextVar("binds_views", default=False)


@dataclass(frozen=True)
class Here:
    """What a connection has now."""

    catalog: Catalog
    settings: Settings

    def entries(self) -> Iterator[tuple[str, CatalogTable | View]]:
        for name in self.catalog.names():
            found = self.catalog.view(name) or self.catalog.table(name)
            if found is not None:
                yield found.name, found

    def fields(self, entry: CatalogTable | View) -> Fields:
        """Return the columns of a table or view; none of a view whose tables are gone, and of views that this is asked by."""
        if not isinstance(entry, View):
            fields: Fields = getattr(entry, "all_fields", entry.fields)
            return fields
        if _binds_views.get():
            return ()
        from ..sql import plan_sql

        token = _binds_views.set(True)
        try:
            with suppress(FuselineError):
                found = next(plan_sql(f"DESCRIBE {quoted_name(entry.name)}", self.catalog))
                assert isinstance(found, Describe)
                return [(c.name, c.type) for c in found.query.plan.columns]
        finally:
            _binds_views.reset(token)
        return ()

    def named(self, name: str) -> tuple[Fields, TableRules]:
        """Return the columns of a table or view, and its rules; raises `UnknownName`."""
        bare = name.rpartition(".")[2].strip('"')
        entry = self.catalog.view(bare) or self.catalog.table(bare)
        if entry is None:
            hint = nearest(name, self.catalog.names())
            raise UnknownName(f'There is no table or view "{name}".{hint}')
        return self.fields(entry), rules_of(entry)


RowsOf = Callable[[Here], Iterator[Row]]


def name_in_sql(name: str) -> str:
    """Return a name as DuckDB prints it: in quotes only where it needs them."""
    from ..sql import quoted

    return quoted(name)


def oid(*names: str) -> int:
    """Return a number for an object, which it has as long as it is called so."""
    return zlib.crc32("\0".join(names).lower().encode())


def place(kind: str, name: str, schema: str = "main", database: str = DATABASE) -> Row:
    """Return the columns that say where an object is: its database, schema and name, each with its number."""
    own = oid(kind, database, schema, name)
    return (database, oid(database), schema, oid(database, schema), name, own)


def tables(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        if isinstance(entry, View):
            continue
        rules, own = rules_of(entry), here.fields(entry)
        yield (
            *place("relation", name),
            *(None, False, False),
            any(key.primary for key in rules.keys),
            entry.statistics().rows,
            *(len(own), len(rules.keys), len(rules.checks)),
            _create_table(name, own, rules),
        )


def views(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        if isinstance(entry, View):
            names = ", ".join(map(name_in_sql, entry.columns))
            given = f" ({names})" if names else ""
            text = f"CREATE VIEW {name_in_sql(name)}{given} AS {entry.text};"
            count = len(here.fields(entry))
            yield (*place("relation", name), None, False, False, count, text)
    for (schema, name), view in SYSTEM_VIEWS.items():
        text = f"CREATE VIEW {schema}.{name} AS {view.text};"
        yield (*place("relation", name, schema, SYSTEM), None, True, False, None, text)


def columns(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        rules = NO_RULES if isinstance(entry, View) else rules_of(entry)
        for i, (column, data_type) in enumerate(here.fields(entry), 1):
            default = rules.default(column)
            yield (
                *place("relation", name),
                *(column, i, None, False, default and default.shown),
                column not in never_null(rules),
                *(str(data_type), oid("type", data_type.kind.name)),
                *(None, *_digits(data_type)),
            )


def constraints(here: Here) -> Iterator[Row]:
    """Yield a row for each column of each constraint, or one for a constraint of none."""
    for name, entry in here.entries():
        if isinstance(entry, View):
            continue
        for i, (kind, text, expression, own) in enumerate(_constraints(entry)):
            suffix = {"PRIMARY KEY": "pkey", "UNIQUE": "key"}.get(kind, kind.lower())
            shown = "_".join((name, *own, suffix.replace(" ", "_")))
            for position, column in enumerate(own or (None,), 1):
                yield (*place("relation", name), i, kind, text, expression, shown, column, position)


def _constraints(
    entry: CatalogTable,
) -> Iterator[tuple[str, str, str | None, tuple[str, ...]]]:
    """Yield kind, text, condition and columns of each constraint."""
    rules = rules_of(entry)
    for key in rules.keys:
        yield key.kind.upper(), _key(key.columns, key.primary), None, key.columns
    for column, _ in entry.fields:
        if column in never_null(rules):
            yield "NOT NULL", "NOT NULL", None, (column,)
    for check in rules.checks:
        yield "CHECK", f"CHECK({check.shown})", check.shown, ()


def _key(names: Sequence[str], primary: bool) -> str:
    return f"{'PRIMARY KEY' if primary else 'UNIQUE'}({', '.join(map(name_in_sql, names))})"


def never_null(rules: TableRules) -> frozenset[str]:
    """Return the columns of a table that have no NULL."""
    return rules.not_null.union(*(key.columns for key in rules.keys if key.primary))


def _create_table(name: str, fields: Fields, rules: TableRules) -> str:
    """Return the statement that makes a table of these columns and rules."""
    keys = {column for key in rules.keys if key.primary for column in key.columns}
    single = {key.columns[0]: key.kind.upper() for key in rules.keys if len(key.columns) == 1}
    parts = []
    for column, data_type in fields:
        default = rules.default(column)
        words = [f"{name_in_sql(column)} {data_type}"]
        words += [] if default is None else [f"DEFAULT({default.shown})"]
        words += ["NOT NULL"] if column in rules.not_null - keys else []
        parts.append(" ".join([*words, *filter(None, [single.get(column)])]))
    parts += [_key(key.columns, key.primary) for key in rules.keys if len(key.columns) > 1]
    parts += [f"CHECK({check.shown})" for check in rules.checks]
    return f"CREATE TABLE {name_in_sql(name)}({', '.join(parts)});"


def _digits(data_type: DataType) -> tuple[int | None, int | None, int | None]:
    """Return precision, its base, and scale of a numeric type."""
    if data_type.is_decimal and not data_type.name:
        return data_type.precision, 10, data_type.scale
    if data_type.name == "HUGEINT":
        return 128, 2, 0
    if data_type.is_integer and not data_type.is_signed_integer:
        return None, None, None
    bits = INTEGER_BITS.get(data_type.kind) or _FLOAT_DIGITS.get(data_type.kind)
    return (None, None, None) if bits is None else (bits, 2, 0)
