"""JSON as the type of columns: in tables, Parquet, Arrow, results and parameters, and as a key of operators, fused and not."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import ConversionError
from tests.compare import assert_same_as_duckdb

DOCUMENTS = [
    '{"a":1,"b":[1,2,{"c":"x"}]}', '{"a":2}', "[1,2,3]", None, '"text"', "null",
    '{"a":1,"b":[1,2,{"c":"x"}]}', "1.5", '{"b":null}',
]  # fmt: skip
PATHS = ["$.a", "a", "$[0]", "/a", None, "$", "b", "$.b[1]", "$.b"]
TEXTS = {"t": {"id": list(range(9)), "d": DOCUMENTS, "p": PATHS}}
COLUMN = pa.table({"id": list(range(9)), "j": pa.array(DOCUMENTS, pa.string()).cast(pa.json_())})
BOTH = ("never", "always")


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        "select id, d::json as j, d -> 'a', d ->> 'b', d -> '$.b[*]', json_type(d), json_keys(d) from t",
        "select d::json as j, count(*), min(id) from t group by 1 order by 1",
        "select distinct d::json as j from t order by j desc",
        "select a.id, b.id from t a join t b on a.d::json = b.d::json order by all",
        "select id, d -> p from t",
        "select id from t where d ->> 'a' = '1' order by id",
        "select d ->> 'a' as a, count(*) from t group by 1 order by 1",
        "select sum((d ->> 'a')::double) from t",
        "select max(d::json), min(d::json) from t",
        """select id, json_transform(d, '{"a":"INTEGER","b":["JSON"]}') from t order by id""",
        "select t.id, e.* from t, json_tree(d) e order by t.id, e.id",
        "select id, row_number() over (partition by d::json order by id) from t",
        "select id, json_array(id, d::json, d), json_object('d', d::json) from t",
        "select json_group_array(d::json), json_group_object(id, d) from t",
    ],
)
def test_texts_as_json(query: str) -> None:
    assert_same_as_duckdb(query, TEXTS, fuse=BOTH)


@pytest.mark.parametrize("source", ["arrow", "parquet"])
@pytest.mark.parametrize(
    "query",
    [
        "select * from t",
        "select typeof(j) from t limit 1",
        "describe t",
        "select j, count(*) from t group by j order by j",
        "select j.a, j ->> 'b' from t order by id",
        "select j from t order by j limit 3",
        """select * from t where j = '{"a":2}'""",
        "select [j], {'x': j} from t",
    ],
)
def test_columns_of_json(query: str, source: str, tmp_path: Path) -> None:
    tables: dict[str, object] = {"t": COLUMN}
    if source == "parquet":
        pq.write_table(COLUMN, tmp_path / "t.parquet")
        tables = {"t": str(tmp_path / "t.parquet")}
    assert_same_as_duckdb(query, tables, fuse=BOTH)


@pytest.mark.parametrize(
    ("setup", "query"),
    [
        (
            ["create table s (j json, i int)", """insert into s values ('{"a":1}', 1), ('[1]', 2), (null, 3)"""],
            "select *, typeof(j) from s",
        ),
        (["create table s as select '1'::json as j, ['1'::json] as l"], "describe s"),
        (
            ["create table s as select '1'::json as j, ['1'::json] as l", "insert into s values ('2', ['3'])"],
            "select j, l, typeof(l) from s",
        ),
        (
            ["create table s (j json default '{}', i int)", "insert into s (i) values (1)",
             "update s set j = json_set(j, '$.x', '5')"],
            "select * from s",
        ),
        (
            ["create table s (j json primary key)", "insert into s values ('1')",
             "insert or ignore into s values ('1'), ('2')"],
            "select * from s",
        ),
        (["create view v as select '[1]'::json as j"], "select j -> 0 from v"),
        (
            ["create table s (v varchar)", """insert into s values ('{"a":1}')""", "alter table s alter v type json"],
            "select v, typeof(v) from s",
        ),
        (["create macro f(x) as x ->> 'a'"], """select f('{"a":5}')"""),
        (["prepare p as select ?::json -> 'a'"], """execute p('{"a":3}')"""),
        (
            [],
            "with recursive r as (select '1'::json as j, 1 as n union all select to_json(n + 1), n + 1 from r where n < 3) from r",
        ),
    ],
)  # fmt: skip
def test_tables_of_json(setup: list[str], query: str) -> None:
    assert_same_as_duckdb(query, setup=setup)


@pytest.mark.parametrize("value", [
    "0.5::decimal(1,1)", "0.00000000000000000001::decimal(20,20)", "-1e-38::decimal(38,38)", "1.50::decimal(5,2)", "1e20", "'nan'::double",
    "[1, 2]", "{'a': 'x'}", "[0.5::decimal(1,1)]", """json '{"a" : 1}'""", """json '"x"'""", "date '2020-01-01'", "true", """'x"y'""",
])  # fmt: skip
def test_a_value_is_json_and_a_key_is_text(value: str) -> None:
    assert_same_as_duckdb(f"select to_json(map {{{value}: {value}}}), to_json([{value}])")


def test_parameters_are_json() -> None:
    assert_same_as_duckdb("select ?::json, ? -> 'a'", params=['{"a": 1}', '{"a":[1]}'])
    assert_same_as_duckdb("select json_extract(?, ?)", params=['{"a":1}', "$.a"])


def test_results_are_text() -> None:
    frame = fuseline.connect(device="cpu").sql("""select '{"a": 1}'::json as j, ['1'::json] as l""")
    assert frame.fetchall() == [('{"a": 1}', ["1"])]
    assert frame.to_arrow().schema.types[0] == pa.string()


def test_parquet_files_say_that_text_is_json(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    query = (
        """select '{"a":1}'::json as j, ['1'::json, null] as l, {'x': '2'::json} as s, 'v' as v"""
    )
    connection = fuseline.connect(device="cpu")
    connection.execute(f"copy ({query}) to '{path}'")
    types = ["JSON", "JSON[]", "STRUCT(x JSON)", "VARCHAR"]
    assert [str(t) for t in duckdb.sql(f"from '{path}'").types] == types
    assert_same_as_duckdb("from t", {"t": str(path)}, fuse=BOTH)
    assert [row[1] for row in connection.sql(f"describe from '{path}'").fetchall()] == types


def test_json_files_have_json_as_it_is(tmp_path: Path) -> None:
    query = """select '{"a": 1.50}'::json as j, 'x' as v, ['[1, 2]'::json] as l, {'d': date '2020-01-01'} as s, null::json as n"""
    written = {}
    for name, engine in (("ours", fuseline.connect(device="cpu")), ("theirs", duckdb.connect())):
        engine.execute(f"copy ({query}) to '{tmp_path / name}.json'")
        written[name] = (tmp_path / f"{name}.json").read_text()
    assert written["ours"] == written["theirs"]


def test_text_that_is_no_json_fails_where_a_row_has_it() -> None:
    connection = fuseline.connect(device="cpu")
    connection.execute("create table s (j json)")
    with pytest.raises(ConversionError, match="Malformed JSON at byte 0"):
        connection.execute("insert into s values ('nope')")
    assert connection.sql("select count(*) from s").fetchall() == [(0,)]


def test_a_gpu_leaves_json_to_the_cpu() -> None:
    plan = fuseline.connect(device="cpu").sql("select '1'::json -> 0 from range(2)").explain()
    assert "json_extract" in plan
