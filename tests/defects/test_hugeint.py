"""A5, A6: HUGEINT is a type of its own, with DuckDB's types, casts and rounding, and refuses its 39th digit."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

import fuseline
from fuseline.errors import FuselineError, OutOfRange
from tests.compare import assert_same_as_duckdb

ROWS = "(values (5::hugeint, 7::decimal(38,0), 1.5::decimal(9,2), 3::bigint), (-16, -25, -0.25, 2), (null, 3, 1, null)) t(h, d, p, b)"
OTHERS = ("d", "p", "b", "h", "2", "1.5", "0.5::double", "b::ubigint", "'4'", "null")
PAIRS = [
    form.format("h", other)
    for form, other in product(
        ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "greatest({}, {})", "coalesce({}, {})",
         "{} < {}", "{} = {}", "nullif({}, {})", "case when b = 2 then {} else {} end"),
        OTHERS,
    )
]  # fmt: skip
ALONE = ["-h", "abs(h)", "sign(h)", "floor(h)", "ceil(h)", "round(h)", "round(h, -1)", "round(h, 2)", "round(h, -300)",
         "trunc(h, -1)", "sqrt(h)", "h::decimal(38,0)", "d::hugeint", "p::hugeint", "h::decimal(20,3)", "h::tinyint", "h::boolean", "h::varchar",
         "h::double", "(h + 0.5::double)::hugeint", "(d + 0.5::double)::decimal(38,0)", "b::hugeint", "true::hugeint",
         "1e38::hugeint", "2.5::double::hugeint", "'2.5'::hugeint", "'0x1f'::hugeint", "'125e-1'::hugeint",
         "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "18446744073709551616",
         "1::ubigint + 1::bigint", "gcd(h, 10)", "lcm(h, 3)", "isnan(h)", "h in (5, 7)", "h in (5, 1.5)"]  # fmt: skip
TOTALS = ["sum(h)", "sum(b)", "sum(d)", "avg(h)", "min(h)", "max(d)", "median(h)", "median(d)", "quantile_cont(d, 0.3)", "quantile_disc(h, 0.3)",
          "sum(distinct h)", "arg_max(h, d)", "mode(h)", "stddev(h)", "first(h)", "count_if(b > 2)", "sum(b) / 3", "sum(b) // 3", "sum(b) % 3",
          "sum(b) * 1.5", "greatest(sum(b), sum(d))", "sum(b > 2)"]  # fmt: skip


@pytest.mark.parametrize("fuse", ["never", "always"])
def test_types_and_values(fuse: str) -> None:
    listed = ", ".join(f"{e} as c{n}" for n, e in enumerate([*PAIRS, *ALONE]))
    assert_same_as_duckdb(f"select {listed} from {ROWS}", fuse=[fuse])


def test_aggregates() -> None:
    listed = ", ".join(f"{e} as c{n}" for n, e in enumerate(TOTALS))
    assert_same_as_duckdb(f"select {listed} from {ROWS}", fuse=["never", "always"])
    assert_same_as_duckdb(f"select b, sum(h) as s, sum(b) + 1 as u from {ROWS} group by b")
    assert_same_as_duckdb(
        f"select h from {ROWS} union select 1.5 union all select sum(b) from {ROWS}"
    )


def test_names() -> None:
    assert_same_as_duckdb(
        f"describe select h, d, h + 1 as i, sum(b) as s, h + d as e from {ROWS} group by all"
    )


def test_a_stored_column_stays_hugeint() -> None:
    setup = [f"create table kept as select h, d from {ROWS}", "insert into kept values (8, 9)"]
    assert_same_as_duckdb("select h // 2 as q, d // 2 as r, floor(h) as f from kept", setup=setup)
    empty = "create table kept (h hugeint, d decimal(38,0))"
    assert_same_as_duckdb(
        "select h // 2 as q, h from kept", setup=[empty, "insert into kept values (7, 7)"]
    )


@pytest.mark.parametrize(
    "expression",
    [
        f"{2**127 - 1}", f"-{2**127}", f"'{2**127 - 1}'::hugeint", f"try_cast('-{2**127}' as hugeint)", "1.7e38::hugeint",
        "99999999999999999999999999999999999999 + 1::hugeint", "h * 10000000000000000000000000000000000000 * 2", "round(99999999999999999999999999999999999999, -1)",
    ],
)  # fmt: skip
def test_the_39th_digit_is_refused_by_name(expression: str) -> None:
    with fuseline.connect(device="cpu") as connection, pytest.raises(FuselineError, match="38"):
        connection.sql(f"select {expression} from {ROWS}").fetchall()


def test_python_values() -> None:
    query = f"select h, d, interval '14 months 3 days 5 microseconds' as i from {ROWS}"
    with fuseline.connect(device="cpu") as connection:
        for (h, d, i), (h2, d2, i2) in zip(
            connection.sql(query).fetchall(), _duckdb(query), strict=True
        ):
            assert (type(h), h, type(d), d, i) == (type(h2), h2, type(d2), d2, i2)
            assert i == timedelta(423, microseconds=5)
        ((text,),) = connection.sql("select interval '2147483647 days'").fetchall()
        assert text == "2147483647 days"  # DuckDB's client raises


def _duckdb(query: str) -> list[tuple[object, ...]]:
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def test_text_with_long_fractions() -> None:
    texts = ["0." + d * n for d in "1249" for n in (37, 38, 39, 40, 60)] + [
        "0." + "0" * 60 + "5",
        "9" * 30 + "." + "9" * 38,
    ]
    assert_same_as_duckdb("select s, try_cast(s as hugeint) as h from t", {"t": {"s": texts}})


def test_overflow_of_a_sum() -> None:
    with fuseline.connect(device="cpu") as connection, pytest.raises(OutOfRange):
        connection.sql(
            "select sum(x) from (select 99999999999999999999999999999999999999 as x from range(2))"
        ).fetchall()
