"""`create_function` as DuckDB has it: types, NULLs, errors, row by row and over arrays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import duckdb.sqltypes
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuseline
from fuseline import errors
from fuseline.plan.types import INTEGER
from tests.udf.both_engines import BothEngines

TABLES = {
    "t": {
        "x": pa.array([1, 2, None, -4], pa.int64()),
        "s": ["a", "b", None, "Ü"],
        "d": pa.array([date(2020, 1, 31), None, date(1969, 12, 31), date(1, 1, 1)]),
    }
}


@pytest.fixture(scope="module")
def both() -> Iterator[BothEngines]:
    made = BothEngines(TABLES)
    made.create("shown", repr_of, ["VARCHAR"], "VARCHAR")
    made.create("upper_of", upper_texts, ["VARCHAR"], "VARCHAR", type="arrow")
    made.create("fails", fails, ["BIGINT"], "BIGINT")
    yield made
    made.fuseline.close()
    made.duckdb.close()


def upper_texts(texts: pa.Array) -> pa.Array:
    return pc.utf8_upper(texts)


def added(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.add(left, right)


def repr_of(value: Any) -> str:
    return repr(value)


def str_of(value: Any) -> str:
    return str(value)


def fails(x: int) -> int:
    text = {1: "one"}
    return len(text[x])


def test_a_function_of_text_runs_row_by_row(both: BothEngines) -> None:
    assert both.same("select s, shown(s), SHOWN(upper(s)) from t") == [
        ("a", "'a'", "'A'"),
        ("b", "'b'", "'B'"),
        (None, None, None),
        ("Ü", "'Ü'", "'Ü'"),
    ]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("DATE", "date '2020-02-29'"),
        ("TIMESTAMP", "timestamp '2020-02-29 12:13:14.5'"),
        ("TIME", "time '12:13:14'"),
        ("INTERVAL", "interval 3 day"),
        ("DECIMAL(9,2)", "1.25::decimal(9,2)"),
        ("HUGEINT", "12345678901234567890123456789"),
        ("BLOB", "'ab'::blob"),
        ("INTEGER[]", "[1, null, 3]"),
        ("BOOLEAN", "true"),
        ("FLOAT", "0.1::float"),
        ("VARCHAR", "''"),
    ],
)
def test_python_gets_the_values_that_duckdb_gives_it(
    both: BothEngines, parameter: str, value: str
) -> None:
    name = "shown_" + "".join(c for c in parameter.lower() if c.isalnum())
    both.create(name, repr_of, [parameter], "VARCHAR")
    both.same(f"select {name}({value}), {name}(null)")


def test_results_are_cast_as_sql_casts(both: BothEngines) -> None:
    both.create("day_after", lambda d: d + timedelta(days=1), ["DATE"], "DATE")
    both.create("half", lambda s: len(s) / 2, ["VARCHAR"], "BIGINT")
    both.create("digits", lambda s: "12" + s, ["VARCHAR"], "INTEGER")
    both.same("select day_after(d) from t where d > '1000-01-01'")
    both.same("select half('abc'), half('abcde'), digits('3')")


@pytest.mark.parametrize("result", ["TINYINT", "UINTEGER", "BIGINT"])
def test_a_number_that_its_type_does_not_hold_is_an_error(both: BothEngines, result: str) -> None:
    name = f"large_{result.lower()}"
    both.create(name, lambda s: -(10 ** len(s)), ["VARCHAR"], result)
    error = both.both_refuse(f"select {name}('{'x' * 30}')")
    assert isinstance(error, errors.DataError)
    assert name in str(error)


def test_what_it_raises_is_an_error_at_its_place(both: BothEngines) -> None:
    error = both.both_refuse("select fails(x) from t where x = 2")
    assert isinstance(error, errors.ExecutionError)
    assert error.message == 'The Python function "fails" raised KeyError: 2.'
    assert "select fails(x)" in str(error)
    assert isinstance(error.__cause__, KeyError)
    names = []
    trace = error.__cause__.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names[-1] == "fails"


def test_only_rows_that_get_to_it_call_it(both: BothEngines) -> None:
    both.same("select case when x = 1 then fails(x) end from t")
    both.same("select count(*) from t where x = 1 and fails(x) = 3")
    both.same("select x from t where x is null or x <> 1 or fails(x) = 3")
    assert both.fuseline.sql("select coalesce(7, fails(2))").fetchall() == [(7,)]


def test_return_null_makes_null_of_what_it_raises(both: BothEngines) -> None:
    both.create("or_null", fails, ["BIGINT"], "BIGINT", exception_handling="return_null")
    both.same("select x, or_null(x) from t")


def test_null_handling(both: BothEngines) -> None:
    both.create("none", lambda x: None if x > 1 else len(str(x)), ["BIGINT"], "BIGINT")
    error = both.both_refuse("select none(x) from t")
    assert 'null_handling="special"' in error.message
    both.create("is_none", lambda x: x is None, ["BIGINT"], "BOOLEAN", null_handling="special")
    both.same("select x, is_none(x), is_none(null) from t")
    both.create(
        "filled",
        lambda a: pc.fill_null(a, 9),
        ["BIGINT"],
        "BIGINT",
        type="arrow",
        null_handling="special",
    )
    both.same("select filled(x) from t")


def test_arrays(both: BothEngines) -> None:
    both.same("select upper_of(s), upper_of('x') from t where upper_of(s) <> 'B'")
    both.create("twice", added, ["BIGINT", "BIGINT"], "DOUBLE", type="arrow")
    both.same("select twice(x, 3), twice(x, null) from t")
    both.create("too_few", lambda a: a.slice(1), ["VARCHAR"], "VARCHAR", type="arrow")
    assert "values for" in both.both_refuse("select too_few(s) from t").message
    both.create("no_number", lambda a: a, ["VARCHAR"], "BIGINT", type="arrow")
    assert "no_number" in both.both_refuse("select no_number(s) from t").message
    both.fuseline.create_function(
        "no_array", lambda a: object(), ["BIGINT"], "BIGINT", type="arrow"
    )
    with pytest.raises(errors.ExecutionError, match="of which there is no column"):
        both.fuseline.sql("select no_array(1)").fetchall()


def test_nested_values(both: BothEngines) -> None:
    both.create("total", lambda values: sum(v or 0 for v in values), ["INTEGER[]"], "BIGINT")
    both.create("pair", lambda x: [x, None], ["BIGINT"], "BIGINT[]")
    both.same("select total([1, null, 5]), total([]), pair(x) from t")
    both.same("select list_transform([1, 2], lambda v: total([v, 10]))")


def test_side_effects_call_it_for_each_row_and_place(both: BothEngines) -> None:
    counts = {"fuseline": 0, "duckdb": 0}

    def counting(engine: str) -> Any:
        def count() -> int:
            counts[engine] += 1
            return counts[engine]

        return count

    both.fuseline.create_function("tick", counting("fuseline"), [], "BIGINT", side_effects=True)
    both.duckdb.create_function("tick", counting("duckdb"), [], "BIGINT", side_effects=True)
    both.same("select count(distinct tick()) from range(10)")
    both.same(
        "select count(distinct v), count(distinct w) from (select tick() v, tick() w from range(5))"
    )
    rng = random.Random(1)
    both.create("draw", lambda x: rng.random(), ["BIGINT"], "DOUBLE", side_effects=True)
    assert both.fuseline.sql("select count(distinct draw(1)) from range(100)").fetchall() == [
        (100,)
    ]
    with pytest.raises(errors.Unsupported, match="side effects"):
        both.fuseline.table("t").select(fuseline.fn.draw("x"))
    with pytest.raises(errors.InvalidQuery, match="each use would draw anew"):
        both.fuseline.sql("select draw(1) as z from t order by z + 1")


def test_any_number_of_arguments(both: BothEngines) -> None:
    both.create("count_of", lambda *values: len(values), None, "BIGINT")
    both.same("select count_of(1, 2.5, 'x'), count_of(x, s) from t")


def test_wrong_arguments_are_refused_at_their_place(both: BothEngines) -> None:
    for query in ("select fails()", "select fails(1, 2)", "select fails(date '2020-01-01')"):
        error = both.both_refuse(query)
        assert isinstance(error, errors.TypeMismatch)
        assert "fails(BIGINT) does not take" in error.message
    assert isinstance(both.both_refuse("select fails('one')"), errors.ConversionError)
    assert isinstance(both.both_refuse("select fails(distinct x) from t"), errors.InvalidQuery)


def test_types_come_from_annotations_and_from_many_names() -> None:
    def sized(x: int, text: str | None) -> float:
        return x + len(text or "")

    with fuseline.connect(device="cpu") as connection:
        connection.create_function("sized", sized)
        connection.create_function("typed", lambda x: x, [pa.int16()], INTEGER)
        connection.create_function(
            "alike", lambda x: x, [duckdb.sqltypes.BIGINT], duckdb.sqltypes.DOUBLE
        )
        frame = connection.sql("select sized(1, 'ab'), typed(3::smallint), alike(1)")
        assert [str(c.type) for c in frame.plan.columns] == ["DOUBLE", "INTEGER", "DOUBLE"]
        with pytest.raises(errors.TypeMismatch, match="returns"):
            connection.create_function("untyped", lambda x: x, ["BIGINT"])
        with pytest.raises(errors.TypeMismatch, match='"x" of untyped has no type'):
            connection.create_function("untyped", lambda x: x, None, "BIGINT")
        with pytest.raises(errors.TypeMismatch, match="2 types of parameters"):
            connection.create_function("untyped", lambda x: x, ["BIGINT"] * 2, "BIGINT")
        with pytest.raises(errors.UnknownName, match="bigint"):
            connection.create_function("untyped", lambda x: x, ["BIGIN"], "BIGINT")
        with pytest.raises(errors.WrongArguments, match="null_handling"):
            connection.create_function(
                "untyped", lambda x: x, ["BIGINT"], "BIGINT", null_handling=1
            )


def test_names_are_taken_once() -> None:
    with fuseline.connect(device="cpu") as connection:
        one: Any = ["BIGINT"], "BIGINT"
        for taken in ("abs", "SUM", "row_number", "list_value", "concat"):
            with pytest.raises(errors.CatalogError, match="is a function of SQL"):
                connection.create_function(taken, lambda x: x, *one)
        connection.create_function("f", str_of, ["BIGINT"], "VARCHAR")
        with pytest.raises(errors.CatalogError, match="already"):
            connection.create_function("F", lambda x: x, *one)
        with pytest.raises(errors.Unsupported):
            connection.execute("create macro f(x) as x")
        text = "select f(1)"
        assert connection.sql(text).fetchall() == [("1",)]
        connection.remove_function("F").create_function(
            "f", lambda x: f"<{x}>", ["BIGINT"], "VARCHAR"
        )
        assert connection.sql(text).fetchall() == [("<1>",)]
        connection.remove_function("f")
        with pytest.raises(errors.UnknownName):
            connection.sql(text)
        with pytest.raises(errors.UnknownName, match="no Python function"):
            connection.remove_function("f")


def test_two_connections_have_functions_of_one_name() -> None:
    with fuseline.connect(device="cpu") as a, fuseline.connect(device="cpu") as b:
        a.create_function("f", lambda x: "a" + x, ["VARCHAR"], "VARCHAR")
        b.create_function("f", lambda x: "b" + x, ["VARCHAR"], "VARCHAR")
        for _ in range(2):
            assert a.sql("select f('x')").fetchall() == [("ax",)]
            assert b.sql("select f('x')").fetchall() == [("bx",)]


def test_a_transaction_that_is_rolled_back_takes_functions_back() -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.begin()
        connection.create_function("f", lambda x: x, ["VARCHAR"], "VARCHAR")
        connection.rollback()
        with pytest.raises(errors.UnknownName):
            connection.sql("select f('x')")


def test_text_of_sql_defines_no_python_function() -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create function f(x) as 'import os'")  # a macro, as in DuckDB
        assert connection.sql("select f(1)").fetchall() == [("import os",)]
        with pytest.raises(errors.CatalogError, match="macro"):
            connection.create_function("f", str_of, ["BIGINT"], "VARCHAR")


def test_a_function_that_changes_globals_is_refused_without_side_effects() -> None:
    counted = 0

    def count(x: int) -> int:
        nonlocal counted
        counted += x
        return counted

    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(errors.InvalidQuery, match=r'changes "counted".*side_effects=True'):
            connection.create_function("running", count, ["BIGINT"], "BIGINT")
        connection.create_function("running", count, ["BIGINT"], "BIGINT", side_effects=True)
        assert connection.sql("select running(range) from range(4)").fetchall() == [
            (0,),
            (1,),
            (3,),
            (6,),
        ]


def test_explain_says_how_it_runs(both: BothEngines) -> None:
    text = both.fuseline.sql("select shown(s), upper_of(s) from t").explain()
    assert "Python function shown: Python runs it row by row" in text
    assert "Python function upper_of: Python runs it over Arrow arrays" in text


def test_it_is_stopped_between_rows() -> None:
    with fuseline.connect(device="cpu") as connection:

        def slow(x: int) -> str:
            import time

            time.sleep(0.001)
            return str(x)

        connection.create_function("slow", slow, ["BIGINT"], "VARCHAR")
        connection.set_option("statement_timeout", 0.2)
        with pytest.raises(errors.Interrupted):
            connection.sql("select count(slow(range)) from range(100000)").fetchall()
        connection.reset_option("statement_timeout")
        assert connection.sql("select slow(1)").fetchall() == [("1",)]
