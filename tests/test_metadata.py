"""What a connection tells of itself as tables: information_schema, pg_catalog, duckdb_tables() and its like, DESCRIBE, SUMMARIZE."""

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

SETUP = [
    "create table t (a integer primary key, b varchar not null default 'x', d decimal(9, 2), h hugeint, f float, u utinyint unique, check (d > 1))",
    "insert into t values (1, 'p', 2.5, 10, 1.5, 1), (2, 'q', null, null, 2.5, 2), (3, 'r', 4.5, 30, 'nan', 3)",
    'create view "V w" as select a + 1 as n, b as "B b" from t',
    "create table k (x date, y timestamp, z time, primary key (x, y))",
    "insert into k values ('2024-01-01', '2024-01-01 10:00', '10:00'), ('2024-01-03', '2024-01-05 10:00', '12:00'), ('2024-01-02', '2024-01-03 10:00', '11:00')",
]
QUERIES = """
from information_schema.tables order by all
from information_schema.columns order by all
select * from information_schema.schemata where catalog_name = 'memory' order by all
from information_schema.key_column_usage order by all
select * exclude (constraint_name) from information_schema.table_constraints order by all
select check_clause from information_schema.check_constraints order by all
from information_schema.referential_constraints
from information_schema.character_sets
select * from system.information_schema.tables order by all
select * exclude (view_definition) from information_schema.views where table_catalog = 'memory'
select schema_name, table_name, has_primary_key, column_count, estimated_size, check_constraint_count, sql from duckdb_tables() order by all
select table_name, sql from duckdb_tables order by all
select view_name, column_count from duckdb_views() where not internal
select column_name, column_type from (describe from duckdb_tables()) union all select column_name, column_type from (describe from duckdb_columns()) order by all
select column_name, column_type from (describe from duckdb_views()) union all select column_name, column_type from (describe from duckdb_databases()) order by all
select column_name, column_type from (describe from duckdb_schemas()) union all select column_name, column_type from (describe from duckdb_indexes()) order by all
select table_name, tags, cardinality(tags) as n from duckdb_tables() union all select view_name, tags, is_bound::int from duckdb_views() where not internal order by all
select database_name, tags, options, encrypted from duckdb_databases() where database_name in ('memory', 'system') order by all
select column_name, tags, is_generated, generation_expression from duckdb_columns() where table_name = 't' order by all
select view_name from duckdb_views where not internal
select table_name, column_name, column_index, column_default, is_nullable, data_type, numeric_precision, numeric_scale from duckdb_columns() where not internal order by all
select database_name, schema_name from duckdb_schemas() where database_name = 'memory'
select database_name from duckdb_databases() where not internal
select distinct function_name from duckdb_functions() where function_name in ('cbrt', 'sum', 'lower', 'row_number', 'nonesuch') order by all
select name from duckdb_settings() where name = 'threads'
select distinct type_name, logical_type, type_size, type_category from duckdb_types() where type_name in ('int4', 'bigint', 'date', 'varchar', 'double', 'boolean', 'hugeint') and database_name = 'system' order by all
from pg_catalog.pg_tables order by all
select relname, relkind, relnatts, relhaspkey from pg_class where relname in ('t', 'V w', 'k') order by all
select n.nspname, c.relname, a.attname, a.attnum, a.attnotnull, a.atthasdef, a.atttypmod from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid where n.nspname = 'main' order by all
select conname, contype, conbin from pg_constraint where contype <> 'x' order by all
select adnum, adbin from pg_attrdef
select type, name from sqlite_master where type <> 'index' order by all
select name, file from pragma_database_list
from pragma_table_info('t')
select name from pragma_table_info('V w') order by cid
from pragma_show('k')
from (describe t)
select count(*) from (describe select 1 as x, 2 as y) where "null" = 'YES'
select column_name from (describe t) where key = 'PRI'
from (show tables)
(show tables) union all select 'a' order by all
with a as (show all tables) select name from a order by all
(desc t)
select extension_name, loaded, installed, install_path, aliases, install_mode, installed_from from duckdb_extensions() where loaded and extension_name <> 'httpfs' order by all
select column_name, column_type from (describe from duckdb_extensions())
select current_setting('default_collation'), current_setting('ieee_floating_point_ops')
select count(*) from ((describe t)) x
select ("show") from (select 'x' as "show")
select * exclude (q25, q50, q75) from (summarize t)
select * exclude (std, q25, q50, q75) from (summarize k)
select column_name, min, q50 from (summarize select a from t)
summarize select a as x, a + 1 as y, b from t where a > 100
select s.column_name, s.max, d.column_type from (summarize t) s join (describe t) d using (column_name) order by all
"""


