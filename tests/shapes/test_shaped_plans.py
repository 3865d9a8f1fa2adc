"""Texts that differ in constants run by one plan where its guards hold, and answer as DuckDB does where they do and where they do not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks.tpch import parameters
from fuseline import errors
from tests.compare import assert_same_as_duckdb, connected

TABLE = pa.table(
    {
        "x": pa.array([None, *range(-5, 20)], pa.int32()),
        "tiny": pa.array([None, *range(-5, 20)], pa.int8()),
        "d": pa.array([None, *(Decimal(n) / 4 for n in range(25))], pa.decimal128(9, 2)),
        "f": pa.array([None, float("nan"), -0.0, 0.0, *(n / 3 for n in range(22))], pa.float64()),
        "s": pa.array([None, "", "a", "ab", "b%", "it's", "Ä", *"defghijklmnopqrstuv", ""][:26]),
        "day": pa.array([None, *(date(1994 + n // 4, 1 + n % 4 * 3, 28) for n in range(25))]),
    }
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connected({"t": TABLE}, fuse="never", check=True) as found:
        yield found


def origin(connection: Any, text: str, params: Any = None) -> str:
    frame = connection.sql(text, params)
    frame.to_arrow()
    return str(frame.profile.plan_origin)


# Texts one after the other: the first makes a plan, the others run it, or where a guard fails (!) make another
TEXTS: dict[str, Sequence[str]] = {
    "a bound": ("where x > 1", "where x > 2", "!where x > 200"),
    "two bounds": ("where x > 1 and x > 3", "where x > 2 and x > 9", "!where x > 3 and x > 1"),
    "an empty range": ("where x > 3 and x < 6", "where x > 4 and x < 8", "!where x > 9 and x < 3"),
    "equal bounds": ("where x > 1 and x > 3", "!where x > 2 and x > 2"),
    "beyond a type": ("where tiny < 100", "!where tiny < 200", "where tiny < 40000"),
    "between two values": ("where x < 2.0", "!where x < 2.5", "where x < 3.5"),
    "repeated in a list": ("where x in (1, 2, 3)", "where x in (4, 9, 5)", "!where x in (2, 2, 3)"),
    "two lists": (
        "where x in (1, 2) and x in (2, 1)",
        "where x in (7, 9) and x in (9, 7)",
        "!where x in (7, 9) and x in (9, 8)",
    ),
    "lists of an OR": ("where x = 1 or x = 2", "where x = 7 or x = 9", "!where x = 2 or x = 2"),
    "branches of an OR": (
        "where (x = 1 and s > 'a') or (x = 2 and s < 'c')",
        "where (x = 7 and s > 'h') or (x = 7 and s < 'c')",
        "where (x = 9 and s > 'a') or (x = 4 and s < 'a')",
    ),
    "a list of decimals": ("where x in (1.0, 2.0)", "!where x in (1.5, 2.0)"),
    "a date in a text": ("where day > '1995-01-01'", "where day > '1997-12-31'"),
    "a date and an interval": (
        "where day < date '1996-01-01' - interval '90' day",
        "where day < date '1998-03-01' - interval '60' day",
    ),
    "an interval in words": (
        "where day < date '1996-01-01' + interval '3 months'",
        "where day < date '1996-03-01' + interval '3 months'",
        "!where day < date '1996-01-01' + interval '20 days'",
    ),
    "arithmetic of constants": ("where x > 1 + 2", "where x > 5 + 4"),
    "a divisor": ("where x % 3 = 1", "where x % 5 = 2", "where x % 7 = 1"),
    "a fold to a truth": ("where 1 < 2 and x > 3", "where 2 < 3 and x > 4", "!where 3 < 2 and x > 4"),
    "negatives": ("where x > -3", "where x > -4"),
    "a text": ("where s = 'a'", "where s = 'it''s'", "where s = ''"),
    "doubles": ("where f < 1e0", "where f < 2e0", "where f < 3e0"),
    "null if": ("where nullif(x, 3) is null", "where nullif(x, 19) is null"),
}  # fmt: skip
# Texts of one shape whose constants are a part of the plan
STRUCTURE: dict[str, Sequence[str]] = {
    "LIMIT": ("select x from t order by x limit 2", "select x from t order by x limit 5"),
    "OFFSET": ("select x from t order by x offset 2", "select x from t order by x offset 20"),
    "an ordinal": ("select x as a, tiny - x as b from t order by 1", "select x as a, tiny - x as b from t order by 2"),
    "digits": ("select round(d, 1) as r from t", "select round(d, 0) as r from t"),
    "a scale": ("select cast(d as decimal(9, 2)) as r from t", "select cast(d as decimal(9, 1)) as r from t"),
    "a part of a date": ("select date_part('year', day) as r from t", "select date_part('month', day) as r from t"),
    "a unit": ("select date_trunc('year', day) as r from t", "select date_trunc('quarter', day) as r from t"),
    "a format": ("select strftime(day, '%Y') as r from t", "select strftime(day, '%d') as r from t"),
    "a quantile": ("select quantile_cont(x, 0.5) as r from t", "select quantile_cont(x, 0.1) as r from t"),
    "an expression": ("select regexp_extract(s, '(a)(b)', 1) as r from t", "select regexp_extract(s, '(a)(b)', 2) as r from t"),
    "a field": ("select struct_pack(a := x, b := s)['a'] as r from t", "select struct_pack(a := x, b := s)['b'] as r from t"),
    "columns by a pattern": ("select columns('x|tiny') from t", "select columns('d') from t"),
    "a frame": (
        "select sum(x) over (order by x rows between 1 preceding and current row) as r from t",
        "select sum(x) over (order by x rows between 3 preceding and current row) as r from t",
    ),
    "a name": ("select x + 1 from t", "select x + 2 from t"),
    "a name of a text": ("select 'a' from t", "select 'b' from t"),
    "a range": ("select * from range(3) r(i)", "select * from range(5) r(i)"),
    "grouping sets": (
        "select x + 1 as a, x + 2 as b, count(*) as c from t group by grouping sets ((x + 1), (x + 2))",
        "select x + 2 as a, x + 2 as b, count(*) as c from t group by grouping sets ((x + 2), (x + 2))",
    ),
    "an alias as text": ("select x as 'a' from t", "select x as 'b' from t"),
}  # fmt: skip


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_constants_of_conditions(connection: Any, texts: Sequence[str]) -> None:
    found = []
    for text in texts:
        query = f"select x, s, d, f from t {text.removeprefix('!')} order by x"
        found.append(origin(connection, query))
        assert_same_as_duckdb(query, {"t": TABLE}, connection=connection)
    connection.cache.clear()
    assert found[1:] == ["guards" if text.startswith("!") else "shape" for text in texts[1:]]


@pytest.mark.parametrize("texts", STRUCTURE.values(), ids=STRUCTURE)
def test_constants_that_are_structure(connection: Any, texts: Sequence[str]) -> None:
    for text in texts:
        assert origin(connection, text) != "shape"
        assert_same_as_duckdb(text, {"t": TABLE}, connection=connection)


SHOWN = [
    ("select x + ? as y from t where s like ?", ([1, "a%"], [2, "%b%"], [3, "it's"])),
    ("select sum(x * 2) as y, count(*) from t group by x % 2 having count(*) > 3 order by all", ()),
    ("select case when x > 1 then 'a' else 'b' end as y, count(*) from t group by y order by y", ()),
    ("select x from t where x > (select avg(x) * 0.5 from t where tiny < 9) order by x", ()),
    ("select x from t where exists (select 1 from t u where u.x = t.x + 1 and u.s > 'c') order by x", ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "params"), SHOWN)
def test_other_constants_anywhere(connection: Any, text: str, params: Sequence[Any]) -> None:
    for given in params:
        assert_same_as_duckdb(text, {"t": TABLE}, params=given, connection=connection)
    if not params:
        for digit, other in (("3", "5"), ("1", "2"), ("2", "3"), ("'a'", "'c'"), ("9", "7")):
            assert_same_as_duckdb(text, {"t": TABLE}, connection=connection)
            changed = text.replace(digit, other)
            assert_same_as_duckdb(changed, {"t": TABLE}, connection=connection)


def test_parameters_and_literals_are_served_alike(connection: Any) -> None:
    text = "select x from t where tiny between $low and $high"
    assert origin(connection, text, {"low": 1, "high": 8}) == "new"
    assert origin(connection, text, {"low": 2, "high": 9}) == "shape"
    assert origin(connection, text, {"low": 2.5, "high": 9}) == "new"
    assert origin(connection, text, {"low": None, "high": 9}) == "new"
    assert connection.sql(text, {"low": 2, "high": 4}).fetchall() == [(2,), (3,), (4,)]


def test_an_error_of_one_text_is_no_error_of_another(connection: Any) -> None:
    good, bad = "select x + {} as y from t group by x + {}", "select cast('{}' as date) as d from t"
    for text, right, wrong in ((good, (3, 3), (3, 4)), (bad, ("2024-02-29",), ("2024-02-30",))):
        connection.sql(text.format(*right)).to_arrow()
        with pytest.raises(errors.FuselineError):
            connection.sql(text.format(*wrong)).to_arrow()
        connection.sql(text.format(*right) + " -- again").to_arrow()


def test_an_error_shows_its_place_in_the_text_at_hand(connection: Any) -> None:
    connection.sql("select s::int as n from t where x > 100").to_arrow()
    text = "select  s::int as n  from t where x > 10"
    frame = connection.sql(text)
    with pytest.raises(errors.ConversionError) as error:
        frame.to_arrow()
    assert frame.plan is not None
    assert str(error.value).endswith(f"LINE 1: {text}\n{' ' * 16}^")


def test_names_are_those_of_the_text_at_hand(connection: Any) -> None:
    assert origin(connection, "select x  +  1, s from t") == "new"
    frame = connection.sql("select x + 1, s from t -- other white space")
    assert frame.columns == ["(x + 1)", "s"]
    frame.to_arrow()
    assert frame.profile.plan_origin == "shape"
    assert connection.sql("select x + 2, s from t").columns == ["(x + 2)", "s"]
    assert connection.sql("select X, s from t").columns == ["x", "s"]
    assert connection.sql('select x as "A b" from t where x > 3').columns == ["A b"]
    assert connection.sql('select x as "a b" from t where x > 4').columns == ["a b"]


def test_a_frame_of_such_a_plan_goes_on_as_any(connection: Any) -> None:
    texts = [f"select x, s from t where x > {n}" for n in (3, 17)]
    first, second = (connection.sql(text) for text in texts)
    first.to_arrow()
    second = connection.sql(texts[1] + " ")
    assert second.filter(fuseline.col("x") < 19).fetchall() == [(18, "u")]
    assert len(first.union(second)) == 18


def test_explain_analyze_says_whose_plan_ran(connection: Any) -> None:
    text = "select tiny from t where x > {} and s <> '{}'"
    said = []
    for values in ((1, "a"), (1, "a"), (2, "b")):
        ((_, shown),) = connection.sql(f"explain analyze {text.format(*values)}").fetchall()
        said.append(next(line for line in shown.split("\n") if line.startswith("plan: ")))
        connection.sql(text.format(*values)).to_arrow()
    assert said[0] == "plan: made for this text"
    assert said[1] == "plan: known of this text"
    assert said[2] == "plan: that of a text with other constants, whose guards hold for these"


def test_row_groups_are_those_that_the_constants_ask_for(tmp_path: Path) -> None:
    file = tmp_path / "sorted.parquet"
    pq.write_table(pa.table({"k": list(range(400))}), file, row_group_size=100)
    with connected(fuse="never") as fresh:
        for low in (350, 360, 120, 20, 399, 500):
            text = f"select k from '{file}' where k >= {low}"
            assert fresh.sql(text).count() == max(0, 400 - low)


def test_changes_make_new_plans(tmp_path: Path) -> None:
    text = "select count(*) as n from u where a > {}"
    with connected(fuse="never") as fresh:
        fresh.execute("create table u as select i as a from range(10) r(i)")
        assert [fresh.sql(text.format(n)).fetchall()[0][0] for n in (3, 4)] == [6, 5]
        fresh.execute("insert into u values (100)")
        assert [fresh.sql(text.format(n)).fetchall()[0][0] for n in (5, 6)] == [5, 4]
        fresh.execute("create or replace table u as select 7.5 as a")
        assert [fresh.sql(text.format(n)).fetchall()[0][0] for n in (7, 8)] == [1, 0]
        fresh.execute("set threads = 1")
        assert origin(fresh, text.format(6)) != "shape"
        file = tmp_path / "u.parquet"
        for rows in (5, 9):
            pq.write_table(pa.table({"a": list(range(rows))}), file)
            over = f"select count(*) as n from '{file}' where a > {{}}"
            assert [fresh.sql(over.format(n)).fetchall()[0][0] for n in (1, 2)] == [
                rows - 2,
                rows - 3,
            ]


def test_threads_share_plans_and_get_their_own_answers() -> None:
    with connected({"t": TABLE}, fuse="never") as fresh:
        wrong: list[object] = []

        def ask(thread: int) -> None:
            for n in range(40):
                low = (thread * 7 + n) % 19
                found = fresh.sql(f"select x from t where x > {low} and s <> 'z{n}'").fetchall()
                if (
                    found != [(x,) for x in range(low + 1, 20)][: len(found)]
                    or len(found) < 18 - low
                ):
                    wrong.append((low, found))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_streams_of_tpch_find_their_plans(tpch_tables: dict[str, Path]) -> None:
    """Plans made for the 22 queries of the first stream serve those of the next ones."""
    with connected(tpch_tables, fuse="never") as fresh:
        counts = [
            Counter(origin(fresh, text) for text in parameters.queries(0.01, stream).values())
            for stream in range(3)
        ]
    assert counts[0]["new"] == 22
    assert all(count["shape"] + count["text"] >= 20 for count in counts[1:])
