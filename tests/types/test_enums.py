"""ENUM: texts with an order of their own, held as narrow integers: CREATE TYPE, tables, keys of any operator, results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import (
    CatalogError,
    ConversionError,
    DeviceError,
    FuselineError,
    InvalidQuery,
    ParseError,
    TypeMismatch,
    UnknownName,
    Unsupported,
)
from tests.compare import (
    assert_same_as_duckdb,
    connected,
    difference,
    duckdb_answer,
    fuseline_answer,
    ordering,
)
from tests.limits import SetLimits

SEED = 7
SETUP = [
    "create type mood as enum ('sad', 'ok', 'happy', 'it''s', '')",
    "create type wide as enum (select 'l' || range from range(300))",
    "create table t (i integer, m mood, e enum('ok', 'b', 'sad'), w wide, s varchar)",
]


def _rows(count: int) -> str:
    """Random values, extremes and NULLs among them."""
    source = random.Random(SEED)
    quoted = [
        ["'sad'", "'ok'", "'happy'", "'it''s'", "''", "null"],
        ["'ok'", "'b'", "'sad'", "null"],
        ["'l0'", "'l299'", "'l255'", "'l256'", "null"],
        ["'ok'", "'zz'", "'sad'", "null"],
    ]
    rows = [", ".join([str(i), *map(source.choice, quoted)]) for i in range(count)]
    return f"insert into t values ({'), ('.join(rows)})"


FILLED = {
    "some": [*SETUP, _rows(40)],
    "none": SETUP,
    "nulls": [*SETUP, "insert into t (i) values (1), (2)"],
}
QUERIES = [
    "select * from t",
    "select m, count(*), min(e), max(e), sum(i) from t group by m order by m desc nulls first",
    "select m, e, w, count(*) from t where m = 'ok' or m in ('sad', 'nope') or e <> 'b' group by m, e, w",
    "select i from t where m > 'ok' or w between 'l1' and 'l3'",
    "select i, m > 'ok'::mood, m = e, m < e, m = s, m is distinct from 'sad', m = 'nope', m not in ('sad', null) from t",
    "select x.i, y.i from t x join t y on x.m = y.m and x.i < y.i",
    "select x.i, y.i from t x left join t y on x.m = y.e",
    "select x.i, y.i from t x join t y on x.m = y.s",
    "select distinct m, e from t",
    "select m from t where m in (select m from t where i > 20) and m not in (select m from t where i = 4 and m is not null)",
    "select min(m), max(m), count(distinct m), arg_min(m, i), arg_max(i, w), quantile_disc(m, 0.5), string_agg(m, ',' order by i) from t",
    "select list(m order by m, i), any_value(m), first(w order by i), last(w order by i) from t",
    "select i, rank() over (order by m), lag(m) over (order by i), max(m) over (order by i rows 1 preceding) from t",
    "select m::varchar, m || 'x', upper(m), length(m), m like 's%', concat(m, 'x'), md5(m), m::blob, typeof(m) from t",
    "select enum_code(m), enum_code(w), enum_first(m), enum_last(m), enum_range(m), enum_range_boundary(m, 'happy'::mood) from t",
    "select enum_range_boundary(null, 'ok'::mood), enum_range_boundary('ok'::mood, null), enum_range_boundary('ok'::mood, 'sad'::mood), "
    "enum_range_boundary(null::mood, null::mood), enum_first(null::mood), enum_range(null::enum('a')), enum_code(null::wide)",
    "select coalesce(m, 'x'), typeof(coalesce(m, 'ok')), case when i > 3 then m else 'sad' end, nullif(m, 'ok'), greatest(m, e), m is null from t",
    "select case when i > 3 then m end c, typeof(c), coalesce(m, null), typeof([m, 'ok']) from t",
    "select [m], {'k': m}, [m]::varchar, {'k': m}::varchar, [[e]] from t",
    "select [m, null] x, count(*) from t group by x order by x",
    "select m from t union select 'x' union select e from t",
    "select m from t except all select m from t where i > 3",
    "select m::enum('happy', 'sad', 'ok', 'it''s', '') x, try_cast(m as enum('ok')), try_cast(s as mood), try_cast(m as integer) from t order by x, i",
    "select to_json(m), m::json, json_array(m, e), json_object('k', m), to_json({'k': e}), [m]::json, map {i: m}::json, json_type(to_json(m)), i from t order by i",
    "select json_group_array(m), json_group_object(i, e) from (select * from t order by i)",
    "select unnest([m]), i from t order by all",
    "select 'b'::enum('a', 'b') = 'b'::enum('b', 'a'), cast('ok' as MOOD), 'ok'::main.mood as q, null::mood, ['ok']::mood[], {'a': 'ok'}::struct(a mood)",
    "select '1'::enum('1', '2')::int, typeof(x) from (values (1, 'ok'::mood), (2, null)) v(i, x)",
    "select typeof(x), x from (values (1, 'ok'::mood), (2, 'sad')) v(i, x)",
    "select * from (select i, m from t) pivot (count(*) for m in ('sad', 'ok')) order by all",
    "select type_name, type_size, logical_type, internal, len(labels), labels[2] from duckdb_types() where not internal order by 1",
    "select column_name, column_type from (describe t)",
]  # fmt: skip


@pytest.fixture(scope="module", params=FILLED)
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Any, list[Any]]]:
    """DuckDB, and two ways of running here, after the same statements."""
    ways = ("never", "always") if request.param == "some" else ("auto",)
    with ExitStack() as stack:
        duck = stack.enter_context(duckdb.connect(config={"threads": 1}))
        ours = [stack.enter_context(fuseline.connect("cpu", fuse=way)) for way in ways]
        for statement in FILLED[request.param]:
            for connection in (duck, *ours):
                connection.execute(statement)
        yield duck, ours


@pytest.mark.by_day
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str, both: tuple[Any, list[Any]]) -> None:
    duck, ours = both
    expected = duckdb_answer(duck, query)
    for connection in ours:
        order = ordering(query, expected.column_names)
        assert difference(expected, fuseline_answer(connection, query), order) is None


def test_kernels_group_and_filter_codes() -> None:
    with connected(fuse="always") as connection:
        for statement in FILLED["some"]:
            connection.execute(statement)
        query = "select m, count(*) from t where m in ('sad', 'ok') or e = 'b' group by m"
        shown = connection.sql(query).explain()
        assert "Pipeline" in shown
        assert "m in ('sad', 'ok') or e = 'b'" in shown
        assert connection.sql(query).fetchall()
        encodings = (
            "select distinct encoding from fuseline_columns() where column_name in ('m', 'e')"
        )
        assert connection.sql(encodings).fetchall() == [("narrow base=0 step=1 width=1",)]


def test_types_and_their_names() -> None:
    setup = [
        "create type a as integer",
        "create type mood as enum ('x', 'y')",
        "create or replace type mood as enum ('y', 'x')",
        "create type if not exists mood as enum ('z')",
        "create type l as mood[]",
        "create type \"My s\" as struct(a mood, b a)",
        "create type q as enum (select x from (values ('b'), (null), ('a')) v(x) order by x)",
        "create table u (a a default 3, l l, s \"My s\", q q default 'b' check (q <> 'a'))",
        "drop type if exists nope",
        "create type gone as integer",
        "drop type gone",
        "create macro f(x) as x::mood",
        "begin",
        "create type taken_back as integer",
        "rollback",
        "insert into u (l, s) values (['x', 'y'], {'a': 'x', 'b': 1})",
        "alter table u add column m mood default 'x'",
        "update u set m = 'y' where q = 'b'",
    ]  # fmt: skip
    for query in (
        "select *, f('x'), typeof(a), typeof(l), typeof(s), typeof(q) from u",
        "select type_name from duckdb_types() where not internal order by 1",
        "describe u",
    ):
        assert_same_as_duckdb(query, setup=setup, backend="cpu")


def test_tables_that_change() -> None:
    setup = [
        *FILLED["some"],
        "update t set m = 'sad' where m = 'ok'",
        "delete from t where e = 'b'",
        "insert into t (m, e) select e, m from t where e in ('ok', 'sad') and m in ('sad', 'ok')",
        "alter table t alter w type varchar",
        "create table k (m mood primary key, n integer)",
        "insert into k select m, count(*) from t where m is not null group by m",
        "insert into k values ('happy', 1) on conflict do update set n = 100",
    ]
    for query in ("select * from t", "select * from k"):
        assert_same_as_duckdb(query, setup=setup, backend="cpu")


def test_files(tmp_path: Path) -> None:
    with connected() as connection:
        for statement in FILLED["some"]:
            connection.execute(statement)
        for form in ("parquet", "csv", "json", "arrow"):
            path = tmp_path / f"t.{form}"
            connection.execute(f"copy (select i, e, w from t) to '{path}'")
            connection.execute(
                "create or replace table back (i int, e enum('ok', 'b', 'sad'), w wide)"
            )
            connection.execute(f"copy back from '{path}'")
            assert connection.sql("from t select i, e, w except from back").count() == 0
        types = duckdb.sql(f"select typeof(e) from '{tmp_path / 't.parquet'}' limit 1").fetchall()
        assert types == [("VARCHAR",)]


def test_python_values() -> None:
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["b", "a", None, "b"], categories=["b", "a", "z"]),
            "o": pd.Categorical(["x", "y", "x", "x"], ordered=True),
            "n": pd.Categorical([1, 2, 1, 1]),
        }
    )
    query = "select c, o, typeof(c), typeof(o), [c] as l, {'k': c} as s from f order by c, o"
    with connected() as connection, duckdb.connect() as duck:
        connection.register("f", frame)
        duck.register("f", frame)
        found, expected = connection.sql(query), duck.sql(query)
        assert found.fetchall() == expected.fetchall()
        assert found.to_arrow().equals(expected.to_arrow_table())
        assert list(found.to_pandas().dtypes) == list(expected.df().dtypes)
        assert found.to_polars().schema == expected.pl().schema
        connection.register("none", frame[:0])
        assert connection.sql("select c from none").fetchall() == []
        assert [str(t) for t in connection.sql("from none").schema.values()][:1] == [
            "ENUM('b', 'a', 'z')"
        ]
        connection.execute("create table kept as select c from f; insert into kept values ('z')")
        assert connection.execute("select c from kept where c = ?", ["z"]).fetchall() == [("z",)]
        returned = connection.execute("insert into kept values ('a') returning c")
        assert returned.description[0][1] == "ENUM('b', 'a', 'z')"
        connection.execute("set variable v = 'a'::enum('b', 'a')")
        assert connection.sql("select getvariable('v'), typeof(getvariable('v'))").fetchall() == [
            ("a", "ENUM('b', 'a')")
        ]


def test_rows_on_disk(tmp_path: Path, limits: SetLimits) -> None:
    rows = pa.table({"i": range(30_000)})
    query = "select count(*), max(x.m), sum(y.i) from v x join v y on x.i = y.i and x.m = y.m"
    setup = [
        "create type mood as enum ('2', '1', '0')",
        "create view v as select i, (i % 3)::varchar::mood as m from t",
    ]
    with connected(
        {"t": rows}, memory_limit=500_000, spill_dir=tmp_path, fuse="never"
    ) as connection:
        for statement in setup:
            connection.execute(statement)
        assert connection.sql(query).fetchall() == [(30_000, "0", 449_985_000)]
        assert "spilled" in str(connection.sql(query).explain("analyze"))


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("select 'x'::mood", ConversionError, "'x' cannot be read as ENUM"),
        ("select s::mood from t", ConversionError, "Could not convert string 'zz' to ENUM"),
        ("select m::enum('sad') from t", ConversionError, "to ENUM"),
        ("update t set m = 'foo'", ConversionError, "'foo' cannot be read as ENUM"),
        ("select 1::mood", TypeMismatch, "INTEGER cannot be cast to ENUM"),
        ("select m::int from t", ConversionError, "to INTEGER"),
        ("select m = 1 from t", TypeMismatch, "cannot be compared"),
        ("select sum(m) from t", TypeMismatch, "does not take"),
        ("select m + 1 from t", TypeMismatch, "does not take"),
        ("select enum_first('x')", TypeMismatch, "values of one ENUM"),
        ("select enum_range(null)", TypeMismatch, "values of one ENUM"),
        ("select enum_code('x')", TypeMismatch, "does not take"),
        ("select enum_range_boundary('ok'::mood, 'l1'::wide)", TypeMismatch, "of one ENUM"),
        ("select 'a'::enum('a', 'a')", TypeMismatch, "'a' stands twice"),
        ("select 'a'::enum('a', null)", ParseError, "are texts"),
        ("create type mood as enum ('a')", CatalogError, "already"),
        ("create type integer as enum ('a')", InvalidQuery, "built in"),
        ("create type x as enum (select 1, 2)", InvalidQuery, "one column, and the query has 2"),
        ("create type x as nope", UnknownName, 'no type "nope"'),
        ("create type x as integer from t", FuselineError, "Syntax error"),
        ("create type x as 3", ParseError, "Syntax error"),
        ("drop type nope", UnknownName, 'no type "nope"'),
        ("drop type mood cascade", Unsupported, "drop the tables"),
        ("drop type", ParseError, "DROP TYPE name"),
    ],
)
def test_refusals(query: str, error: type[FuselineError], message: str) -> None:
    with connected() as connection:
        for statement in FILLED["some"]:
            connection.execute(statement)
        with pytest.raises(error, match=message):
            connection.execute(query).fetchall()
        assert connection.sql("select count(*) from t").fetchall() == [(40,)]


@pytest.mark.gpu
def test_a_gpu_refuses_them() -> None:
    with fuseline.connect("gpu", require_gpu=True) as connection:
        connection.execute(SETUP[0])
        with pytest.raises(DeviceError, match="the GPU has no ENUM columns"):
            connection.sql("select range, 'ok'::mood from range(3)").fetchall()
