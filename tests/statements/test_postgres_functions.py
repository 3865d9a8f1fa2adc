"""What tools that know PostgreSQL ask: pg_type and pg_attribute with its numbers of types, privileges, descriptions."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

SETUP = [
    "create table z(b bool, s smallint, q bigint, n decimal(9, 2), v varchar, l int[], t timestamp, u uuid, i interval)",
    "create table pk(id int primary key, v int check (v > 0))",
    "create view seen as select b from z",
    "create type mood as enum ('sad', 'ok')",
    "create type whole as integer",
]
QUERIES = """
select has_table_privilege('z', 'select'), has_table_privilege('u', 'z', 'select'), has_schema_privilege('main', 'usage'), has_column_privilege('u', 'z', 'b', 'select'), pg_has_role('a', 'b')
select inet_server_addr(), inet_client_port(), pg_postmaster_start_time() is null, pg_get_expr('x', 1), pg_my_temp_schema(), pg_is_other_temp_schema(1)
select format_type(23, -1), format_type(1700, 10002), format_type(1043, -1), format_type(99, 1), format_type(null, 1)
select relname, pg_table_is_visible(oid), obj_description(oid, 'pg_class') from pg_class where relname = 'z'
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = (select oid from pg_class where relname = 'z') order by attnum
select attname, atttypid from pg_attribute where attname <> 'l' and attrelid = (select oid from pg_class where relname = 'z') order by attnum
select a.attname, t.typname from pg_attribute a join pg_type t on t.oid = a.atttypid where a.attname <> 'l' and a.attrelid = (select oid from pg_class where relname = 'z') order by attnum
select oid, typname from pg_type where oid < 3000 and typname <> 'timetz' order by oid
select conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint order by 1
select pg_get_viewdef(oid) is not null, col_description(oid, 1), shobj_description(oid, 'pg_class') from pg_class where relname = 'seen'
select t.typname, e.enumlabel from pg_type t join pg_enum e on t.oid = e.enumtypid where t.typname = 'mood' order by enumsortorder
select distinct type_name, type_size, logical_type, type_category from duckdb_types() where type_name in ('dec', 'list', 'map', 'row', 'struct', 'array', 'enum', 'numeric') order by all
select b, row_number(order by b desc) over (order by b), cume_dist(order by s) over (order by b) from z
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query(query: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP)
