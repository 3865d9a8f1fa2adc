"""`information_schema`, `pg_catalog` and what DuckDB has in main beside them, as views over the functions of `snapshots`."""

from __future__ import annotations

from ..catalog import View
from ..plan.text.postgres_types import name_of_type, number_of_type

_TABLES = """
    select database_name as table_catalog, schema_name as table_schema, table_name,
        case when temporary then 'LOCAL TEMPORARY' else 'BASE TABLE' end as table_type,
        null::varchar as self_referencing_column_name, null::varchar as reference_generation,
        null::varchar as user_defined_type_catalog, null::varchar as user_defined_type_schema,
        null::varchar as user_defined_type_name, 'YES' as is_insertable_into, 'NO' as is_typed, null::varchar as commit_action,
        comment as "TABLE_COMMENT"
    from duckdb_tables()
    union all select database_name, schema_name, view_name, 'VIEW', null, null, null, null, null, 'NO', 'NO', null, comment
    from duckdb_views() where not internal"""
_NO_TEXTS = (
    "character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog \
domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name"
)
_COLUMNS = f"""
    select database_name as table_catalog, schema_name as table_schema, table_name, column_name, column_index as ordinal_position,
        column_default, case when is_nullable then 'YES' else 'NO' end as is_nullable, data_type, character_maximum_length,
        null::integer as character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale,
        null::integer as datetime_precision, null::varchar as interval_type, null::integer as interval_precision,
        {", ".join(f"null::varchar as {name}" for name in _NO_TEXTS.split())},
        null::bigint as maximum_cardinality, null::varchar as dtd_identifier, null::boolean as is_self_referencing,
        null::boolean as is_identity, null::varchar as identity_generation, null::varchar as identity_start,
        null::varchar as identity_increment, null::varchar as identity_maximum, null::varchar as identity_minimum,
        null::boolean as identity_cycle, case when is_made then 'ALWAYS' else 'NEVER' end as is_generated,
        case when is_made then column_default end as generation_expression,
        null::boolean as is_updatable, comment as "COLUMN_COMMENT"
    from duckdb_columns() left join (select table_oid, column_name, true as is_made from fuseline_generated()) using (table_oid, column_name)"""
_SCHEMATA = """
    select database_name as catalog_name, schema_name, 'duckdb' as schema_owner, null::varchar as default_character_set_catalog,
        null::varchar as default_character_set_schema, null::varchar as default_character_set_name, sql as sql_path
    from duckdb_schemas()"""
_CONSTRAINT = """database_name as constraint_catalog, schema_name as constraint_schema, constraint_name,
        database_name as table_catalog, schema_name as table_schema, table_name"""
_KEY_COLUMN_USAGE = f"""
    select {_CONSTRAINT}, column_name, ordinal_position, null::bigint as position_in_unique_constraint
    from fuseline_constraints() where constraint_type in ('PRIMARY KEY', 'UNIQUE')"""
_TABLE_CONSTRAINTS = f"""
    select {_CONSTRAINT}, case constraint_type when 'NOT NULL' then 'CHECK' else constraint_type end as constraint_type,
        'NO' as is_deferrable, 'NO' as initially_deferred, 'YES' as enforced, 'YES' as nulls_distinct
    from fuseline_constraints() where ordinal_position = 1"""
_CHECK_CONSTRAINTS = """
    select database_name as constraint_catalog, schema_name as constraint_schema, constraint_name,
        case constraint_type when 'NOT NULL' then column_name || ' IS NOT NULL' else constraint_text end as check_clause
    from fuseline_constraints() where constraint_type in ('CHECK', 'NOT NULL') and ordinal_position = 1"""
_REFERENTIAL_CONSTRAINTS = """
    select database_name as constraint_catalog, schema_name as constraint_schema, constraint_name,
        null::varchar as unique_constraint_catalog, null::varchar as unique_constraint_schema,
        null::varchar as unique_constraint_name, null::varchar as match_option, null::varchar as update_rule,
        null::varchar as delete_rule
    from fuseline_constraints() where false"""
_VIEWS = """
    select database_name as table_catalog, schema_name as table_schema, view_name as table_name, sql as view_definition,
        'NONE' as check_option, 'NO' as is_updatable, 'NO' as is_insertable_into, 'NO' as is_trigger_updatable,
        'NO' as is_trigger_deletable, 'NO' as is_trigger_insertable_into
    from duckdb_views()"""
_CHARACTER_SETS = """
    select null::varchar as character_set_catalog, null::varchar as character_set_schema, 'UTF8' as character_set_name,
        'UCS' as character_repertoire, 'UTF8' as form_of_use, current_database() as default_collate_catalog,
        'pg_catalog' as default_collate_schema, 'ucs_basic' as default_collate_name"""


