"""Compiled Python functions: inside kernels, with Python's values, and made anew when what they read has changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.connection import Connection
from fuseline.plan.udf.code_image import content_of, image_of

ROWS = 60_000
NUMBERS = pa.table(
    {
        "n": pa.array([None if i % 97 == 5 else i - 1000 for i in range(ROWS)], pa.int64()),
        "x": pa.array(np.arange(ROWS) / 8.0 - 100.0),
        "g": pa.array((np.arange(ROWS) % 3).astype(np.int32)),
    }
)
RATE = 1.5


@fuseline.udf("BIGINT", "DOUBLE", returns="DOUBLE")
def mixed(n: int, x: float) -> float:
    if n < 0:
        return math.sqrt(-n) + rated(x)
    return n // 7 + n % 5 - x / 2


def rated(x: float) -> float:
    return x * RATE


@fuseline.udf("BIGINT", returns="INTEGER")
def steps(n: int) -> int:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@fuseline.udf("BIGINT", returns="BIGINT")
def powered(n: int) -> int:
    return n**5 * 1000 // (n**4 * 1000 + 1)


@fuseline.udf("BIGINT", returns="TINYINT")
def small(n: int) -> int:
    return n // 100


@pytest.fixture(scope="module", params=["always", "never"])
def numbers(request: Any, backend: str) -> Iterator[Connection]:
    with fuseline.connect(device=backend, fuse=request.param) as connection:
        connection.register("numbers", NUMBERS)
        for function in (mixed, steps, powered, small):
            connection.create_function(function.__name__, function)
        yield connection


def python_rows(function: Callable[..., Any], *names: str) -> list[Any]:
    """Return what Python gives for the rows of the table, NULL for those that have one."""
    columns = [NUMBERS[name].to_pylist() for name in names]
    return [None if None in row else function(*row) for row in zip(*columns, strict=True)]


def test_a_filter_and_an_aggregate_give_what_python_gives(numbers: Connection) -> None:
    frame = numbers.sql(
        "select g, count(*), sum(mixed(n, x)), max(n) from numbers where mixed(n, x) > 50 group by g order by g"
    )
    values = python_rows(mixed, "n", "x")
    for g, count, total, largest in frame.fetchall():
        kept = [i for i in range(g, ROWS, 3) if values[i] is not None and values[i] > 50]
        assert count == len(kept)
        assert math.isclose(total, math.fsum(values[i] for i in kept), rel_tol=1e-12)
        assert largest == kept[-1] - 1000
    fused = numbers.settings.fuse == "always"
    how = "inside the kernel" if fused else "a loop over arrays"
    assert how in frame.explain()
    assert frame.explain().count("Pipeline") == fused


def test_a_loop_ends_only_for_rows_that_it_is_asked_about(numbers: Connection) -> None:
    query = "select sum(steps(n)), max(steps(n)) from numbers where n > 0 and steps(n) > 3"
    expected = [steps(n) for n in NUMBERS["n"].to_pylist() if n is not None and n > 0]
    kept = [count for count in expected if count > 3]
    assert numbers.sql(query).fetchall() == [(sum(kept), max(kept))]
    case = "select max(case when n > 0 then steps(n) end) from numbers"
    assert numbers.sql(case).fetchall() == [(max(expected),)]


def test_whole_numbers_beyond_64_bits_are_those_of_python(numbers: Connection) -> None:
    values = [v for v in python_rows(powered, "n") if v is not None]
    query = "select sum(powered(n)), count(powered(n)) from numbers"
    assert numbers.sql(query).fetchall() == [(sum(values), len(values))]


def test_a_result_that_its_type_does_not_hold_is_an_error(numbers: Connection) -> None:
    assert numbers.sql("select max(small(n)) from numbers where n < 12800").fetchall() == [(127,)]
    with pytest.raises(errors.OutOfRange, match='"small"'):
        numbers.sql("select max(small(n)) from numbers").fetchall()
    numbers.create_function("fifth", lambda n: n**5, ["BIGINT"], "BIGINT")
    with pytest.raises(errors.OutOfRange, match=r'"fifth" gave 9[0-9]{18}'):
        numbers.sql("select max(fifth(n)) from numbers").fetchall()


def test_division_by_zero_is_pythons_error(numbers: Connection) -> None:
    numbers.create_function("inverse", lambda x: 1 / (x - 3), ["BIGINT"], "DOUBLE")
    assert numbers.sql("select count(inverse(n)) from numbers where n <> 3").fetchall()[0][0] > 0
    with pytest.raises(errors.ExecutionError, match='"inverse" raised ZeroDivisionError') as caught:
        numbers.sql("select sum(inverse(n)) from numbers").fetchall()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("fuse", ["always"])
def test_a_function_that_is_defined_anew_is_another_one(fuse: str) -> None:
    """As in a notebook: the same name, the same text of SQL, another constant, closure or global."""
    with fuseline.connect(device="cpu", fuse=fuse) as connection:
        connection.register("numbers", NUMBERS)
        known: dict[str, Any] = {"factor": 2.0}
        exec("def scaled(x):\n    return x * factor + 1.0", known)
        connection.create_function("scaled", known["scaled"], ["DOUBLE"], "DOUBLE")
        text = "select max(scaled(x)) from numbers"
        largest = NUMBERS["x"].to_numpy().max()
        frame = connection.table("numbers").agg(fuseline.fn.max(fuseline.fn.scaled("x")))
        assert connection.sql(text).fetchall() == frame.fetchall() == [(largest * 2 + 1,)]
        known["factor"] = 3.0
        assert connection.sql(text).fetchall() == frame.fetchall() == [(largest * 3 + 1,)]
        exec("def scaled(x):\n    return x * factor + 2.0", known)
        assert connection.sql(text).fetchall() == [(largest * 3 + 1,)]  # the one that was created
        connection.remove_function("scaled")
        connection.create_function("scaled", known["scaled"], ["DOUBLE"], "DOUBLE")
        assert connection.sql(text).fetchall() == [(largest * 3 + 2,)]
        with fuseline.connect(device="cpu", fuse=fuse) as other:
            other.register("numbers", NUMBERS)
            other.create_function("scaled", lambda x: -x, ["DOUBLE"], "DOUBLE")
            assert other.sql(text).fetchall() == [(100.0,)]
            assert connection.sql(text).fetchall() == [(largest * 3 + 2,)]


def refused(function: Callable[..., Any], *types: str, returns: str = "DOUBLE") -> str:
    """Return why a function is refused when a query calls it."""
    with fuseline.connect(device="cpu") as connection:
        made = fuseline.udf(*types, returns=returns, name="f")(function)
        connection.create_function("f", made)
        arguments = ", ".join(f"cast(1 as {t})" for t in types)
        with pytest.raises(errors.Unsupported) as caught:
            connection.sql(f"select f({arguments})").fetchall()
        assert "vectorized=True" in caught.value.message
        assert "select f(" in str(caught.value)
        return caught.value.message


def test_what_does_not_compile_says_why() -> None:
    table = {1: 2}

    def recursive(x: float) -> float:
        return recursive(x - 1) if x > 0 else 0.0

    def attribute(x: float) -> float:
        y = x + 1
        return y.no_such_thing

    assert 'reads "table", a dict' in refused(lambda x: table[x], "BIGINT")
    assert "calls itself" in refused(recursive, "DOUBLE")
    assert "imports" in refused(importing, "DOUBLE")
    said = refused(attribute, "DOUBLE")
    assert "no_such_thing" in said
    assert f"(line {attribute.__code__.co_firstlineno + 2})" in said
    assert "gives a float64 where a whole number is declared" in refused(
        lambda x: x / 2, "BIGINT", returns="BIGINT"
    )


def importing(x: float) -> float:
    import time

    return time.time() + x


def test_types_that_are_not_compiled_are_refused_with_the_remedy() -> None:
    for types, returns in (
        (["VARCHAR"], "BIGINT"),
        (["BIGINT"], "VARCHAR"),
        (["INTEGER[]"], "BIGINT"),
    ):
        with pytest.raises(errors.Unsupported, match="vectorized=True"):
            fuseline.udf(*types, returns=returns)(steps.python_function.python)
    with pytest.raises(errors.Unsupported, match="declare DOUBLE"):
        fuseline.udf("DECIMAL(9,2)", returns="DOUBLE")(steps.python_function.python)
    with pytest.raises(errors.InvalidQuery, match='changes "count"'):
        fuseline.udf("BIGINT", returns="BIGINT")(changing)


def changing(n: int) -> int:
    global count  # noqa: PLW0603 - that is refused
    count = n
    return n


def test_dates_are_days_and_timestamps_microseconds() -> None:
    @fuseline.udf("DATE", "TIMESTAMP", returns="TIMESTAMP")
    def noon(day, moment):
        return day * 86_400_000_000 + moment % 86_400_000_000

    with fuseline.connect(device="cpu") as connection:
        connection.create_function("noon", noon)
        found = connection.sql("select noon(date '2020-02-29', timestamp '1999-01-01 12:00:01')")
        assert str(found.fetchall()[0][0]) == "2020-02-29 12:00:01"


@pytest.mark.parametrize("look", [image_of, content_of])
def test_an_image_holds_no_place_in_a_file(look: Callable[[FunctionType], object]) -> None:
    """The same text at another line is the same function, and another constant, or a global of another type, another one."""

    def made(text: str, y: object = 1) -> object:
        known: dict[str, Any] = {"y": y}
        exec(text, known)
        return look(known["f"])

    one = "def f(x):\n    return x + 1"
    assert made(one) == made("\n\n\n" + one)
    others = [one, one + ".0", "def f(x):\n    return x + True"]
    assert len(set(map(made, others))) == 3
    assert len({made("def f(x):\n    return x + y", y) for y in (1, 1.0, True, (True,))}) == 4


def test_whole_numbers_are_compared_with_doubles_as_they_are() -> None:
    table = pa.table(
        {"n": [2**53 + 1, 2**53, -(2**53) - 1, 3], "x": [2.0**53, 2.0**53, -(2.0**53), 3.5]}
    )
    with fuseline.connect(device="cpu", fuse="always") as connection:
        connection.register("t", table)
        connection.create_function("above", lambda n, x: n > x, ["BIGINT", "DOUBLE"], "BOOLEAN")
        frame = connection.sql("select count(*) from t where above(n, x)")
        assert frame.fetchall() == [(1,)]
        assert "inside the kernel" in frame.explain()
        found = connection.sql("select above(n, x) from t").fetchall()
        assert found == [(True,), (False,), (False,), (False,)]