INDEXED = [
    "create table stock (sku varchar primary key, n int check (n > 0), m int unique, k int not null)",
    "create unique index by_n on stock (n)",
    "create type mood as enum ('sad', 'ok')",
]
OF_INDEXES = """
select * exclude (indexrelid, indrelid, indcollation, indclass) from pg_catalog.pg_index
from pg_catalog.pg_indexes
from information_schema.constraint_table_usage order by all
from information_schema.constraint_column_usage order by all
select enumsortorder, enumlabel from pg_enum order by 1
select e.enumlabel from pg_type t join pg_enum e on t.oid = e.enumtypid where t.typname = 'mood' order by enumsortorder
"""


@pytest.mark.parametrize("query", OF_INDEXES.strip().splitlines())
def test_indexes_constraints_and_enums_are_asked_as_in_duckdb(query, backend) -> None:
    assert_same_as_duckdb(query, setup=INDEXED, backend=backend)


@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_the_catalog_is_asked_as_in_duckdb(query, backend) -> None:
    assert_same_as_duckdb(query, setup=SETUP, backend=backend)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("pragma table_info('t')", 6),
        ("pragma table_info(k)", 3),
        ("pragma show('t')", 6),
        ("show tables", 3),
        ("show databases", 1),
        ("show schemas", 1),
        ("summarize t", 6),
    ],
)
def test_statements_answer_what_queries_do(text, rows) -> None:
    with fuseline.connect("cpu") as connection:
        for statement in SETUP:
            connection.execute(statement)
        assert len(connection.sql(text).fetchall()) == rows


def test_a_repeated_text_and_a_kept_frame_see_the_catalog_of_now() -> None:
    with fuseline.connect("cpu") as connection:
        text = "select table_name from information_schema.tables order by all"
        described = "select count(*) from (describe t)"
        connection.execute("create table t as select 1 as a")
        frame = connection.sql(text)
        assert frame.fetchall() == connection.sql(text).fetchall() == [("t",)]
        assert connection.sql(described).fetchall() == [(1,)]
        connection.execute(
            "create or replace table t as select 1 as a, 2 as b; create view v as from t"
        )
        assert frame.fetchall() == connection.sql(text).fetchall() == [("t",), ("v",)]
        assert connection.sql(described).fetchall() == [(2,)]


def test_a_setting_shows_its_value() -> None:
    with fuseline.connect("cpu", threads=3) as connection:
        text = "select value, input_type from duckdb_settings() where name = 'threads'"
        assert connection.sql(text).fetchall() == [("3", "BIGINT")]
        connection.execute("set threads = 2")
        assert connection.sql(text).fetchall() == [("2", "BIGINT")]
        assert connection.sql(
            "select count(*) from duckdb_settings() where description is null"
        ).fetchall() == [(0,)]


def test_views_of_the_catalog_and_views_without_tables_do_no_harm() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t (a int); create view gone as from t; drop table t")
        connection.execute(
            'create view tables as from information_schema.tables; create view "columns" as from information_schema.columns'
        )
        found = connection.sql(
            "select table_name, count(*) from information_schema.columns group by all order by all"
        )
        assert found.fetchall() == [("columns", 45), ("tables", 13)]
        assert connection.sql("select count(*) from tables").fetchall() == [(3,)]


def test_macros_and_variables_are_listed() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create macro twice(x) as x * 2; set variable day = date '2024-01-02'")
        text = "select function_type, macro_definition from duckdb_functions() where function_name = 'twice'"
        assert connection.sql(text).fetchall() == [("macro", "x * 2")]
        assert connection.sql("from duckdb_variables()").fetchall() == [
            ("day", "2024-01-02", "DATE")
        ]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("from information_schema.tabels", 'no table "information_schema.tabels"', "tabels"),
        ("from duckdb_tables(1)", "takes no arguments", "duckdb_tables"),
        ("from pragma_table_info('tt')", 'no table or view "tt"', "pragma_table_info('tt'"),
        ("from pragma_table_info()", "takes the name of a table", "pragma_table_info"),
        ("pragma table_info('tt')", 'no table or view "tt"', None),
        ("from (describe tt)", 'no table "tt"', "tt"),
        ("from (show tt)", 'no table "tt"', "tt"),
        ("summarize tt", 'no table "tt"', "tt"),
        ("summarize select z from t", 'no column "z"', "z"),
        ("show all columns", "SHOW takes TABLES", "show all columns"),
        ("select (summarize t)", None, None),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text, message, place) -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t (a int)")
        with pytest.raises(FuselineError, match=message) as caught:
            connection.sql(text).fetchall()
        if place is not None:
            span = caught.value.span
            assert span is not None
            assert text[span.start : span.end].startswith(place)
