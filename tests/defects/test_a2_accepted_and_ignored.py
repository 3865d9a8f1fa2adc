"""Syntax that was accepted and had no effect: it answers as in DuckDB, or it is refused at its place."""

from __future__ import annotations

import pytest

from fuseline.errors import (
    AmbiguousName,
    ConversionError,
    FuselineError,
    InvalidQuery,
    ParseError,
    UnknownName,
    Unsupported,
)
from tests.compare import assert_same_as_duckdb
from tests.marks import assert_marks

SETUP = [
    "create table t as select * from (values (1, 'x', 1.5), (2, 'y', 2.5), (null, null, null)) v(i, s, d)",
    "create table u as select * from (values (1, 10), (3, 30)) v(i, n)",
]
REFUSED = [
    (InvalidQuery, "select count(distinct ^*^) from t", "name the columns"),
    (ParseError, "from range(1, 2, 3, ^4^)", "Syntax error"),
    (ParseError, "from range(1, 2, 3, ^null^)", "Syntax error"),
    (ParseError, "from t join u using (t^.^i)", "Syntax error"),
    (ParseError, "select 'j'^:^ 42", "Syntax error"),
    (ParseError, "select 'a' ^'b'^", "Syntax error"),
    (ParseError, "select 1 ^offset^", "expected an expression"),
    (ParseError, "from t ^offset^", "expected an expression"),
    (ParseError, "select i from t ^desc^", "expected"),
    (ParseError, "select 1 ^day^", "AS is missing"),
    (ParseError, "select 1 ^as^", "Syntax error"),
    (ParseError, "select (select 1 as^)^, 2", "expected a name"),
    (ParseError, "select 1 ^in^", "Syntax error"),
    (UnknownName, "select ^iif(true, 1, 2)^", 'no function "iif". Write if(condition'),
    (UnknownName, "select ^array_sum(1)^", 'no function "array_sum"'),
    (ParseError, "begin^ garbage^", "behind BEGIN"),
    (ParseError, "checkpoint memory ^garbage^", "CHECKPOINT"),
    (UnknownName, "create index j on t (^nosuch^)", 'no column "nosuch"'),
    (ParseError, "select ^1e^", "digits are missing"),
    (ConversionError, "select interval ^'5 day' hour^", "a unit of its own"),
    (InvalidQuery, "select distinct on (^'x'^) i from t", "A constant in DISTINCT ON"),
    (InvalidQuery, "select distinct on (^1.5^) i from t", "A constant in DISTINCT ON"),
    (AmbiguousName, "select ^*^ from t a, u a", 'called "a" and have a column "i"'),
    (AmbiguousName, "select ^a.i^ from t a, u a", 'called "a"'),
    (AmbiguousName, "select t.i, u.i from t, u order by ^i^", '"i" is ambiguous'),
    (UnknownName, "select nosuch.^t^.i from t", 'no table "nosuch.t"'),
    (UnknownName, "select main.^a^.i from t a", 'no table "main.a"'),
    (UnknownName, "from nosuch.main.^t^", 'no table "nosuch.main.t"'),
    (UnknownName, "drop table ^nosuch.main.t^", 'no schema "nosuch.main"'),
]
ANSWERED = [
    "select 1e2+1 as a, 1e2-1e1+2 as b, 1e2 +1 as c, 1e+2+1 as d, 5-1e-2-1 as e",
    "select i from t where i < 1e0+1",
    'select i as offset, i as "order" from t',
    "select t.i as left, main.t.s, memory.main.t.d from t",
    "select 1 from t a, u a",
    "select a.s, a.n from t a, u a",
    "select -t.i as i, u.i from t, u order by i, u.i",
    "select u.i, -t.i as i from t, u order by i, u.i",
    "select i as x, -i as x from t order by x",
    "select t.i from t, u order by i, n",
    "select i as x, -i as x from t union all select 1, 1 order by x, 2",
]


@pytest.mark.parametrize(("kind", "marked", "message"), REFUSED, ids=[r[1] for r in REFUSED])
def test_it_is_refused(connection, kind, marked, message) -> None:
    with pytest.raises(kind) as error:
        connection.sql(marked.replace("^", ""))
    assert_marks(error.value, marked, message)


def test_rows_of_values_have_values(connection) -> None:
    with pytest.raises(ParseError, match="needs values"):
        connection.sql("values ()")


@pytest.mark.parametrize("query", [
    "from t limit 1 cross join u", "from t order by i join u on true",
    "select i from t having max(i) > 0 group by i",
    "select i from t order by i union select 1", "select i from t limit 1 union all select 1",
    "from t cross join u on true", "from t cross join u using (i)", "from t natural join u using (i)",
    "select i from t group by distinct i", "select i <=> 1 from t", "select s rlike 'x' from t",
    "select mode(i) within group (order by i) from t",
])  # fmt: skip
def test_what_duckdb_does_not_parse_is_refused(connection, query: str) -> None:
    with pytest.raises(FuselineError):
        connection.sql(query)


@pytest.mark.parametrize("statement", [
    "vacuum nosuch", "analyze nosuch", "pragma enable_profiling garbage", "set local threads = 2", "set threads 2",
])  # fmt: skip
def test_the_rest_of_a_statement_is_read(connection, statement: str) -> None:
    with pytest.raises(FuselineError):
        connection.sql(statement)


def test_nothing_is_written_to_the_terminal(connection, capfd) -> None:
    with pytest.raises(Unsupported):
        connection.sql("create server x")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("words", ["with no data", "with data", ""])
def test_a_table_with_no_data_is_empty(words: str) -> None:
    setup = [*SETUP, f"create table w as select i + 1 as j, s from t {words}"]
    assert_same_as_duckdb("from w", setup=setup)


def test_microseconds_are_what_a_timestamp_keeps() -> None:
    for digits in (0, 3, 6):
        assert_same_as_duckdb(f"select '2024-01-01 10:00:00.523456'::timestamp({digits}) as x")


@pytest.mark.parametrize("query", ANSWERED)
def test_it_answers(query: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP)
