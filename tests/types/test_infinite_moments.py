"""Each function that takes a moment, of infinite ones: as constants, as columns, fused and unfused."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from fuseline.errors import FuselineError
from fuseline.plan.derived import DERIVED
from fuseline.plan.functions import SCALAR
from tests.compare import assert_same_as_duckdb
from tests.duckdb_functions import GIVEN, PLAIN, signatures

MOMENTS = {
    "DATE": ("date '2024-02-29'", "date '2020-01-31'"),
    "TIMESTAMP": ("timestamp '2024-02-29 13:14:15.5'", "timestamp '2020-01-31 23:00:00'"),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz '2024-02-29 13:14:15.5+00'", "timestamptz '2020-01-31 23:00:00+00'"),
}  # fmt: skip
UNITS = ("microsecond", "second", "day", "week", "month", "quarter", "year", "decade", "millennium")
OPERATORS = (
    "{x} + interval '1 month'", "{x} - interval '1 hour'", "interval '1 day' + {x}", "{x}::date", "{x}::timestamp", "{x}::varchar",
    "{x}::timestamptz", "{x}::timestamp_s", "{x}::timestamp_ns", "try_cast({x} as time)", "{x} < {y}", "{x} = {y}", "{x} >= 'infinity'",
    "{x} is distinct from {y}", "{x} between '-infinity' and {y}", "{x} in ('infinity', '2020-01-01')", "greatest({x}, {y})",
    "least({x}, {y})", "nullif({x}, {y})", "isinf({x})", "[{x}]", "to_json({x})", "extract(year from {x})", "coalesce(year({x}), -1)",
    "year({x}) is null", "date_part(['year', 'epoch'], {x})", "strptime({x}::varchar, '%Y-%m-%d')", "hash({x}) is null",
)  # fmt: skip
OF_DATES = ("{x} + 1", "{x} - 1", "{x} + time '01:02:03'", "{x} - {y}")
AGGREGATES = (
    "min({x})", "max({x})", "avg({x})", "count(distinct {x})", "median({x})", "quantile_disc({x}, 0.5)", "list({x} order by {x})",
    "arg_min(k, {x})", "sum(year({x}))", "count(month({x}))", "max(date_trunc('month', {x}))", "avg(date_diff('day', {y}, {x}))",
)  # fmt: skip
QUERIES = (
    "select x, count(*) from t group by x order by x", "select year(x) y, count(*) from t group by 1 order by 1",
    "select date_trunc('month', x) m, max(k) from t group by 1 order by 1", "select k from t where x + interval '1 day' > y order by k",
    "select k from t where not (year(x) > 2000) order by k", "select k from t where date_trunc('year', x) >= '2024-01-01' order by k",
    "select a.k, b.k from t a join t b on a.x = b.y order by all", "select k, median(x) over (order by k) from t order by k",
)  # fmt: skip
# DuckDB takes infinities for the last microseconds that there are, or a DATE for a TIMESTAMP where it stands alone
OTHERWISE = {
    ("age", "TIMESTAMP WITH TIME ZONE"),
    ("timezone", "DATE"),
    ("timezone_hour", "DATE"),
    ("timezone_minute", "DATE"),
    ("mad", "TIMESTAMP"),
}


def calls(moment: str) -> list[str]:
    """Calls of each signature with one or two moments, the others plain values, by each unit where there is one."""
    found = []
    for signature in signatures()[0]:
        name, types = signature.name, signature.types
        known = (
            name in SCALAR or name in DERIVED or any(name in row.aliases for row in SCALAR.values())
        )
        if (
            signature.kind != "scalar"
            or moment not in types
            or not known
            or not set(types) <= set(PLAIN)
            or (name, moment) in OTHERWISE
        ):
            continue
        args, moments = [], iter(("{x}", "{y}", "{x}"))
        for place, kind in enumerate(types):
            plain = "interval '1 month'" if kind == "INTERVAL" else f"{PLAIN[kind]}::{kind}"
            args.append(next(moments) if kind == moment else GIVEN.get((name, place), plain))
        text = f"{name}({', '.join(args)})"
        found += [
            text.replace("'day'", f"'{unit}'", 1) for unit in (UNITS if "'day'" in text else ("",))
        ]
    return found


def table(moment: str) -> str:
    """The statement that makes a table of pairs of moments, some of which are infinite."""
    first, second = MOMENTS[moment]
    ends = f"'infinity'::{moment}", f"'-infinity'::{moment}"
    pairs = [(e, first) for e in ends] + [(first, e) for e in ends] + [(ends[0], ends[1]), (ends[1], ends[1]), (first, second), ("null", first)]  # fmt: skip
    rows = ", ".join(f"({x}, {y}, {k})" for k, (x, y) in enumerate(pairs))
    return f"create table t as select x::{moment} as x, y::{moment} as y, k from (values {rows}) r(x, y, k)"


def answered(texts: list[str], query: str, setup: list[str]) -> list[str]:
    """The texts that DuckDB answers in a query, which says `{}` for each."""
    found = []
    with duckdb.connect() as database:
        for statement in setup:
            database.execute(statement)
        for text in texts:
            try:
                database.execute(f"create or replace table found as {query.format(text)}")
            except duckdb.Error:
                continue
            found.append(text)
    return found


def together(texts: list[str], rest: str, setup: list[str]) -> None:
    """Ask for 30 texts at once."""
    for start in range(0, len(texts), 30):
        asked = ", ".join(f"{text} as c{i}" for i, text in enumerate(texts[start : start + 30]))
        assert_same_as_duckdb(f"select {asked} {rest}", setup=setup, fuse=("always", "never"))


@pytest.mark.parametrize("moment", MOMENTS)
def test_functions_of_columns(moment: str) -> None:
    setup = ["set timezone = 'UTC'", table(moment)]
    texts = [*calls(moment), *OPERATORS, *(OF_DATES if moment == "DATE" else ())]
    asked = [text.format(x="x", y="y") for text in texts]
    given = answered(asked, "select {} from t", setup)
    assert len(given) > 135
    together(given, ", k from t order by k", setup)
    together(answered([a.format(x="x", y="y") for a in AGGREGATES], "select {} from t", setup), "from t", setup)  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
def test_functions_of_constants(moment: str) -> None:
    setup = ["set timezone = 'UTC'"]
    for end in ("infinity", "-infinity"):
        x, y = f"{moment} '{end}'", MOMENTS[moment][1]
        asked = [text.format(x=a, y=b) for text in (*calls(moment), *OPERATORS) for a, b in ((x, y), (y, x))]  # fmt: skip
        together(answered(list(dict.fromkeys(asked)), "select {}", setup), "", setup)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("query", QUERIES)
def test_queries(moment: str, query: str) -> None:
    assert_same_as_duckdb(query, setup=["set timezone = 'UTC'", table(moment)], fuse=("always", "never"))  # fmt: skip


@pytest.mark.parametrize("value", ["x - y", "y - x", "x::time"])
def test_what_has_no_value_raises(value: str, connection: Any) -> None:
    connection.execute(table("TIMESTAMP"))
    with pytest.raises(FuselineError, match="infinit"):
        connection.sql(f"select {value} from t where k < 2").fetchall()
    assert connection.sql(f"select {value} from t where k = 6").fetchall()
