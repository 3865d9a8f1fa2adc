"""Replacement scans: FROM finds the caller's variables as DuckDB does, and never an older object of the name."""

# ruff: noqa: F841 - variables that SQL reads

from __future__ import annotations

import threading
import weakref

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import fuseline
from tests.compare import Ordering, connected, difference

of_module = pd.DataFrame({"a": [7, 8]})
shadowed = pd.DataFrame({"a": [1]})


@pytest.fixture
def connection(backend):
    with connected({}, device=backend) as opened:
        yield opened


def test_tables_of_each_library_are_found(connection, tmp_path):
    pandas_frame = pd.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]})
    polars_frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    lazy = polars_frame.lazy().filter(pl.col("a") > 1)
    arrow = pa.table({"a": [1, 2], "b": ["x", "y"]})
    batch = arrow.to_batches()[0]
    ds.write_dataset(arrow, tmp_path, format="parquet")
    dataset = ds.dataset(tmp_path)
    arrays = {"a": np.array([1, 2]), "b": np.array([2.5, 3.5])}
    for name in ("pandas_frame", "polars_frame", "lazy", "arrow", "dataset", "arrays"):
        query = f"select * from {name} where a > 0 order by a"
        expected = duckdb.connect().sql(query).to_arrow_table()
        found = connection.sql(query).to_arrow()
        assert difference(expected, found, Ordering(True)) is None, name
    vector, matrix = np.array([1.5, np.nan]), np.array([[1, 2, 3], [4, 5, 6]])
    masked, several = np.ma.array([1, 2], mask=[0, 1]), [np.array([1, 2]), np.array([True, False])]
    for name in ("vector", "matrix", "masked", "several"):
        expected = duckdb.connect().sql(f"from {name}").to_arrow_table()
        assert (
            difference(expected, connection.sql(f"from {name}").to_arrow(), Ordering(True)) is None
        )
    assert all(map(len, (vector, matrix, masked, several)))
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert connection.sql("from rows").fetchall() == [(1, "x"), (2, None)]
    assert connection.sql("select sum(a) from batch").fetchall() == [(3,)]
    assert batch.num_rows == 2


def test_a_reader_is_read_once_by_a_statement_that_names_it_twice(connection):
    reader = pa.table({"a": [1, 2]}).to_reader()
    query = "select count(*) from reader x join reader y using (a)"
    assert connection.sql(query).fetchall() == [(2,)]
    assert connection.sql("from reader").fetchall() == []


def test_frames_are_found_and_stay_plans(connection):
    base = connection.sql("select * from range(10) t(x)")
    small = base.filter(base["x"] < 3)
    query = "select a.x, b.x from small a join small b on a.x = b.x + 1 order by 1"
    assert connection.sql(query).fetchall() == [(1, 0), (2, 1)]
    assert "range" in connection.sql("from small").explain("optimized").lower()
    with fuseline.connect(device="cpu") as other:
        assert other.sql("select sum(x) from small").fetchall() == [(3,)]


def test_locals_go_before_globals_and_the_catalog_before_both(connection):
    assert connection.sql("select sum(a) from of_module").fetchall() == [(15,)]
    shadowed = pd.DataFrame({"a": [2]})
    assert connection.sql("from shadowed").fetchall() == [(2,)]
    connection.register("shadowed", {"a": [3]})
    assert connection.sql("from shadowed").fetchall() == [(3,)]
    connection.unregister("shadowed")
    assert connection.sql("from shadowed").fetchall() == [(2,)]
    assert connection.sql("with shadowed as (select 4) from shadowed").fetchall() == [(4,)]
    assert len(shadowed) == 1


def test_a_name_that_is_bound_anew_is_another_table(connection):
    for value in (1, 2, 3):
        data = pd.DataFrame({"a": [value]})
        assert connection.sql("select a from data").fetchall() == [(value,)]
        assert len(data) == 1
    data = pa.table({"b": ["other"]})
    with pytest.raises(fuseline.FuselineError, match='column "a"'):
        connection.sql("select a from data")
    assert connection.sql("from data").fetchall() == [("other",)]


def test_an_object_that_is_changed_in_place_is_read_anew(connection):
    data = pd.DataFrame({"a": [1, 2]})
    arrays = {"a": np.array([1, 2])}
    for query in ("select sum(a) from data", "select sum(a) from arrays"):
        assert connection.sql(query).fetchall() == [(3,)]
    data.loc[0, "a"] = 10
    arrays["a"][0] = 10
    data["b"] = ["x", "y"]
    for query in ("select sum(a) from data", "select sum(a) from arrays"):
        assert connection.sql(query).fetchall() == [(12,)]
    assert connection.sql("from data").columns == ["a", "b"]
    assert connection.execute("select max(b) from data").fetchall() == [("y",)]