def _classes(name: str, function: str, kind: str, rows: str, own: str) -> str:
    """Return the rows of pg_class for tables or views; `own` are what is known of tables alone."""
    return f"""
    select {name}_oid as oid, {name}_name as relname, schema_oid as relnamespace, 0 as reltype, 0 as reloftype, 0 as relowner,
        0 as relam, 0 as relfilenode, 0 as reltablespace, 0 as relpages, {rows}::float as reltuples, 0 as relallvisible,
        0 as reltoastrelid, 0 as reltoastidxid, {own.split(";", maxsplit=1)[0]} as relhasindex, false as relisshared, 'p' as relpersistence,
        '{kind}' as relkind, column_count as relnatts, {own.split(";")[1]} as relchecks, false as relhasoids,
        {own.split(";")[2]} as relhaspkey, false as relhasrules, false as relhastriggers, false as relhassubclass,
        false as relrowsecurity, true as relispopulated, null as relreplident, false as relispartition, 0 as relrewrite,
        0 as relfrozenxid, null as relminmxid, null as relacl, null as reloptions, null as relpartbound
    from {function}()"""


_PG_CLASS = " union all ".join(
    [
        _classes(
            "table",
            "duckdb_tables",
            "r",
            "estimated_size",
            "index_count > 0;check_constraint_count;has_primary_key",
        ),
        _classes("view", "duckdb_views", "v", "0", "false;0::bigint;false"),
        _classes("sequence", "duckdb_sequences", "S", "0", "false;0::bigint;false").replace(
            "column_count", "0::bigint"
        ),
    ]
)
_PG_ATTRIBUTE = f"""
    select table_oid as attrelid, column_name as attname, {number_of_type("data_type", "data_type_id")} as atttypid, 0 as attstattarget, null as attlen,
        column_index as attnum, 0 as attndims, -1 as attcacheoff,
        case when data_type like 'DECIMAL%' then numeric_precision * 1000 + numeric_scale else -1 end as atttypmod,
        false as attbyval, null as attstorage, null as attalign, not is_nullable as attnotnull,
        column_default is not null as atthasdef, false as atthasmissing, '' as attidentity, '' as attgenerated,
        false as attisdropped, true as attislocal, 0 as attinhcount, 0 as attcollation, null as attcompression, null as attacl,
        null as attoptions, null as attfdwoptions, null as attmissingval
    from duckdb_columns()"""
_PG_TYPE = f"""
    select {number_of_type("if(internal, logical_type, '')", "type_oid")} as oid,
        coalesce({name_of_type(number_of_type("logical_type", "0"))}, lower(type_name)) as typname, schema_oid as typnamespace,
        0 as typowner, type_size as typlen,
        false as typbyval, 'b' as typtype,
        case type_category when 'NUMERIC' then 'N' when 'STRING' then 'S' when 'DATETIME' then 'D' when 'BOOLEAN' then 'B'
            else 'X' end as typcategory,
        false as typispreferred, true as typisdefined, null as typdelim, null as typrelid, null as typsubscript,
        null as typelem, null as typarray, 'd' as typalign, 'p' as typstorage, null as typnotnull, null as typbasetype,
        null as typtypmod, null as typndims, null as typcollation, null as typdefault, null as typacl
    from duckdb_types()
    qualify row_number() over (partition by internal, if(internal, logical_type, type_name) order by type_name) = 1"""
_PG_CONSTRAINT = """
    select table_oid * 1000000 + constraint_index as oid, constraint_text as conname, schema_oid as connamespace,
        case constraint_type when 'CHECK' then 'c' when 'UNIQUE' then 'u' when 'PRIMARY KEY' then 'p' else 'x' end as contype,
        false as condeferrable, false as condeferred, true as convalidated, table_oid as conrelid, 0 as contypid,
        0 as conindid, 0 as conparentid, 0 as confrelid, null as confupdtype, null as confdeltype, null as confmatchtype,
        true as conislocal, 0 as coninhcount, false as connoinherit, expression as conbin
    from fuseline_constraints() where ordinal_position = 1"""
_PG_SETTINGS = """
    select name, value as setting, description as short_desc,
        case input_type when 'VARCHAR' then 'string' when 'BOOLEAN' then 'bool' when 'BIGINT' then 'integer'
            else input_type end as vartype
    from duckdb_settings()"""
_PG_DESCRIPTION = """
    select table_oid as objoid, database_oid as classoid, 0 as objsubid, comment as description from duckdb_tables()
    union all select table_oid, database_oid, column_index, comment from duckdb_columns()
    union all select view_oid, database_oid, 0, comment from duckdb_views() where not internal"""
_PG_INDEX = """
    select index_oid as indexrelid, table_oid as indrelid, 0 as indnatts, 0 as indnkeyatts, is_unique as indisunique,
        is_primary as indisprimary, false as indisexclusion, true as indimmediate, false as indisclustered, true as indisvalid,
        false as indcheckxmin, true as indisready, true as indislive, false as indisreplident, null::integer[] as indkey,
        null::bigint[] as indcollation, null::bigint[] as indclass, null::integer[] as indoption, expressions as indexprs,
        null as indpred
    from duckdb_indexes()"""
