"""Functions of PostgreSQL that tools call which ask a database for its tables, and `x ~ ANY (patterns)`, as macros that each session has."""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.plan.changes.catalog_objects import Macro
from fuseline.plan.text.postgres_types import name_of_type

# There are no users, and each object is found without the name of its schema
_GRANTED = (
    *("any_column", "database", "foreign_data_wrapper", "function", "language", "schema"),
    *("sequence", "server", "table", "tablespace"),
)
_VISIBLE = (
    *("collation", "conversion", "function", "opclass", "operator", "opfamily", "table"),
    *("ts_config", "ts_dict", "ts_parser", "ts_template", "type"),
)
_OTHERS = {
    "col_description(object, number)": "null",
    "format_type(type, modifier)": (
        f"coalesce({name_of_type('type')}, (select lower(min(t.type_name)) from duckdb_types() as t where t.type_oid = type)) || "
        "case when modifier > 0 then concat('(', modifier // 1000, ',', modifier % 1000, ')') else '' end"
    ),
    "inet_client_addr()": "null",
    "inet_client_port()": "null",
    "inet_server_addr()": "null",
    "inet_server_port()": "null",
    "obj_description(object, catalog)": "null",
    "pg_conf_load_time()": "current_timestamp",
    "pg_get_constraintdef(constraint_id, pretty)": (
        "(select constraint_text from duckdb_constraints() as c "
        "where c.table_oid = constraint_id // 1000000 and c.constraint_index = constraint_id % 1000000)"
    ),
    "pg_get_expr(tree, relation)": "tree",
    "pg_get_viewdef(view_id)": "(select v.sql from duckdb_views() as v where v.view_oid = view_id)",
    "pg_is_other_temp_schema(schema)": "false",
    "pg_my_temp_schema()": "0",
    "pg_postmaster_start_time()": "current_timestamp",
    "shobj_description(object, catalog)": "null",
}

_MATCHES = "list_transform(patterns, lambda p: regexp_matches(value, p))"
_UNKNOWN = f"list_contains(list_transform({_MATCHES}, lambda m: m is null), true)"


def _matches(found: str) -> str:
    """Return what decides, or NULL where one of the others is, or else its contrary."""
    other = "false" if found == "true" else "true"
    return f"case when list_contains({_MATCHES}, {found}) then {found} when {_UNKNOWN} then null else {other} end"


def _written() -> Iterator[tuple[str, str]]:
    for kind in _GRANTED:
        yield f"has_{kind}_privilege(object, privilege, further)", "true"
    yield "has_column_privilege(object, column, privilege, further)", "true"
    yield "pg_has_role(role, privilege, further)", "true"
    for kind in _VISIBLE:
        yield f"pg_{kind}_is_visible(object)", "true"
    yield from _OTHERS.items()
    yield "matches any(value, patterns)", _matches("true")  # names that no call has
    yield "matches all(value, patterns)", _matches("false")


def _macro(signature: str, text: str) -> Macro:
    name, _, listed = signature[:-1].partition("(")
    parameters = tuple(filter(None, listed.split(", ")))
    defaults = {p: "null" for p in parameters if p in ("further", "pretty")}
    return Macro(name, f"SELECT {text}", parameters, defaults)


SYSTEM_MACROS = {macro.name: macro for macro in (_macro(*each) for each in _written())}
