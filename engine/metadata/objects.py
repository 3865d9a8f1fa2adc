"""The objects of a catalog as rows: its tables, views, columns and constraints."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar

from ..catalog import Catalog, View
from ..errors import FuselineError, UnknownName, nearest
from ..plan.changes import catalog_objects as co
from ..plan.changes.sequences import Sequence as SequenceObject
from ..plan.logical import CatalogTable
from ..plan.statements import Describe
from ..plan.types import INTEGER_BITS, DataType, Kind
from ..records import dataclass
from ..settings import Settings
from .system_views import SYSTEM_VIEWS

Row = tuple[object, ...]
Fields = Sequence[tuple[str, DataType]]

SYSTEM = "system"
_FLOAT_DIGITS = {Kind.FLOAT: 24, Kind.DOUBLE: 53}
_binds_views: ContextVar[bool] = ContextVar("binds_views", default=False)


@dataclass(frozen=True)
class Here:
    """What a connection has now."""

    catalog: Catalog
    settings: Settings

    def entries(self) -> Iterator[tuple[co.ObjectName, CatalogTable | View]]:
        """Yield tables and views with their names, whose places are as they are spelled."""
        for key, entry in self.catalog.objects("relation"):
            name = co.ObjectName(entry.name, key.place)
            found = entry if isinstance(entry, View) else self.catalog.table(name)
            if found is not None:
                yield co.ObjectName(entry.name, self.catalog.spelled(key.place)), found

    def fields(self, entry: CatalogTable | View, name: co.ObjectName) -> Fields:
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
                found = next(plan_sql(f"DESCRIBE {co.path_in_query(name)}", self.catalog))
                assert isinstance(found, Describe)
                return [(c.name, c.type) for c in found.query.plan.columns]
        finally:
            _binds_views.reset(token)
        return ()

    def named(self, name: str) -> tuple[Fields, co.TableRules]:
        """Return the columns of a table or view, and its rules; raises `UnknownName`."""
        located = self.catalog.located([part.strip('"') for part in name.split(".")])
        entry = None
        if located is not None:
            entry = self.catalog.view(located) or self.catalog.table(located)
        if located is None or entry is None:
            hint = nearest(name, self.catalog.names())
            raise UnknownName(f'There is no table or view "{name}".{hint}')
        return self.fields(entry, located), co.rules_of(entry)


RowsOf = Callable[[Here], Iterator[Row]]


def name_in_sql(name: str) -> str:
    """Return a name as DuckDB prints it: in quotes only where it needs them."""
    from ..sql import quoted

    return quoted(name)


def oid(*names: str) -> int:
    """Return a number for an object, which it has as long as it is called so."""
    return zlib.crc32("\0".join(names).lower().encode())


def place(kind: str, name: str, schema: str, database: str) -> Row:
    """Return the columns that say where an object is: its database, schema and name, each with its number."""
    own = oid(kind, database, schema, name)
    return (database, oid(database), schema, oid(database, schema), name, own)


def relation(name: co.ObjectName) -> Row:
    """Return the columns that say where a table or view is."""
    return place("relation", name, name.place.schema, name.place.database)


def tables(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        if isinstance(entry, View):
            continue
        rules, own = co.rules_of(entry), here.fields(entry, name)
        yield (
            *relation(name),
            *(rules.comments.text, False, name.place.database == co.TEMP),
            any(key.primary for key in rules.keys),
            entry.statistics().rows,
            *(len(own), len(rules.keys) + len(rules.indexes), len(rules.checks)),
            create_table_text(name, own, rules),
        )


def views(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        if isinstance(entry, View):
            count, temporary = len(here.fields(entry, name)), name.place.database == co.TEMP
            said, text = entry.comments.text, create_view_text(name, entry)
            yield (*relation(name), said, False, temporary, count, text, True)
    for (schema, own), view in SYSTEM_VIEWS.items():
        text = f"CREATE VIEW {schema}.{own} AS {view.text};"
        yield (*place("relation", own, schema, SYSTEM), None, True, False, None, text, False)


def sequences(here: Here) -> Iterator[Row]:
    for key, entry in here.catalog.objects("sequence"):
        name = co.ObjectName(entry.name, here.catalog.spelled(key.place))
        values = entry.values
        yield (
            *place("sequence", name, name.place.schema, name.place.database),
            *(None, key.database == co.TEMP, values.start, values.least, values.most),
            *(values.increment, values.cycle, entry.position.last),
            create_sequence_text(name_in_sql(name), entry),
        )


def columns(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        rules = co.NO_RULES if isinstance(entry, View) else co.rules_of(entry)
        comments = entry.comments if isinstance(entry, View) else rules.comments
        for i, (column, data_type) in enumerate(here.fields(entry, name), 1):
            yield (
                *relation(name),
                *(
                    column,
                    i,
                    comments.of_column(column),
                    False,
                    default_text(column, data_type, rules),
                ),
                column not in never_null(rules),
                *(str(data_type), oid("type", data_type.kind.name)),
                *(None, *_digits(data_type)),
                *_generation(column, data_type, rules),
            )


def _generation(column: str, data_type: DataType, rules: co.TableRules) -> Row:
    """Return whether a column is generated, and by which expression."""
    if rules.generation(column) is None:
        return False, None
    return True, default_text(column, data_type, rules)


def default_text(column: str, data_type: DataType, rules: co.TableRules) -> str | None:
    """Return what is told as the default of a column, which for a generated one is its expression."""
    generated, default = rules.generation(column), rules.default(column)
    if generated is not None:
        return f"CAST({generated.shown} AS {data_type})"
    return None if default is None else default.shown


def generated(here: Here) -> Iterator[Row]:
    """Yield a row for each generated column."""
    for name, entry in here.entries():
        rules = co.NO_RULES if isinstance(entry, View) else co.rules_of(entry)
        for column, _ in rules.generated:
            yield (*relation(name), column)


def constraints(here: Here) -> Iterator[Row]:
    """Yield a row for each constraint."""
    for name, entry in here.entries():
        places = {column: i for i, (column, _) in enumerate(here.fields(entry, name))}
        for i, (kind, text, expression, own) in enumerate(_constraints(entry)):
            shown = _constraint_name(name, kind, own)
            numbers = [places[column] for column in own]
            yield (*relation(name), i, kind, text, expression, numbers, list(own), shown, None, [])


def constrained_columns(here: Here) -> Iterator[Row]:
    """Yield a row for each column of each constraint, or one for a constraint of none."""
    for name, entry in here.entries():
        for i, (kind, text, expression, own) in enumerate(_constraints(entry)):
            shown = _constraint_name(name, kind, own)
            for position, column in enumerate(own or (None,), 1):
                yield (*relation(name), i, kind, text, expression, shown, column, position)


def _constraint_name(table: str, kind: str, columns: Sequence[str]) -> str:
    suffix = {"PRIMARY KEY": "pkey", "UNIQUE": "key"}.get(kind, kind.lower())
    return "_".join((table, *columns, suffix.replace(" ", "_")))


def _constraints(
    entry: CatalogTable | View,
) -> Iterator[tuple[str, str, str | None, tuple[str, ...]]]:
    """Yield kind, text, condition and columns of each constraint; a view has none."""
    if isinstance(entry, View):
        return
    rules = co.rules_of(entry)
    for key in rules.keys:
        yield key.kind.upper(), _key(key.columns, key.primary), None, key.columns
    for column, _ in entry.fields:
        if column in never_null(rules):
            yield "NOT NULL", "NOT NULL", None, (column,)
    for check in rules.checks:
        spelled = {column.lower(): column for column, _ in entry.fields}
        named = (spelled.get(name.lower()) for name in _named_in(check.shown))
        own = dict.fromkeys(name for name in named if name is not None)
        yield "CHECK", f"CHECK({check.shown})", check.shown, tuple(own)


def _named_in(shown: str) -> list[str]:
    """Return the words of an expression as it is shown, of which some are columns, without those in its texts."""
    words = re.findall(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")*)\"|(\w+)", shown)
    return [quoted.replace('""', '"') or plain for quoted, plain in words]


def _key(names: Sequence[str], primary: bool) -> str:
    return f"{'PRIMARY KEY' if primary else 'UNIQUE'}({', '.join(map(name_in_sql, names))})"


def never_null(rules: co.TableRules) -> frozenset[str]:
    """Return the columns of a table that have no NULL."""
    return rules.not_null.union(*(key.columns for key in rules.keys if key.primary))


def path_in_sql(name: co.ObjectName) -> str:
    """Return a name with that of its schema before it, unless that is main."""
    schema = name.place.schema
    return name_in_sql(name) if schema == co.MAIN else f"{name_in_sql(schema)}.{name_in_sql(name)}"


def create_view_text(name: co.ObjectName, view: View) -> str:
    """Return the statement that makes a view."""
    names = ", ".join(map(name_in_sql, view.columns))
    given = f" ({names})" if names else ""
    return f"CREATE {_temporary(name)}VIEW {path_in_sql(name)}{given} AS {view.text};"


def create_sequence_text(path: str, sequence: SequenceObject) -> str:
    """Return the statement that makes a sequence which goes on where this one is."""
    values = sequence.values
    return (
        f"CREATE SEQUENCE {path} INCREMENT BY {values.increment} MINVALUE {values.least} MAXVALUE {values.most} "
        f"START {sequence.position.following} {'CYCLE' if values.cycle else 'NO CYCLE'};"
    )


def create_index_text(table: co.ObjectName, index: co.TableIndex) -> str:
    """Return the statement that makes an index of a table."""
    kind, columns = "UNIQUE INDEX" if index.is_unique else "INDEX", ", ".join(_indexed(index))
    return f"CREATE {kind} {name_in_sql(index.name)} ON {path_in_sql(table)}({columns});"


def _indexed(index: co.TableIndex) -> list[str]:
    """Return what an index is over, expressions in parentheses."""
    names = set(index.columns)
    return [name_in_sql(e) if e in names else f"({e})" for e in index.expressions]


def indexes(here: Here) -> Iterator[Row]:
    for name, entry in here.entries():
        for index in () if isinstance(entry, View) else co.rules_of(entry).indexes:
            schema, database = name.place.schema, name.place.database
            names = set(index.columns)
            over = [e if e in names else f"'({e})'" for e in index.expressions]
            yield (
                *place("index", index.name, schema, database),
                *(name, oid("relation", database, schema, name), None),
                *(index.is_unique, False, f"[{', '.join(over)}]", create_index_text(name, index)),
            )


def _temporary(name: co.ObjectName) -> str:
    return "TEMP " if name.place.database == co.TEMP else ""


def create_table_text(name: co.ObjectName, fields: Fields, rules: co.TableRules) -> str:
    """Return the statement that makes a table of these columns and rules."""
    keys = {column for key in rules.keys if key.primary for column in key.columns}
    single = {key.columns[0]: key.kind.upper() for key in rules.keys if len(key.columns) == 1}
    parts = []
    for column, data_type in fields:
        default, made = rules.default(column), rules.generation(column)
        words = [f"{name_in_sql(column)} {data_type}"]
        words += [] if made is None else [f"GENERATED ALWAYS AS({made.shown})"]
        words += [] if default is None else [f"DEFAULT({default.shown})"]
        words += ["NOT NULL"] if column in rules.not_null - keys else []
        parts.append(" ".join([*words, *filter(None, [single.get(column)])]))
    parts += [_key(key.columns, key.primary) for key in rules.keys if len(key.columns) > 1]
    parts += [f"CHECK({check.shown})" for check in rules.checks]
    return f"CREATE {_temporary(name)}TABLE {path_in_sql(name)}({', '.join(parts)});"


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
