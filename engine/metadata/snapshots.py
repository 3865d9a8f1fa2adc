"""DuckDB's table functions about a catalog: each run of a query of them reads the catalog anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from ..answers import Columns, table_of
from ..catalog import TableFunction
from ..plan.changes.catalog_objects import DESCRIPTION, described
from ..plan.coercion import parse_type
from ..plan.types import VARCHAR, DataType, Kind, list_of, map_of
from ..storage.tables.files import paths_matching
from ..storage.tables.memory_table import LiveTable
from . import known_names, objects
from .objects import Here, Row, RowsOf
from .parquet_footers import FUNCTIONS, RowsOfFooter, footers

_SCHEMA = "database_name varchar, database_oid bigint, schema_name varchar, schema_oid bigint"
_TABLE = f"{_SCHEMA}, table_name varchar, table_oid bigint"
_SNAPSHOTS: dict[str, tuple[str, RowsOf]] = {
    "duckdb_databases": (
        "database_name varchar, database_oid bigint, path varchar, comment varchar, tags map, internal boolean, type varchar, readonly boolean, "
        "encrypted boolean, cipher varchar, options map",
        known_names.databases,
    ),
    "pragma_version": (
        "library_version varchar, source_id varchar, codename varchar",
        known_names.version,
    ),
    "pragma_database_size": (
        "database_name varchar, database_size varchar, block_size bigint, total_blocks bigint, used_blocks bigint, free_blocks bigint, "
        "wal_size varchar, memory_usage varchar, memory_limit varchar",
        known_names.database_sizes,
    ),
    "duckdb_schemas": (
        "oid bigint, database_name varchar, database_oid bigint, schema_name varchar, comment varchar, tags map, internal boolean, sql varchar, "
        "parent_schema varchar, parent_schema_oid bigint",
        known_names.schemas,
    ),
    "duckdb_tables": (
        f"{_TABLE}, comment varchar, tags map, internal boolean, temporary boolean, has_primary_key boolean, estimated_size bigint, "
        "column_count bigint, index_count bigint, check_constraint_count bigint, sql varchar",
        objects.tables,
    ),
    "duckdb_views": (
        f"{_SCHEMA}, view_name varchar, view_oid bigint, comment varchar, tags map, internal boolean, temporary boolean, column_count bigint, "
        "sql varchar, is_bound boolean",
        objects.views,
    ),
    "duckdb_sequences": (
        f"{_SCHEMA}, sequence_name varchar, sequence_oid bigint, comment varchar, tags map, temporary boolean, start_value bigint, min_value bigint, "
        "max_value bigint, increment_by bigint, cycle boolean, last_value bigint, sql varchar",
        objects.sequences,
    ),
    "duckdb_columns": (
        f"{_TABLE}, column_name varchar, column_index integer, comment varchar, internal boolean, column_default varchar, "
        "is_nullable boolean, data_type varchar, data_type_id bigint, character_maximum_length integer, "
        "numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, tags map, "
        "is_generated boolean, generation_expression varchar",
        objects.columns,
    ),
    "duckdb_indexes": (
        f"{_SCHEMA}, index_name varchar, index_oid bigint, table_name varchar, table_oid bigint, comment varchar, tags map, is_unique boolean, "
        "is_primary boolean, expressions varchar, sql varchar",
        objects.indexes,
    ),
    "duckdb_constraints": (
        f"{_TABLE}, constraint_index bigint, constraint_type varchar, constraint_text varchar, expression varchar, "
        "constraint_column_indexes bigint[], constraint_column_names varchar[], constraint_name varchar, referenced_table varchar, "
        "referenced_column_names varchar[]",
        objects.constraints,
    ),
    "fuseline_generated": (f"{_TABLE}, column_name varchar", objects.generated),
    "fuseline_constraints": (
        f"{_TABLE}, constraint_index bigint, constraint_type varchar, constraint_text varchar, expression varchar, "
        "constraint_name varchar, column_name varchar, ordinal_position bigint",
        objects.constrained_columns,
    ),
    "duckdb_extensions": (
        "extension_name varchar, loaded boolean, installed boolean, install_path varchar, description varchar, aliases varchar[], "
        "extension_version varchar, install_mode varchar, installed_from varchar, signature_key_fingerprint varchar",
        known_names.extensions,
    ),
    "duckdb_functions": (
        "database_name varchar, database_oid bigint, schema_name varchar, function_name varchar, alias_of varchar, "
        "function_type varchar, description varchar, comment varchar, tags map, macro_definition varchar, internal boolean",
        known_names.functions,
    ),
    "duckdb_keywords": ("keyword_name varchar, keyword_category varchar", known_names.keywords),
    "duckdb_secrets": (
        "name varchar, type varchar, provider varchar, persistent boolean, storage varchar, scope varchar[], secret_string varchar",
        known_names.secrets,
    ),
    "duckdb_settings": (
        "name varchar, value varchar, description varchar, input_type varchar, scope varchar",
        known_names.settings,
    ),
    "duckdb_types": (
        f"{_SCHEMA}, type_oid bigint, type_name varchar, type_size bigint, logical_type varchar, type_category varchar, "
        "comment varchar, tags map, internal boolean, labels varchar[]",
        known_names.types,
    ),
    "duckdb_variables": ("name varchar, value varchar, type varchar", known_names.variables),
}
_PATHS = "a path or a pattern, or a list of them"
_TABLE_INFO = (
    "cid integer, name varchar, type varchar, notnull boolean, dflt_value varchar, pk boolean"
)


def snapshot_functions(here: Callable[[], Here]) -> dict[str, TableFunction]:
    """Return the functions that tell of what `here` gives, by name."""
    found = {
        name: TableFunction(partial(_snapshot, name, partial(_rows, here, columns, rows)))
        for name, (columns, rows) in _SNAPSHOTS.items()
    }
    for name, make in (("pragma_table_info", _table_info), ("pragma_show", _shown)):
        found[name] = TableFunction(partial(_of_table, name, make, here), "the name of a table")
    for name, (fields, of_footer) in FUNCTIONS.items():
        tell = partial(_footers, fields, of_footer)
        found[name] = TableFunction(partial(_of_table, name, tell, here), _PATHS, several=True)
    globbed = partial(_of_table, "glob", _globbed, here)
    found["glob"] = TableFunction(globbed, _PATHS, several=True)
    return found


def _globbed(here: Here, *patterns: str) -> pa.Table:
    rules = here.catalog.access.rules
    paths = [path for pattern in patterns for path in paths_matching(pattern, rules)]
    return table_of([("file", VARCHAR)], [(path,) for path in paths])


def _footers(fields: Columns, of_footer: RowsOfFooter, here: Here, *patterns: str) -> pa.Table:
    rules = here.catalog.access.rules
    found = [footer for pattern in patterns for footer in footers(pattern, rules)]
    return table_of(fields, [row for footer in found for row in of_footer(footer)])


def _snapshot(name: str, make: Callable[[], pa.Table]) -> LiveTable:
    return LiveTable(name, make)


def _of_table(
    name: str, make: Callable[..., pa.Table], here: Callable[[], Here], *given: str
) -> LiveTable:
    return LiveTable(name, lambda: make(here(), *given))


def _rows(here: Callable[[], Here], columns: str, rows: RowsOf) -> pa.Table:
    fields = _columns(columns)
    maps = [i for i, (_, data_type) in enumerate(fields) if data_type.kind is Kind.MAP]
    found = [list(row) for row in rows(here())]
    for row in found:
        for place in maps:  # tags and options, of which nothing here has any
            row.insert(place, ())
    return table_of(fields, [tuple(row) for row in found])


def _columns(text: str) -> Columns:
    pairs = (column.split() for column in text.split(", "))
    return [(name, _type(data_type)) for name, data_type in pairs]


def _type(name: str) -> DataType:
    if name == "map":
        return map_of(VARCHAR, VARCHAR)
    return list_of(_type(name[:-2])) if name.endswith("[]") else parse_type(name)


def _table_info(here: Here, name: str) -> pa.Table:
    return table_of(_columns(_TABLE_INFO), list(_infos(here, name)))


def _infos(here: Here, name: str) -> Iterator[Row]:
    fields, rules = here.named(name)
    for i, (column, data_type) in enumerate(fields):
        shown = objects.default_text(column, data_type, rules)
        never_null = column in objects.never_null(rules)
        yield (i, column, str(data_type), never_null, shown, rules.key_of(column) == "PRI")


def _shown(here: Here, name: str) -> pa.Table:
    fields, rules = here.named(name)
    return table_of(
        [(n, VARCHAR) for n in DESCRIPTION], [described(*field, rules) for field in fields]
    )