_PG_ENUM = """
    select null as oid, type_oid as enumtypid, list_position(labels, label) as enumsortorder, label as enumlabel
    from (select labels, unnest(labels) as label, type_oid from duckdb_types() where logical_type = 'ENUM')"""
_CONSTRAINED = """database_name as constraint_catalog, schema_name as constraint_schema, constraint_name, constraint_type"""
_CONSTRAINT_TABLE_USAGE = f"""
    select database_name as table_catalog, schema_name as table_schema, table_name, {_CONSTRAINED}
    from duckdb_constraints() where constraint_type <> 'NOT NULL'"""
_CONSTRAINT_COLUMN_USAGE = f"""
    select database_name as table_catalog, schema_name as table_schema, table_name, column_name, {_CONSTRAINED}, constraint_text
    from (select *, unnest(constraint_column_names) as column_name from duckdb_constraints())
    where constraint_type <> 'NOT NULL'"""
_SQLITE_MASTER = """
    select 'table' as type, table_name as name, table_name as tbl_name, 0 as rootpage, sql from duckdb_tables()
    union all select 'view', view_name, view_name, 0, sql from duckdb_views() where not internal"""

_TEXTS = {
    "information_schema": {
        "character_sets": _CHARACTER_SETS,
        "check_constraints": _CHECK_CONSTRAINTS,
        "columns": _COLUMNS,
        "constraint_column_usage": _CONSTRAINT_COLUMN_USAGE,
        "constraint_table_usage": _CONSTRAINT_TABLE_USAGE,
        "key_column_usage": _KEY_COLUMN_USAGE,
        "referential_constraints": _REFERENTIAL_CONSTRAINTS,
        "schemata": _SCHEMATA,
        "table_constraints": _TABLE_CONSTRAINTS,
        "tables": _TABLES,
        "views": _VIEWS,
    },
    "pg_catalog": {
        "pg_am": "select 0 as oid, 'art' as amname, null as amhandler, 'i' as amtype",
        "pg_attrdef": "select column_index as oid, table_oid as adrelid, column_index as adnum, column_default as adbin "
        "from duckdb_columns() where column_default is not null",
        "pg_attribute": _PG_ATTRIBUTE,
        "pg_class": _PG_CLASS,
        "pg_constraint": _PG_CONSTRAINT,
        "pg_database": "select database_oid as oid, database_name as datname, true as datallowconn, false as datistemplate "
        "from duckdb_databases()",
        "pg_description": _PG_DESCRIPTION,
        "pg_enum": _PG_ENUM,
        "pg_index": _PG_INDEX,
        "pg_indexes": "select schema_name as schemaname, table_name as tablename, index_name as indexname, null as tablespace, "
        "sql as indexdef from duckdb_indexes()",
        "pg_namespace": "select oid, schema_name as nspname, 0 as nspowner, null as nspacl from duckdb_schemas() "
        "where database_name = current_database()",
        "pg_sequence": "select sequence_oid as seqrelid, 0 as seqtypid, start_value as seqstart, increment_by as seqincrement, "
        "max_value as seqmax, min_value as seqmin, 0 as seqcache, cycle as seqcycle from duckdb_sequences()",
        "pg_sequences": "select schema_name as schemaname, sequence_name as sequencename, 'duckdb' as sequenceowner, 0 as data_type, "
        "start_value, min_value, max_value, increment_by, cycle, 0 as cache_size, last_value from duckdb_sequences()",
        "pg_settings": _PG_SETTINGS,
        "pg_tables": "select schema_name as schemaname, table_name as tablename, 'duckdb' as tableowner, null as tablespace, "
        "index_count > 0 as hasindexes, false as hasrules, false as hastriggers from duckdb_tables()",
        "pg_tablespace": "select 0 as oid, 'pg_default' as spcname, 0 as spcowner, null as spcacl, null as spcoptions",
        "pg_type": _PG_TYPE,
        "pg_views": "select schema_name as schemaname, view_name as viewname, 'duckdb' as viewowner, sql as definition "
        "from duckdb_views()",
    },
    "main": {
        "duckdb_columns": "from duckdb_columns()",
        "duckdb_databases": "from duckdb_databases() where not internal",
        "duckdb_schemas": "from duckdb_schemas() where not internal",
        "duckdb_tables": "from duckdb_tables()",
        "duckdb_types": "from duckdb_types()",
        "duckdb_views": "from duckdb_views() where not internal",
        "pragma_database_list": "select database_oid as seq, database_name as name, path as file from duckdb_databases() "
        "where not internal order by 1",
        "sqlite_master": _SQLITE_MASTER,
        "sqlite_schema": _SQLITE_MASTER,
    },
}
SYSTEM_VIEWS = {
    (schema, name): View(f"{schema}.{name}", " ".join(text.split()), ())
    for schema, views in _TEXTS.items()
    for name, text in views.items()
}
