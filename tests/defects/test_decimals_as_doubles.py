"""A DECIMAL becomes the nearest double, to the bit as in DuckDB: functions that cut digits off make one bit a large difference."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb, connected, fuseline_answer, run_duckdb

TYPES = [(4, 1), (9, 4), (18, 0), (18, 1), (18, 18), (20, 3), (38, 0), (38, 5), (38, 23), (38, 38)]


def numbers(precision: int, scale: int, count: int) -> pa.Table:
    """Of any number of digits, many with zeros at the end."""
    draw = random.Random(f"{precision} {scale}")
    values = []
    for _ in range(count):
        digits = draw.randint(1, precision)
        zeros = draw.choice((0, draw.randint(0, precision - digits)))
        values.append(draw.choice((1, -1)) * draw.randrange(10**digits) * 10**zeros)
    found = [Decimal(f"{value}e-{scale}") for value in values]
    return pa.table({"d": pa.array(found, pa.decimal128(precision, scale))})


@pytest.mark.parametrize(("precision", "scale"), TYPES)
@pytest.mark.parametrize("rows", [40, 2000])
def test_to_the_bit(precision: int, scale: int, rows: int) -> None:
    tables = {"t": numbers(precision, scale, rows)}
    query = "select d::double as v, d::float as f from t"
    with connected(tables) as connection:
        found = fuseline_answer(connection, query)
    assert found.to_pylist() == run_duckdb(query, tables).to_pylist()


@pytest.mark.parametrize("number", ["-9371595779772130", "-30127971864812394072", "3" + "0" * 35])
def test_a_hugeint_to_the_bit(number: str) -> None:
    query = f"select n::double as v from (select '{number}'::hugeint as n from range(3))"
    with connected() as connection:
        found = fuseline_answer(connection, query)
    assert found.to_pylist() == run_duckdb(query).to_pylist()


@pytest.mark.parametrize("number", ["-0.1", "0.1", "0.7"])
def test_what_cuts_digits_off(number: str) -> None:
    items = "fmod(d, -0.001::decimal(18,3)) as a, d::double % 0.1::double as b, floor(d::double * 10) as c"
    table = {"t": pa.table({"d": pa.array([Decimal(number)], pa.decimal128(38, 38))})}
    assert_same_as_duckdb(f"select {items} from t", table)
    constants = items.replace("(d,", f"('{number}'::decimal(38,38),").replace(
        "d::double", f"'{number}'::decimal(38,38)::double"
    )
    assert_same_as_duckdb(f"select {constants}")
