"""DuckDB's expressions, types, errors and functions of the module: the same steps with the import changed."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pandas as pd
import pytest

import fuseline
from fuseline.errors import (
    FileError,
    InterfaceError,
    TypeMismatch,
    UnknownColumn,
    Unsupported,
    WrongArguments,
)

ROWS = """create table t as select * from (values
    (1, 'one', 1.5, 1.25::decimal(9, 2), date '2024-01-01'), (2, 'two', 2.5, 2.50, null), (3, null, null, null, null),
    (4, 'one', 4.5, 4.00, date '2024-03-01')) v(i, s, d, n, day)"""
STEPS: list[Callable[[Any, Any], Any]] = [
    lambda m, r: r.filter(m.ColumnExpression("i") > m.ConstantExpression(2)).fetchall(),
    lambda m, r: r.filter(m.ColumnExpression("s").isnull()).fetchall(),
    lambda m, r: r.filter(m.ColumnExpression("s").isnotnull()).fetchall(),
    lambda m, r: r.filter(m.ColumnExpression("i").isin(1, 4)).fetchall(),
    lambda m, r: r.filter(m.ColumnExpression("s").isnotin("one", "three")).fetchall(),
    lambda m, r: r.select(m.StarExpression(exclude=["d", "n"])).fetchall(),
    lambda m, r: r.select(m.star()).columns,
    lambda m, r: r.select(m.FunctionExpression("upper", m.ColumnExpression("s"))).columns,
    lambda m, r: r.select(m.FunctionExpression("concat", m.ColumnExpression("s"), "d")).fetchall(),
    lambda m, r: r.select(m.CoalesceOperator(m.ColumnExpression("s"), "none")).fetchall(),
    lambda m, r: r.select(m.CaseExpression(m.ColumnExpression("i") > 2, "s").otherwise(None)).fetchall(),
    lambda m, r: r.select(
        m.CaseExpression(m.ColumnExpression("i") > 2, 1).when(m.ColumnExpression("i") > 1, 2).alias("k")
    ).fetchall(),
    lambda m, r: r.select(m.SQLExpression("i * 2 + d").alias("k"), m.SQLExpression("upper(s)")).fetchall(),
    lambda m, r: r.filter(m.SQLExpression("i > 2 and d is not null")).fetchall(),
    lambda m, r: r.filter("i > 1").select(m.SQLExpression("i + 1")).fetchall(),
    lambda m, r: r.project(m.ColumnExpression("i"), m.ColumnExpression("s")).fetchall(),
    lambda m, r: r.order(m.ColumnExpression("i").desc()).fetchall(),
    lambda m, r: r.select(m.ColumnExpression("i").cast(m.sqltypes.VARCHAR)).fetchall(),
    lambda m, r: r.aggregate([m.FunctionExpression("sum", m.ColumnExpression("i")).alias("q")], "s").order("q").fetchall(),
    lambda m, r: r.aggregate([m.ColumnExpression("s"), m.FunctionExpression("max", m.ColumnExpression("i"))]).order("s").fetchall(),
    lambda m, r: r.aggregate([m.FunctionExpression("sum", m.ColumnExpression("i"))]).fetchall(),
    lambda m, r: r.select_types(["INTEGER", "DATE"]).columns + r.select_dtypes(["DECIMAL(9,2)"]).columns,
    lambda m, r: r.order("i").offset(2).fetchall() + r.std("d").fetchall() + r.var("d").fetchall(),
    lambda m, r: r.n_tile("over (order by i)", 2, "i").order("i").fetchall(),
    lambda m, r: [r.alias, r.set_alias("z").alias, r.set_alias("z").filter("z.i > 3").fetchall()],
    lambda m, r: r.set_alias("z").filter("z.i > 2").project("z.i").order("z.i").fetchall(),
    lambda m, r: r.set_alias("a").join(r.set_alias("b"), "a.i = b.i + 1").columns,
    lambda m, r: r.set_alias("a").join(r.project("i + 1 as j").set_alias("b"), "a.i = b.j", "left").order("i, j").fetchall(),
    lambda m, r: r.set_alias("a").join(r.project("i + 1 as j").set_alias("b"), condition="a.i = b.j", how="semi").order("i").fetchall(),
    lambda m, r: r.join(r.project("i, d as e").set_alias("b"), condition="i", how="left").order("i").fetchall(),
    lambda m, r: r.project("i").cross(r.project("s, i as k")).order("i, k").fetchall(),
    lambda m, r: r.apply("sum", "i, d", "s", projected_columns="s").order("s").fetchall() + r.apply("max", "i").columns,
    lambda m, r: r.apply("quantile_cont", "d", function_parameter="0.5").fetchall(),
    lambda m, r: r.project("i").map(lambda rows: rows + 1, schema={"i": "INTEGER"}).order("i").fetchall(),
    lambda m, r: r.project("i").map(lambda rows: rows.assign(k=rows.i > 2)).order("i").fetchall(),
    lambda m, r: r.order("i").materialize().fetchall() + [tuple(row) for row in r.order("i").iter_rows()],
    lambda m, r: [str(t) for t in (m.list_type("INTEGER"), m.map_type("INTEGER", "VARCHAR"), m.array_type("DOUBLE", 3))],
    lambda m, r: [str(t) for t in (m.struct_type({"a": "INTEGER", "b c": "DATE"}), m.decimal_type(9, 2), m.dtype("BIGINT"))],
    lambda m, r: [str(m.type("STRUCT(a INTEGER)")), str(m.type("VARCHAR[]")), str(m.sqltypes.TIMESTAMP_TZ)],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")  # DuckDB's: a text may be meant as a column
@pytest.mark.parametrize("step", STEPS)
def test_a_step_gives_the_same(step: Callable[[Any, Any], Any]) -> None:
    found = []
    for module in (fuseline, duckdb):
        with module.connect() as connection:
            connection.execute(ROWS)
            found.append(step(module, connection.table("t")))
    assert found[0] == found[1]


def of_module(m: Any) -> list[Any]:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})
    connection = m.connect()
    found = [
        m.filter(frame, "a > 1").fetchall(),
        m.project(frame, "a * 2 as k").fetchall(),
        m.aggregate(frame, "sum(a)").fetchall(),
        m.order(frame, "a desc").fetchall(),
        m.limit(frame, 1).fetchall(),
        m.distinct(frame).order("a").fetchall(),
        m.alias(frame, "z").alias,
        m.query_df(frame, "v", "select count(*) from v").fetchall(),
        m.values([1, 2, 3]).fetchall(),
        m.values((1, "a"), (2, "b")).fetchall(),
        m.table_function("range", [3]).fetchall(),
        m.from_query("select 1").fetchall(),
        [s.query.strip().rstrip(";") for s in m.extract_statements("select ';'; select 2")],
        [connection.execute(s).fetchall() for s in connection.extract_statements("select 1;select 2;")],
    ]  # fmt: skip
    texts = [
        "with t as (from t) from t, u",
        "with t as (from u) from t",
        'from s.a, "B c", (from x where exists (from y))',
        "create table n as from m",
    ]
    found += [m.get_table_names(text, qualified=q) for text in texts for q in (False, True)]
    found.append(
        m.get_table_names(
            "with recursive r as (select 1 union all from r) select (select max(a) from z) from r, range(3)"
        )
    )
    found += [
        connection.read_csv(io.StringIO("a;b\n1;x\n2;\n")).fetchall(),
        connection.from_csv_auto(io.BytesIO(b"k\n1\n")).fetchall(),
    ]
    m.execute("select 1 as a, 'x' as b")
    found += [[d[0] for d in m.description()], m.df().to_dict()]
    m.execute("select 2 as a")
    found.append(m.to_arrow_table().to_pylist())
    connection.execute("create table t(a integer, b varchar)")
    connection.append("t", frame)
    connection.append("t", pd.DataFrame({"b": ["q"], "a": [9]}), by_name=True)
    connection.begin().execute("delete from t where a = 1").commit()
    found.append(connection.table("t").order("a").fetchall())
    cursor = connection.cursor()
    found += [
        cursor.sql("select a from t order by 1").fetchall(),
        cursor.table("t").count("*").fetchall(),
    ]
    found.append(connection.duplicate().execute("select 5").fetchall())
    settings = {"access_mode": "READ_WRITE", "preserve_insertion_order": False, "threads": 1}
    found.append(m.connect(config=settings).sql("select 1").fetchall())
    connection.create_function("plus1", lambda x: x + 1, [m.sqltypes.BIGINT], m.sqltypes.BIGINT)
    found.append(connection.sql("select plus1(41)").fetchall())
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")  # DuckDB's: of copies that it makes
def test_functions_of_the_module_give_the_same() -> None:
    here, there = of_module(fuseline), of_module(duckdb)
    fuseline.default_connection().close()
    assert here == there


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("selec 1", "ParserException"),
        ("select a + 'x' || 1 from (select {'b': 1} as a)", "BinderException"),
        ("select * from nowhere", "CatalogException"),
        ("select no_such_function(1)", "CatalogException"),
        ("create table t(a integer); create table t(a integer)", "CatalogException"),
        ("select 'a'::integer", "ConversionException"),
        ("select 2147483647::integer + 1::integer", "OutOfRangeException"),
        ("create table k(a integer primary key); insert into k values (1), (1)", "ConstraintException"),
        ("select * from 'nowhere.parquet'", "IOException"),
        ("commit", "TransactionException"),
        ("select ?", "InvalidInputException"),
    ],
)  # fmt: skip
def test_errors_have_duckdbs_classes(text: str, name: str) -> None:
    for module in (duckdb, fuseline):
        with pytest.raises(getattr(module, name)), module.connect() as connection:
            connection.execute(text).fetchall()


def test_an_unknown_column_is_of_the_binder_and_an_unknown_name() -> None:
    for kind in (fuseline.BinderException, UnknownColumn):
        with pytest.raises(kind):
            fuseline.sql("select b from (select 1 as a)")
    connection = fuseline.connect(device="cpu")
    connection.close()
    with pytest.raises(fuseline.ConnectionException):
        connection.execute("select 1")


def test_decimals_are_floats_where_duckdb_has_them() -> None:
    query = "select x::decimal(9, 2) as a, x::decimal(38, 5) * 1000 as b, x * 1e30::decimal(38, 2) as c, sum(x) over () as s from (values (0.1), (0.3), (null)) v(x)"
    query = query.replace("1e30::decimal(38, 2)", "10000000000000000000000000000::decimal(32, 0)")
    with fuseline.connect(device="cpu") as here, duckdb.connect() as there:
        ours, theirs = here.sql(query), there.sql(query)
        pd.testing.assert_frame_equal(ours.df(), theirs.df())
        pd.testing.assert_frame_equal(here.execute(query).df(), theirs.df())
        here_columns, there_columns = ours.fetchnumpy(), theirs.fetchnumpy()
        for name in "abs":  # c is beyond an int64, and exact here
            assert here_columns[name].dtype == there_columns[name].dtype == "float64"
            assert here_columns[name].tolist() == there_columns[name].tolist()
        assert ours.to_pandas()["a"].tolist()[:2] == [Decimal("0.10"), Decimal("0.30")]
        dates = "select date '2024-01-01' as d union all select null order by 1"
        assert here.sql(dates).df(date_as_object=True)["d"][0] == there.sql(dates).df(date_as_object=True)["d"][0]  # fmt: skip


def test_what_is_another_way_is_said() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql("select 1 as a")
        with pytest.raises(UnknownColumn, match="project"):
            frame.select("a + 1")
        with pytest.raises(UnknownColumn, match="order"):
            frame.sort("a desc")
        with pytest.raises(Unsupported, match="no window"):
            frame.select(fuseline.SQLExpression("sum(a) over ()"))
        with pytest.raises(Unsupported, match="name alone"):
            fuseline.ColumnExpression("t", "a")
        with pytest.raises(TypeMismatch, match="equally many"):
            connection.values((1, 2), (3,))
        with pytest.raises(AttributeError, match="SQLExpression"):
            _ = fuseline.LambdaExpression
        with pytest.raises(InterfaceError, match="rowcount"):
            connection.execute("create table t(a integer)").fetchall()


def test_an_open_file_is_read_whatever_files_may_be_opened(tmp_path: Path) -> None:
    lines = b'{"a": 1, "day": "2024-01-31"}\n{"a": null, "day": null}\n'
    with fuseline.connect(device="cpu", external_access=False) as connection:
        found = connection.read_json(io.BytesIO(lines), name="given")
        assert found.types == ["BIGINT", "DATE"]
        assert connection.sql("select count(day) from given").fetchall() == [(1,)]
        assert connection.read_csv(io.StringIO("a,b\n")).fetchall() == []
        for wrong in ("a\n\ud800\n", None):  # no UTF-8, and an object that raises
            given = io.StringIO(wrong)
            if wrong is None:
                given.close()
            with pytest.raises(FileError, match=r"cannot be read: (Unicode|Value)"):
                connection.read_csv(given)
        with pytest.raises(WrongArguments, match="no text"):
            connection.read_csv(SimpleNamespace(read=lambda: 3))
    (tmp_path / "t.csv").write_text("k,v\n1,x\n")
    with fuseline.connect(device="cpu") as connection, (tmp_path / "t.csv").open() as file:
        assert connection.read_csv(file, names=["a", "b"]).columns == ["a", "b"]


def test_a_join_has_one_condition_and_a_function_its_schema() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql("select 1 as a")
        with pytest.raises(WrongArguments, match="two names"):
            frame.join(frame, "a", condition="a")
        with pytest.raises(WrongArguments, match="schema"):
            frame.map(lambda rows: rows, schema={"b": int})
