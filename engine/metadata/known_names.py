"""What a connection knows by name beside the objects of its catalog, as rows: schemas, functions, settings, types, variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ..plan.changes.catalog_objects import TEMP
from ..plan.coercion import TYPE_NAMES
from ..plan.dialect import BUILT_IN
from ..plan.expr import Cast, Expr, Literal
from ..plan.files.read_options import TABLE_FUNCTIONS
from ..plan.functions import spellings
from ..plan.text.quoted_name import KEYWORD_CATEGORIES
from ..plan.types import INTEGER_BITS, DataType, Kind
from ..setting_values.of_duckdb import FIXED
from ..settings import DUCKDB_NAMES, described_settings
from .objects import SYSTEM, Here, Row, oid, place

KIND = "duckdb"  # the type that tools which know DuckDB ask for
_SYSTEM_SCHEMAS = ("main", "information_schema", "pg_catalog")
_OF_PARTS = (  # types with parameters: their names, logical types and sizes
    *((name, "DECIMAL", None) for name in ("dec", "decimal", "numeric")),
    *(("array", "ARRAY", 0), ("enum", "ENUM", None), ("list", "LIST", 16), ("map", "MAP", 16)),
    *(("row", "STRUCT", 0), ("struct", "STRUCT", 0)),
)
_OTHER_SIZES = {
    Kind.BOOLEAN: 1,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.DATE: 4,
    Kind.INTERVAL: 16,
    Kind.VARCHAR: 16,
    Kind.UUID: 16,
}


def databases(here: Here) -> Iterator[Row]:
    for found in here.catalog.databases.values():
        path = None if found.folder is None else str(found.folder.path)
        internal = found.name == TEMP
        only = found.read_only
        yield (found.name, oid(found.name), path, None, internal, KIND, only, False, None)
    yield (SYSTEM, oid(SYSTEM), None, None, True, KIND, False, False, None)


def version(_: Here) -> Iterator[Row]:
    from .. import __version__

    yield (f"v{__version__}", None, "Fuseline")


def database_sizes(here: Here) -> Iterator[Row]:
    """Yield the bytes of each database on disk; in memory, where there are no blocks, it has none."""
    limit = here.settings.memory_limit
    for found in here.catalog.databases.values():
        if found.name != TEMP:
            rows, log = (0, 0) if found.folder is None else found.folder.bytes_on_disk()
            told = (_bytes(rows + log), 0, 0, 0, 0, _bytes(log))
            yield (found.name, *told, None, None if limit is None else _bytes(limit))


def _bytes(count: int) -> str:
    """Return a number of bytes as format_bytes() does."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            tenths = count * 10 >> power
            return f"{tenths // 10}.{tenths % 10} {unit}"
    return f"{count} byte" if count == 1 else f"{count} bytes"


def schemas(here: Here) -> Iterator[Row]:
    own = (here.catalog.spelled(place) for place in here.catalog.places())
    places = [*own, *((SYSTEM, name) for name in _SYSTEM_SCHEMAS)]
    for database, name in places:
        internal = name in _SYSTEM_SCHEMAS
        yield (oid(database, name), database, oid(database), name, None, internal, *[None] * 3)


def functions(here: Here) -> Iterator[Row]:
    system = (SYSTEM, oid(SYSTEM), "main")
    for name, alias_of, kind, signature in spellings():
        yield (*system, name, alias_of, kind, signature, None, None, True)
    for name in (*TABLE_FUNCTIONS, "range", "generate_series", *here.catalog.table_functions()):
        yield (*system, name, None, "table", None, None, None, True)
    for key, macro in here.catalog.objects("macro"):
        kind = "table_macro" if macro.is_table else "macro"
        database, schema = here.catalog.spelled(key.place)
        own = (database, oid(database), schema, str(macro.name))
        for each in (macro, *macro.overloads):
            text = each.text if each.is_table else each.text.removeprefix("SELECT ")
            yield (*own, None, kind, None, macro.comment, text, False)


def keywords(_: Here) -> Iterator[Row]:
    for category, words in KEYWORD_CATEGORIES.items():
        for word in sorted(words):
            yield (word, category)