def test_two_callers_of_one_text_have_their_own(connection):
    def first() -> list:
        data = pa.table({"a": [1]})
        return connection.sql("from data").fetchall(), data

    def second() -> list:
        data = pa.table({"a": [2]})
        return connection.sql("from data").fetchall(), data

    for _ in range(3):
        assert (first()[0], second()[0]) == ([(1,)], [(2,)])


def test_threads_have_their_own(connection):
    found: dict[int, list] = {}

    def ask(number: int) -> None:
        data = pa.table({"a": [number] * 10})
        for _ in range(10):
            found.setdefault(number, []).append(
                connection.sql("select sum(a) from data").fetchall()
            )
        assert data.num_rows == 10

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [[(10 * i,)]] * 10 for i in range(4)}


def test_two_connections_keep_what_they_have(connection):
    data = pa.table({"a": [1]})
    with fuseline.connect(device="cpu") as other:
        other.register("data", {"a": [5]})
        assert connection.sql("from data").fetchall() == [(1,)]
        assert other.sql("from data").fetchall() == [(5,)]
    assert data.num_rows == 1


def test_only_the_caller_is_looked_at_unless_all_frames_are_asked_for(connection):
    outer_table = pa.table({"a": [1]})

    def inner() -> list:
        return connection.sql("from outer_table").fetchall()

    assert outer_table.num_rows == 1
    with pytest.raises(fuseline.FuselineError, match='no table "outer_table"'):
        inner()
    connection.sql("set python_scan_all_frames = true")
    assert inner() == [(1,)]
    connection.sql("reset python_scan_all_frames")
    with pytest.raises(fuseline.FuselineError, match='no table "outer_table"'):
        inner()


@pytest.mark.parametrize("setting", ["python_enable_replacements", "external_access"])
def test_it_can_be_switched_off(setting, connection):
    data = pa.table({"a": [1]})
    connection.sql(f"set {setting} = false")
    with pytest.raises(fuseline.FuselineError, match='no table "data"'):
        connection.sql("from data")
    assert data.num_rows == 1


def test_what_is_no_table_is_said_to_be_none(connection):
    number, text, pairs, odd = 3, "text", [1, 2], {"a": [1, 2], "b": [1]}
    cube, mixed = np.zeros((1, 1, 1)), [np.array([1]), 2]
    found = {"number": "int", "text": "str", "pairs": "list", "duckdb": "module", "cube": "ndarray"}
    for name, kind in {**found, "mixed": "list"}.items():
        with pytest.raises(fuseline.FuselineError, match=f"the variable of this name is a {kind}"):
            connection.sql(f"from {name}")
    with pytest.raises(fuseline.FuselineError, match="have one length"):
        connection.sql("from odd")
    assert (number, text, pairs, len(odd), len(cube), len(mixed)) == (3, "text", [1, 2], 2, 1, 2)


def test_an_unknown_name_suggests_a_variable(connection):
    trips_frame = pa.table({"a": [1]})
    __of_python__ = {}  # as `__annotations__` of a module
    with pytest.raises(fuseline.FuselineError, match='"trips_frame"') as raised:
        connection.sql("from trips_fram")
    assert "__of_python__" not in raised.value.message
    assert (trips_frame.num_rows, __of_python__) == (1, {})


def test_every_way_to_ask_finds_them(connection):
    data = pa.table({"a": [1, 2]})
    assert connection.execute("select count(*) from data").fetchall() == [(2,)]
    assert connection.cursor().execute("from data").fetchall() == [(1,), (2,)]
    assert fuseline.sql("select sum(a) from data").fetchall() == [(3,)]
    assert fuseline.execute("from data").fetchone() == (1,)
    connection.sql("create table kept as from data")
    connection.sql("prepare p as select sum(a) from data where a > $1")
    assert connection.sql("execute p(1)").fetchall() == [(2,)]
    connection.sql("create view seen as from data")
    data = pa.table({"a": [9]})
    assert connection.sql("from seen").fetchall() == [(9,)]
    assert connection.sql("from kept").fetchall() == [(1,), (2,)]
    assert data.num_rows == 1


def test_columns_of_variables_are_not_kept(connection):
    data = pa.table({"a": list(range(1000))})
    assert connection.sql("select sum(a) from data where a > 10").fetchall()
    assert connection.sql("select * from fuseline_columns()").fetchall() == []
    assert data.num_rows == 1000


def test_objects_become_frames_without_a_name(connection):
    assert connection.from_df(pd.DataFrame({"a": [1]})).fetchall() == [(1,)]
    assert connection.from_arrow(pa.table({"a": [2]})).fetchall() == [(2,)]
    assert fuseline.from_df(pl.DataFrame({"a": [3]})).fetchall() == [(3,)]
    assert connection.catalog.names() == []


def test_nothing_of_the_caller_is_kept(connection):
    class Kept:
        pass

    def ask() -> weakref.ref:
        data, kept = pa.table({"a": [1]}), Kept()
        connection.sql("with c as (from data) select * from c x, c y").fetchall()
        return weakref.ref(kept)

    assert ask()() is None
