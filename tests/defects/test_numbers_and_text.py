"""Numbers, casts and text functions at their limits (DEFECTS A5, A6, A13, B1): DuckDB's answer, or an error where it raises."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import OutOfRange
from tests.compare import assert_same_as_duckdb, run_duckdb

ANSWERS = [
    # A5
    *(
        f"{cast}('{word}' as {kind})::varchar"
        for cast in ("cast", "try_cast")
        for word in ("infinity", "-infinity", " Infinity ", " Inf", "-inf", "epoch", "12345-01-01", "0044-03-15 (BC)")
        for kind in ("date", "timestamp")
    ),
    "try_cast('infinity' as date)::timestamp::varchar",
    "try_cast('370141183460469231731687303715884105727' as hugeint)",
    # A6
    *(f"regexp_extract({s}, 'b', {g})" for s in ("'abc'", "'x'", "null") for g in ("null", "0", "9")),
    "(-('nan'::double))::varchar",
    "(0::double / 0)::varchar",
    "(-('nan'::float))::varchar",
    # A NULL that constants alone make: of the type before the part was looked at
    *(
        f"date_part('{part}', {moment})"
        for part in ("hour", "year", "epoch", "yearweek")
        for moment in ("null::timestamp", "null::date", "null::interval", "date '2024-01-01' + null::interval",
                       "date_trunc('day', null::date)", "make_date(2024, null, 1)")
        if part != "yearweek" or "interval" not in moment
    ),
    "extract(hour from null::timestamp)",
    "date_part(null, timestamp '2024-01-01')",
    "hour(null::timestamp)",
    # Of decimals that no decimal holds together
    *(f"{x} % {y}" for x in ("0.5::decimal(38,38)", "null::decimal(38,38)") for y in ("nullif(0, 0)", "3", "0.2", "0::double")),
    # Text beside a FLOAT is one
    *(f"{x} {sign} {y}" for sign in ("+", "-", "*", "/", "//", "%") for x, y in (("'0.1'", "1.5::float"), ("1.5::float", "'0.1'"))),
    "fmod('0.5'::float, '-2.5')",
    # B1
    *(
        f"{f}({x}, {d})"
        for f in ("round", "trunc")
        for x in ("7.5", "-99.5", "7", "7::decimal(38,0)", "7.5::double", "5::bigint", "5::float")
        for d in (-300000, -2147483648, -40, -39, -38, -19, -18, -2, 39, 2147483647)
    ),
    "round(18446744073709551615::ubigint, -19)",
    "repeat('abc', -9223372036854775808)",
    "repeat('', 9223372036854775807)",
    "lpad('abc', -2147483648, 'x')",
    "right('é', -9223372036854775808)",
    "substring('abc', -4294967296, 4294967295)",
    "split_part('abc', 'b', 9223372036854775807)",
]  # fmt: skip

REFUSED = [
    "'infinity 00:00:00'::date",
    "'inf '::timestamp",
    "regexp_extract('abc', 'b', -1)",
    "regexp_extract(null, 'b', 10)",
    "regexp_extract('abc', 'b', 42)",
    "regexp_extract('abc', '(b)', 1, 'g')",
    "regexp_extract('abc', '(b)', 1, null)",
    *(f"regexp_extract('abc', '(', {g})" for g in ("null", "null::integer, 'i'", "7")),
    "regexp_matches('abc', 'b', 'g')",
    "regexp_full_match('abc', 'b', 'ig')",
    "regexp_matches('abc', 'b', null)",
    "regexp_replace('abc', 'b', 'x', null)",
    *(f"{f}('-1.2')" for f in ("abs", "sign", "ceil", "floor", "round", "trunc")),
    "count(distinct *)",
    *(f"'{text}'::{kind}"
      for text in ("١", "１", "١.٥")
      for kind in ("int", "double", "decimal(5,2)", "hugeint", "boolean")),
    *(f"{x} % {y}"
      for x, y in (("0.5::decimal(38,38)", "0"), ("5", "0::decimal(38,38)"),
                   (f"{'9' * 38}::decimal(38,0)", "0.0::decimal(18,3)"))),
    "mod(0.5::decimal(38,38), 0::hugeint)",
    "round(9223372036854775807, -19)",
    "repeat('a', 10000000000)",
    "repeat('ab', 9223372036854775807)",
    "left('abc', 4294967296)",
    "substring('abc', 4294967296)",
    "substring('', 1, -4294967297)",
]  # fmt: skip


@pytest.mark.parametrize("start", range(0, len(ANSWERS), 40))
def test_answers(start: int) -> None:
    """As constants and over a row of a table that no rule sees through."""
    items = ", ".join(f"{e} as c{i}" for i, e in enumerate(ANSWERS[start : start + 40]))
    assert_same_as_duckdb(f"select {items}")
    assert_same_as_duckdb(f"select {items} from t", {"t": {"one": [1]}})


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_as_in_duckdb(expression: str, connection: fuseline.Connection) -> None:
    with pytest.raises(duckdb.Error):
        run_duckdb(f"select {expression} from range(1)")
    with pytest.raises(fuseline.FuselineError):
        connection.sql(f"select {expression} from range(1)").fetchall()


@pytest.mark.parametrize(
    "expression",
    [
        "lpad('a', 2147483647, 'é')",
        "replace(repeat('a', 100000), 'a', repeat('b', 100000))",
        "regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g')",
    ],
)
def test_long_texts_are_refused_before_they_are_made(
    expression: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(OutOfRange, match="bytes of text"):
        connection.sql(f"select length({expression})").fetchall()


def test_39_digits_are_refused_not_null(connection: fuseline.Connection) -> None:
    with pytest.raises(OutOfRange, match="39 digits"):
        connection.sql(f"select try_cast('{2**127 - 1}' as hugeint)").fetchall()
    with pytest.raises(OutOfRange, match="HUGEINT has 38 digits here"):
        connection.sql(f"select lcm({2**64 - 1}::ubigint, {1 - 2**63})").fetchall()


@pytest.mark.parametrize("digits", [-7, -40])
@pytest.mark.parametrize("function", ["round", "trunc"])
def test_null_rounded_to_no_digit_is_null(
    function: str, digits: int, connection: fuseline.Connection
) -> None:
    query = (
        f"select {function}(d, {digits}) from (values (5::decimal(9,3)), (null)) t(d) order by d"
    )
    assert connection.sql(query).fetchall() == [(0,), (None,)]
    assert run_duckdb(query).column(0).to_pylist() == [0, None]


@pytest.mark.parametrize(
    "condition",
    ["i in ('x')", "i = 'x'", "i between 'x' and '7'", "d < 'yesterday'", "i in ('x', 2)"],
)
def test_a_constant_is_cast_when_a_row_meets_it(
    condition: str, connection: fuseline.Connection
) -> None:
    """A9."""
    query = f"select * from (select 1 as i, date '2024-01-01' as d {{}}) t where {condition}"
    assert_same_as_duckdb(query.format("where false"))
    with pytest.raises(duckdb.Error):
        run_duckdb(query.format(""))
    with pytest.raises(fuseline.FuselineError, match="Could not convert"):
        connection.sql(query.format("")).fetchall()


def test_a_decimal_with_an_untyped_null_is_an_untyped_null() -> None:
    items = [
        f"{x} {sign} {y}"
        for sign in ("+", "-", "*", "%", "/")
        for x, y in (
            ("d", "null"),
            ("null", "d"),
            ("i", "null"),
            ("null", "1.5"),
            ("-0.25", "null"),
        )
    ]
    listed = ", ".join(f"{item} as c{n}" for n, item in enumerate(items))
    assert_same_as_duckdb(
        f"select {listed}, sum(d + null) as s from (select 1.5 as d, 1 as i from range(2)) t group by all"
    )


@pytest.mark.parametrize(
    "constant", ["1e300", "-1e300", "1.7976931348623157e308", "5e-324", "-1.7976931348623157e308"]
)
def test_integers_beside_any_double(constant: str) -> None:
    table = {"t": {"i": [1, -(2**31), 2**31 - 1, None]}}
    for sign in ("<", "<=", ">", ">=", "=", "is distinct from"):
        assert_same_as_duckdb(
            f"select i from t where cast(i::integer as double) {sign} {constant}", table
        )
    assert_same_as_duckdb(f"select i::integer::double in (1, {constant}) as v from t", table)


def test_floats_have_the_digits_of_doubles_where_their_own_are_not_decided() -> None:
    """Half way between two spellings, or with an end of its interval that is a shorter number: one of 80."""
    draw = np.random.default_rng(5)
    drawn = draw.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    near = (draw.integers(-(10**7), 10**7, 10_000) / 128).astype(np.float32)
    powers = np.float32(2) ** np.arange(-149, 128, dtype=np.float32)
    edges = np.array(
        [128.95312, 177646608, 424300576, 15125440512, 0, -0.0, np.inf, -np.inf, np.nan], np.float32
    )
    values = np.concatenate([drawn[np.isfinite(drawn)], near, powers, edges])
    rows = pa.table({"f": pa.array(values, mask=np.arange(len(values)) % 19 == 7)})
    query = "select f::varchar as t, [f]::varchar as l from x"
    assert_same_as_duckdb(query, {"x": rows}, backend="cpu", fuse=("never",), ordered=False)
