"""What is wrong with a query: the class, the sentence, and the caret below the place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from tests.marks import assert_marks
from tests.sql.tables import T, U

TABLES = {"t": T, "u": U, "orders": pa.table({"o_orderkey": [1], "o_custkey": [2]})}


# (class, query with ^...^ around the place that the caret marks, part of the message)
CASES = [
    (errors.UnknownName, "select ^o_orderky^ from orders", 'no column "o_orderky" here. Did you mean "o_orderkey"?'),
    (errors.UnknownName, 'select x from t where s = ^"blue"^', "A text is put in single quotes: 'blue'."),
    (errors.UnknownName, "select datediff(^month^, d, d) from t", "A unit of dates is a text: 'month'."),
    (errors.UnknownName, "select * from ^orderz^", 'no table "orderz". Did you mean "orders"?'),
    (errors.UnknownName, "select ^t.q^ from t", 'The table "t" has no column "q". There are "x", "y", "s", "d".'),
    (errors.UnknownName, "select ^r^.x from t", 'no table "r" in this query. There is "t".'),
    (errors.UnknownName, "select x from t as q where ^t^.x = 1", 'no table "t" in this query'),
    (errors.UnknownName, "select main.^t^.x from t t", 'no table "main.t" in this query'),
    (errors.UnknownName, "select ^uper(s)^ from t", 'no function "uper". Did you mean "upper"'),
    (errors.UnknownName, "select * exclude (^nope^) from t", 'no column "nope" to EXCLUDE'),
    (errors.UnknownName, "select * from t join u using (^q^)", 'no column "q"'),
    (errors.UnknownName, "select u.x from t semi join u on true where ^u^.x = 1 or u.x = 1", 'no table "u"'),
    (errors.UnknownName, "insert into ^orderz^ values (1)", 'Did you mean "orders"?'),
    (errors.AmbiguousName, "select ^x^ from t, u", '"x" is ambiguous: name one of "t.x", "u.x"'),
    (errors.AmbiguousName, "select t.x from t join u on ^x^ = z", '"x" is ambiguous'),
    (
        errors.AmbiguousName,
        "select ^x^ from t join u using (x), (t v join u w using (x))",
        '"x" is ambiguous',
    ),
    (errors.AmbiguousName, "select ^a.x^ from t a, u a", 'Two tables of this query are called "a"'),
    (errors.TypeMismatch, "select * from t where ^d + d^ = 1", "DATE"),
    (errors.TypeMismatch, "select x from t union select ^i^ from (select null::interval as i)", "cannot combine"),
    (errors.InvalidQuery, "select x from t where ^sum(y)^ > 1", "Aggregates are not allowed in WHERE"),
    (errors.InvalidQuery, "select x from t group by ^sum(y)^", "Aggregates are not allowed in GROUP BY"),
    (errors.InvalidQuery, "select sum(y) from t group by ^1^", "not allowed in GROUP BY"),
    (errors.InvalidQuery, "select sum(^sum(y)^) from t", "Aggregates are not allowed"),
    (errors.UnknownName, "select ^nvl(s, 'x')^ from t", 'no function "nvl". Write coalesce(x, ...)'),
    (errors.Unsupported, "from ^read_parquett('x')^", 'no table function "read_parquett". Did you mean "read_parquet"'),
    (errors.UnknownName, "select ^cuont(*)^ from t", 'no function "cuont". Did you mean "count"'),
    (errors.ParseError, "select x,^,^ y from t", "This comma is one too many"),
    (errors.ParseError, "select 1 + ^upper(s, lower(s))^, x from t", "upper() takes at most 1 argument."),
    (errors.ParseError, "select (select ^max(x, 1, 2)^) from t", "max() takes at most 2 arguments."),
    (errors.ParseError, "select x from t where sum(x) > ^Lower()^", "Lower() needs arguments."),
    (errors.ParseError, "select ^nullif(x)^ from t", "nullif() needs more arguments."),
    (errors.UnknownName, "from ^'notes.txt'^", "A file is read by a name that ends in .parquet, .csv"),
    (errors.ParseError, "select (1 +^)^ from t", "expected an expression"),
    (errors.ParseError, "^select count(*) from t group by^", "missing after GROUP BY"),
    (errors.InvalidQuery, "select string_agg(distinct s, ',' order by ^y^) from t", "reads its arguments alone"),
    (errors.Unsupported, "select quantile_disc(^x, 0.5 order by x^ desc) over () from t", "in a window"),
    (errors.InvalidQuery, "select t.x from t join u on ^sum(y)^ = 1", "Aggregates are not allowed in"),
    (errors.InvalidQuery, "select grouping(^x^) from t", "GROUPING takes columns of GROUP BY"),
    (errors.InvalidQuery, "select x from t where ^grouping(x)^ = 0", "of a query with GROUP BY"),
    (errors.InvalidQuery, "select sum(^grouping(x)^) from t group by x", "of a query with GROUP BY"),
    (errors.InvalidQuery, "select ^x^ from t order by grouping(x)", "neither in GROUP BY"),
    (errors.UnknownName, "select interval (^2^) foo", 'no interval unit "foo"'),
    (errors.InvalidQuery, "select ^s^, sum(y) from t group by x", '"s" is neither in GROUP BY nor inside'),
    (errors.InvalidQuery, "select ^x^, count(*) from t", "add it to GROUP BY, or use any_value(x)"),
    (errors.InvalidQuery, "select count(*) from t having ^x^ > 1", '"x" is neither in GROUP BY'),
    (errors.InvalidQuery, "select sum(x) from t order by ^y^", '"y" is neither in GROUP BY'),
    (errors.InvalidQuery, "select x from t order by ^2^", "ORDER BY 2 names no column: the SELECT list has 1"),
    (errors.InvalidQuery, "select x from t order by ^'x'^", "A constant in ORDER BY orders nothing"),
    (errors.InvalidQuery, "select x from t order by -^1^", "ORDER BY -1 names no column: the SELECT list has 1"),
    (errors.InvalidQuery, "select x from t group by ^3^", "GROUP BY 3 names no column"),
    (errors.InvalidQuery, "select x from t group by -^1^", "GROUP BY -1 names no column"),
    (errors.InvalidQuery, "select x, y from t union select ^x from t^", "2 and 1 columns"),
    (errors.InvalidQuery, "select (select ^x, y from t^)", "2 columns and 1 is expected"),
    (errors.InvalidQuery, "values (1, 2), (^3^)", "has 1 columns and the first has 2"),
    (errors.InvalidQuery, "select ^*^", "* needs a FROM clause"),
    (errors.InvalidQuery, "with a as (select 1), ^a^ as (select 2) select 1", 'WITH names "a" twice'),
    (errors.InvalidQuery, "select * from (select 1) ^q(a, b)^", '"q" has 1 columns and is given 2 names'),
    (errors.InvalidQuery, "select x from t limit -^1^", "LIMIT cannot be negative"),
    (errors.OutOfRange, "select x from t limit ^1e999^", "LIMIT must be a BIGINT, and inf is none"),
    (errors.OutOfRange, "select x from t limit ^9223372036854775808^", "LIMIT must be a BIGINT"),
    (errors.OutOfRange, "select * from range(^1e19^)", "must be a BIGINT"),
    (errors.InvalidQuery, "select x from t where x = ^?^", "The parameter $1 has no value"),
    (errors.InvalidQuery, "select x from t where x = ^$key^", "The parameter $key has a name"),
    (errors.InvalidQuery, "select * from t natural join (select ^1 as q^)", "no column name in common"),
    (errors.InvalidQuery, "select * from ^range(1, 5, 0)^", "step of range() cannot be 0"),
    (errors.InvalidQuery, "select * from ^range(date '2024-01-01', date '2024-01-02', interval 0 day)^", "step of range() cannot be 0"),
    (errors.InvalidQuery, "select * from t full join (select ^t.x) q^ on true", "right side of a FULL JOIN"),
    (errors.InvalidQuery, "select x from t qualify ^x = 1^", "QUALIFY needs a window function"),
    (errors.InvalidQuery, "select x from t where ^row_number^() over () = 1", "Window functions are not allowed in WHERE"),
    (errors.UnknownName, "select ^x.nosuch^() from t", "no function"),
    (errors.Unsupported, "select ^s collate nocase^ from t", "outside of ORDER BY"),
    (errors.Unsupported, "select s from t order by ^s collate de^", "NOACCENT"),
    (errors.TypeMismatch, "select x from t order by ^x collate nocase^", "VARCHAR"),
    (errors.InvalidQuery, "select s collate nocase = ^s collate nfc^ from t", "different"),
    (errors.InvalidQuery, "select x from t limit ^120^%", "at most 100%"),
    (errors.InvalidQuery, "select x from t limit (select -^1^)", "cannot be negative"),
    (errors.FileError, "select * from ^read_csv('a.csv')^", 'no file "a.csv"'),
    (errors.Unsupported, "select * from ^read_xlsx('a.xlsx')^", 'no table function "read_xlsx"'),
    (errors.UnknownName, "merge into ^tt^ using u on t.x = u.x when matched then delete", 'There is no table "tt"'),
    (errors.Unsupported, "create table n (a varchar collate ^nocase^)", "write COLLATE where it is compared or sorted"),
    (errors.Unsupported, "create table n (a int references ^t (x)^)", "Foreign keys are not supported"),
    (errors.ParseError, "^selct^ 1", 'at or near "selct"'),
    (errors.ParseError, "select * from t where x = 1 ^)^", 'at or near ")"'),
    (errors.ParseError, "select sum^(^x from t", '")" is missing before "from"'),
    (errors.ParseError, "select * from t where x ^=^", "at the end of the statement: expected an expression"),
    (errors.ParseError, "select case when x then ^2^", "at the end of the statement: expected END"),
    (errors.ParseError, "select ^'abc^", "a string does not end"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "marked", "message"), CASES, ids=[c[1] for c in CASES])
def test_each_error_says_what_where_and_why(
    kind: type[errors.FuselineError], marked: str, message: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(kind) as caught:
        connection.sql(marked.replace("^", ""))
    assert_marks(caught.value, marked, message)


def test_the_line_of_a_long_query_is_shown(connection: fuseline.Connection) -> None:
    with pytest.raises(errors.UnknownName) as caught:
        connection.sql("select x,\n\ty\nfrom t\nwhere\tz > 1")
    assert str(caught.value).split("\n")[1:] == ["LINE 4: where\tz > 1", "             \t^"]


def test_the_right_statement_of_a_script_is_shown(connection: fuseline.Connection) -> None:
    with pytest.raises(errors.UnknownName) as caught:
        connection.sql("select ';' as a; -- ; \n select nope from t; select 1")
    assert str(caught.value).split("\n")[1:] == [
        "LINE 2:  select nope from t; select 1",
        "                ^^^^",
    ]


def test_an_error_inside_a_view_shows_the_view(connection: fuseline.Connection) -> None:
    connection.execute("create table gone as select 1 as a; create view v as select a from gone")
    connection.execute("drop table gone")
    with pytest.raises(errors.UnknownName) as caught:
        connection.sql("select * from v")
    assert 'in the view "v"' in str(caught.value)
    with pytest.raises(errors.UnknownName, match='in the prepared statement "p"'):
        connection.execute("prepare p as select nope from t; execute p")
    with pytest.raises(errors.UnknownName, match='in the macro "m"'):
        connection.execute("create macro m() as (select nope from t); select m()")
    assert "LINE 1: select a from gone" in str(caught.value)


def test_a_view_that_reads_itself(connection: fuseline.Connection) -> None:
    connection.execute("create view a as select 1 as x; create view b as select x from a")
    connection.execute("create or replace view a as select x from b")
    with pytest.raises(errors.InvalidQuery, match="reads itself"):
        connection.sql("select * from a")


def test_surplus_parameters(connection: fuseline.Connection) -> None:
    with pytest.raises(errors.InvalidQuery, match=r"params has a value for \$2"):
        connection.sql("select ?", [1, 2])
    with pytest.raises(errors.InvalidQuery, match=r"params has a value for \$b"):
        connection.sql("select $a", {"a": 1, "b": 2})


def test_the_connection_goes_on_after_an_error(connection: fuseline.Connection) -> None:
    with pytest.raises(errors.UnknownName):
        connection.sql("select nope from t")
    assert connection.execute("select count(*) from t").fetchall() == [(5,)]


@pytest.mark.parametrize(
    "marked",
    [
        "drop table ^nope^", "drop view ^t^", "drop schema ^nope^", "drop sequence ^nope^", "drop macro ^nope^",
        "create table ^t^(b int)", "create schema ^main^", "create type e as enum ('b', ^'a'^, 'a')", "set ^nope^ = 1", "set threads = ^'many'^",
        "reset ^nope^", "alter table t rename to ^v^", "alter table t alter a type ^nope^", "comment on column t.^nope^ is 'x'", "detach ^nope^",
        "deallocate ^nope^", "copy ^nope^ to 'x.csv'", "select 1; drop index ^nope^",
    ],
)  # fmt: skip
def test_errors_of_statements_show_the_name(marked: str) -> None:
    connection = fuseline.connect(device="cpu")
    connection.execute("create table t(a int); create view v as select 1")
    with pytest.raises(errors.FuselineError) as caught:
        connection.execute(marked.replace("^", ""))
    assert_marks(caught.value, marked)


def test_a_proposal_is_not_the_place() -> None:
    connection = fuseline.connect(device="cpu")
    connection.execute("create table sales(a int)")
    with pytest.raises(errors.FuselineError, match='Did you mean "sales"') as caught:
        connection.execute("drop table /* sales */ sale -- sales")
    assert caught.value.span == errors.Span(23, 27)
