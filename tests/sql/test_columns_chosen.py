"""COLUMNS(...), `* LIKE`, and `*COLUMNS(...)` among arguments."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLES = {
    "t": {
        "id": [1, 2, 3, 4],
        "x1": [10, 20, None, 40],
        "x2": [1.5, 2.5, 3.5, None],
        "name": ["Ann", "bob", "BOB", "Zoë"],
        "A b": [7, 7, 8, 8],
    },
    "u": {"id": [1, 2], "v": [7, 8]},
}
QUERIES = r"""
select columns('x.*'), columns(['name', 'ID']), columns(*) from t
select columns(lambda c: upper(c) like 'X%' or length(c) = 4) from t
select columns(lambda c: c = 'id'), columns('i' || 'd') from t
select min(columns('x.*')), round(max(columns('x.*'))) as top, count(columns(*)) from t
select columns('x.*') + columns('x.*'), columns('x.*')::varchar as s, columns('A') from t
select case when columns('x.*') > 2 then columns('x.*') end, columns('x.*') is null from t
select columns('(x)(\d)') as '\2_\1', columns(* exclude (id)) as 'the \0\\' from t
select columns(* replace (id + 100 as id)) from (select id, x1 from t)
select columns(t.*), columns(* rename (v as w)) from t join u using (id)
select columns('id') + 1 from t join u on t.id = u.id
select columns('id') as n from t join u using (id) order by n
select id from t where columns('x.*') > 1 and columns('x.*') < 15
select id from t where columns(*) is not null
select id from t order by columns(['x1', 'x2']) desc, id
select distinct on (columns('A.*')) id from t order by "A b", id
select columns('x.*'), count(*) from t group by all order by all
select sum(columns(['x1', 'id'])) over (order by id) from t
select coalesce(*columns('x.*')), greatest(*columns('x.*'), 1) + 1 from (from t)
select coalesce(*columns('[xi].*'), 7) as c, [*columns('x.*')] as l from t
select coalesce(*columns('A.*')), coalesce(*columns(lambda c: c in ('x1', 'id'))) from t a
select id from t where coalesce(*columns('x.*')) > 5
select (select max(columns('v')) from u) as m, columns('id') from t
select * like 'x%', * not like '%x%' from t
select * ilike 'X%' as 'a_\0', * not ilike 'X%', * exclude (x1) similar to 'x.*' from t
select t.* like 'x%', * exclude (id) not similar to 'x.' from t
select * similar to '(x)(\d)' as '\2_\1' from t
select s.* replace (s.a + 10 as a), s.* exclude (b) rename (a as c), s.* like 'b' from (select {'a': id, 'b': name} as s from t)
select columns('x.*') from t union all select 1, 2 order by columns('x.*')
select columns([c for c in * if c like 'x%']), columns([upper(c) for c in (*) if c <> 'name']) from t
select columns([c for c, i in * exclude (name) if i > 1]) + 1, min(columns([c for c in t.* if c <> 'name'])) from t group by all
select columns(list_filter(*, lambda c: c = 'id')), columns([c || '' for c in ['id', 'x1']]) from t
select columns(list_transform(['ID'], lambda c: c)), [*columns([c for c in * if c <> 'name'])] as l from t
select columns, 'a' as columns from (select 1 as columns)
with q as (select columns('x.*') from t) select q.columns from (select 1 as columns) q
"""


@pytest.fixture(scope="module")
def connection() -> fuseline.Connection:
    import pyarrow as pa

    made = fuseline.connect(device="cpu")
    for name, table in TABLES.items():
        made.register(name, pa.table(table))
    return made


@pytest.mark.parametrize("query", [q for q in QUERIES.splitlines() if q])
def test_columns_are_written_out(query: str, connection: fuseline.Connection) -> None:
    assert_same_as_duckdb(query, TABLES, connection=connection)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select columns('nix') from t", "chooses no column: there are id, x1"),
        ("select * like 'nix%' from t", "chooses no column"),
        ("select columns(['id', 'nix']) from t", 'no column "nix"'),
        ("select columns('x.*') + columns('i.*') from t", "have to be the same"),
        ("select columns(1) from t", "a list of names or a lambda"),
        ("select columns([]) from t", "COLUMNS"),
        ("select columns(id) from t", "id"),
        ("select columns([c for c in * if false]) from t", "has no names"),
        ("select columns([c || 'z' for c in *]) from t", "no column"),
        ("select [c for c in *] from t", "no place in SELECT"),
        ("select columns('(') from t", "missing"),
        ("select 1 + *columns('x.*') from t", "columns"),
        ("select x1 in (*columns('x.*')) from t", "columns"),
        ("select sum(id) from t group by columns('id')", "not supported in GROUP BY"),
        ("select id from t group by id having min(columns('x.*')) > 1", "not supported in"),
        ("select t.id from t join u on columns('i.*') = 1", "not supported in a join condition"),
        ("select columns(* replace (1 as id)) + 1 from t", "in a subquery"),
        ("select count(*) filter (columns('x.*') > 1) from t", "not supported in FILTER"),
        ("select columns('x.*') as '\\x' from t", "backslash"),
        ("select columns(['x1']) as 'z\\1' from t", "regular expression"),
        ("select * like name from t", "constant"),
        ("select * exclude (id, ID) from t", "stands twice in EXCLUDE"),
        ("select * exclude (id) rename (id as n) from t", "EXCLUDE and in RENAME"),
        ("select * exclude (id) replace (1 as ID) from t", "EXCLUDE and in REPLACE"),
        ("select * exclude (t.id, id) from t", "stands twice in EXCLUDE"),
        ("select * exclude (id, t.id) from t", "stands twice in EXCLUDE"),
        ("select * replace (1 as id) rename (id as n) from t", "REPLACE and in RENAME"),
        ("select * exclude (id, v) from u", "leaves no column"),
        ("select * replace (1 as id) like 'i%' from t", "takes no pattern"),
        ("select t.* rename (id as n) similar to 'i.' from t", "takes no pattern"),
        ("select columns(columns('x.*')) from t", "columns"),
    ],
)
def test_columns_are_refused_at_their_place(
    query: str, said: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(FuselineError, match="(?i)" + said.replace("(", r"\(")) as refused:
        connection.sql(query)
    assert refused.value.span is not None