def settings(here: Here) -> Iterator[Row]:
    descriptions = described_settings()
    names = [(field.name, field.name) for field in fields(here.settings)]
    for name, own in (*names, *DUCKDB_NAMES.items()):
        value = getattr(here.settings, own)
        if name == "max_execution_time":
            value = round((value or 0) * 1e3)  # milliseconds
        shown = None if value is None else str(value)
        shown = str(value).lower() if isinstance(value, bool) else shown
        yield (name, shown, descriptions[own], _input_type(value), "LOCAL")
    for name, (value, _, meaning, _) in FIXED.items():
        yield (name, str(value).lower(), meaning, _input_type(value), "LOCAL")


def extensions(_: Here) -> Iterator[Row]:
    """Yield what DuckDB has as extensions and is part of Fuseline; there are no others."""
    from .. import __version__

    for name, description in BUILT_IN.items():
        told: Row = (
            "(BUILT-IN)",
            description,
            [],
            f"v{__version__}",
            "STATICALLY_LINKED",
            "",
            None,
        )
        yield (name, True, True, *told)


def _input_type(value: object) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    return {int: "BIGINT", float: "DOUBLE"}.get(type(value), "VARCHAR")


def types(here: Here) -> Iterator[Row]:
    for key, made in here.catalog.objects("type"):
        database, schema = here.catalog.spelled(key.place)
        inside, labels = made.type, None
        logical, size = inside.kind.name, _size(inside)
        if inside.is_enum:
            logical, size, labels = "ENUM", INTEGER_BITS[inside.kind] // 8, list(inside.names)
        where = (*place("type", made.name, schema, database)[:4], oid("type", made.name))
        yield (*where, made.name, size, logical, None, made.comment, False, labels)
    for name, data_type in sorted(TYPE_NAMES.items()):
        if name.isidentifier():
            category = _category(data_type)
            own = (name, _size(data_type), str(data_type), category, None, True, None)
            kind = data_type.kind.name
            yield (*place("type", "", "main", SYSTEM)[:4], oid("type", kind), *own)

    for name, logical, whole in _OF_PARTS:
        category = {"DECIMAL": "NUMERIC", "ENUM": None}.get(logical, "COMPOSITE")
        where = (*place("type", "", "main", SYSTEM)[:4], oid("type", logical))
        yield (*where, name, whole, logical, category, None, True, None)


def _size(data_type: DataType) -> int:
    bits = 128 if data_type.name == "HUGEINT" else INTEGER_BITS.get(data_type.kind, 0)
    ticks = 8 if data_type.is_temporal else 0
    return bits // 8 or _OTHER_SIZES.get(data_type.kind, ticks)


def _category(data_type: DataType) -> str | None:
    if data_type.is_numeric:
        return "NUMERIC"
    if data_type.is_temporal or data_type.kind in (Kind.INTERVAL, Kind.TIME):
        return "DATETIME"
    return {Kind.BOOLEAN: "BOOLEAN", Kind.VARCHAR: "STRING"}.get(data_type.kind)


def variables(here: Here) -> Iterator[Row]:
    for name, constant in here.catalog.session.variables.items():
        yield (name, _shown(constant), str(constant.type))


def _shown(constant: Expr) -> str | None:
    """Return the text of a constant, lists and structs as casts write them."""
    if isinstance(constant, Literal):
        return None if constant.value is None else str(constant.value)
    if isinstance(constant, Cast):
        return _shown(constant.operand)
    parts = [_shown(part) or "NULL" for part in constant.children]
    if constant.type.kind is Kind.LIST:
        return f"[{', '.join(parts)}]"
    pairs = zip(constant.type.names, parts, strict=True)
    return f"{{{', '.join(f'{name!r}: {part}' for name, part in pairs)}}}"


def secrets(here: Here) -> Iterator[Row]:
    for secret in here.catalog.access.rules.remote.secrets:
        own = (secret.type, secret.provider, False, "memory", list(secret.scope))
        yield (secret.name, *own, secret.shown())
