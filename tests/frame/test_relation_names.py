"""DuckDB's names on frames and connections: what its relations and connections give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import fuseline
from fuseline.errors import NoRows, TypeMismatch, UnknownAttribute, UnknownName, WrongArguments

ROWS = "select a, a % 2 as g from range(5) t(a)"
CALLS: list[Callable[[Any], Any]] = [
    lambda r: r.filter("a > 2").order("a").fetchall(),
    lambda r: r.filter("a > 2 or g = 0").project("a + 1 as b").order("b").fetchall(),
    lambda r: r.aggregate("sum(a) as s, g").order("g").fetchall(),
    lambda r: r.aggregate("sum(a) as s").fetchall(),
    lambda r: r.filter("a > 9").aggregate("count(*), sum(a)").fetchall(),
    lambda r: r.sum("a").columns + r.sum("a").fetchall(),
    lambda r: r.max("a", "g", projected_columns="g").order("g").fetchall(),
    lambda r: r.mean("a", window_spec="over ()").fetchall(),
    lambda r: r.median("a").fetchall() + r.list("a").fetchall(),
    lambda r: r.bit_xor("a").fetchall(),
    lambda r: (
        r.count("*").fetchall() + r.count("a", "g", projected_columns="g").order("g").fetchall()
    ),
    lambda r: r.arg_max("a", "-a").fetchall() + r.arg_min("a", "a", "g").order("1").fetchall(),
    lambda r: r.quantile_disc("a", 0.3).fetchall() + r.quantile_cont("a", q=[0.1, 0.5]).fetchall(),
    lambda r: r.string_agg("a", "-").fetchall() + r.string_agg("a", sep="';").fetchall(),
    lambda r: r.string_agg("a", "-", window_spec="over (order by a)").fetchall(),
    lambda r: r.row_number("over (order by a desc)", "a").order("a").fetchall(),
    lambda r: r.rank_dense("over (order by g)", "a").order("a").fetchall(),
    lambda r: r.lag("a", "over (order by a)", 2, "-1", projected_columns="a").order("a").fetchall(),
    lambda r: r.lead("a", "over (order by a)", offset=3).order("1").fetchall(),
    lambda r: r.nth_value("a", "over (order by a)", 2, projected_columns="a").order("a").fetchall(),
    lambda r: ["a" in r, "b" in r, r.pl(lazy=True).collect().rows(), r.pl().rows()],
    lambda r: [[str(t) for t in r.types], r.shape, [d[:2] for d in r.description]],
    lambda r: r.to_df().to_dict(),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_relation_and_a_frame_give_the_same(call: Callable[[Any], Any]) -> None:
    with fuseline.connect(device="cpu") as here, duckdb.connect() as there:
        assert call(here.sql(ROWS)) == call(there.sql(ROWS))


def test_a_column_goes_before_a_condition_in_sql() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql('select true as "1 > 2"')
        assert frame.filter("1 > 2").count() == 1
        with pytest.raises(UnknownName, match=r'no column "aa" here. Did you mean "a"'):
            connection.sql(ROWS).filter("aa > 2")


def test_what_is_no_aggregate_is_refused() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql(ROWS)
        with pytest.raises(UnknownAttribute, match="has no 'upper'"):
            frame.upper("a")
        with pytest.raises(WrongArguments, match="takes SQL as text"):
            frame.sum("a", 1)
        with pytest.raises(WrongArguments, match="takes SQL as text"):
            frame.sum(5)
        with pytest.raises(WrongArguments, match="lag\\(\\) takes column, window_spec"):
            frame.lag("a", "over ()", ignore_nulls=True)


def executed(module: Any) -> list[Any]:
    found: list[Any] = []
    with module.connect() as connection:
        connection.execute("select 1 as a union all select 2 order by a")
        found += [connection.fetchone(), connection.fetchall(), connection.fetchone()]
        connection.execute("select 1 as a, 'x' as b")
        found += [[d[:2] for d in connection.description], connection.df().to_dict()]
        connection.execute("select ? + 1 as a", [41])
        found += [connection.fetchnumpy()["a"].tolist()]
        connection.execute("create table t as select 1 as a")
        found += [connection.view("t").fetchall(), connection.from_query("from t").fetchall()]
    return found


def test_a_connection_has_the_rows_of_its_last_execute() -> None:
    assert executed(fuseline) == executed(duckdb)


def test_a_connection_that_ran_nothing_has_no_rows() -> None:
    with fuseline.connect(device="cpu") as connection, pytest.raises(NoRows):
        connection.fetchall()


def test_what_a_function_of_map_does_wrong_is_its_own_fault() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql(ROWS)
        for function, message in (
            (None, "map.. takes a function"),
            (lambda: 1, "that map.. was given raised TypeError"),
            (lambda rows: rows["no"], "that map.. was given raised KeyError: 'no'"),
        ):
            with pytest.raises(WrongArguments, match=message):
                frame.map(function)
        with pytest.raises(TypeMismatch, match="is no table"):
            frame.map(type)
        with pytest.raises(WrongArguments, match="takes SQL as text"):
            frame.apply("sum", "a", 1)
