"""What raises while a query runs shows its place in the SQL, on each backend, fused or one operator at a time."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import fuseline
from fuseline import col, errors
from tests.compare import assert_same_as_duckdb, connected
from tests.marks import assert_marks

pytestmark = pytest.mark.usefixtures("backend", "fuse")

ROWS = 40
LARGEST = 2**63 - 1
T = pa.table(
    {
        "k": pa.array([i % 7 for i in range(ROWS)], pa.int64()),
        "a": pa.array([LARGEST - i % 3 for i in range(ROWS)], pa.int64()),
        "i": pa.array([2**31 - 1] * ROWS, pa.int32()),
        "s": ["7" if i != 20 else "seven" for i in range(ROWS)],
        "d": pa.array([Decimal("9" * 36 + ".00")] * ROWS, pa.decimal128(38, 2)),
        "day": pa.array([0] * ROWS, pa.date32()),
    }
)
U = pa.table({"k": [1, 1, 2], "v": [1, 2, 3]})
SUM = "38 digits: cast"
TWO_ROWS = "More than one row returned by a subquery used as an expression: add LIMIT 1"


TABLES = {"t": T, "u": U, "one": {"n": [1]}}
SETUP = (
    "create view v as select s, 10 // k as q from t",
    "create view w(x) as select q + (1) from v",
)


# (class, query with ^...^ around the place that the caret marks, part of the message)
CASES = [
    (errors.OutOfRange, "select ^a + 1^ from t", "Overflow in addition of BIGINT"),
    (errors.OutOfRange, "select k, sum(^a * (k + 2)^) from t where k > 1 group by k", "Overflow in multiplication of BIGINT"),
    (errors.OutOfRange, "select sum(^i + i^ + 1) from t", "Overflow in addition of INTEGER"),
    (errors.OutOfRange, "select count(*) from t where ^a + k^ > 1 and s like '7%'", "Overflow in addition of BIGINT"),
    (errors.OutOfRange, "select k, ^sum(d)^ as total from t group by k order by total", SUM),
    (errors.OutOfRange, "select t.k from t join u on t.k = u.k and ^t.a + u.v^ > 0", "Overflow in addition of BIGINT"),
    (errors.OutOfRange, "select k from t where k in (select ^v + 9223372036854775807^ from u)", "Overflow in addition"),
    (errors.OutOfRange, "with c as (select ^a + 1^ as x from t) select max(x) from c where x > 5", "Overflow in addition"),
    (errors.OutOfRange, "select ^9223372036854775807 + 1^", "Overflow in addition of BIGINT"),
    (errors.OutOfRange, "select ^day + i^ from t", "Date out of range"),
    (errors.ExecutionError, "select 5 + (^a // k^) from t", "Division by zero"),
    (errors.ExecutionError, "select sum(^a % k^) from t", "use nullif(divisor, 0) to get NULL for such rows."),
    (errors.ExecutionError, "select ^1 // 0^", "Division by zero"),
    (errors.ExecutionError, "select k,\n\t(^a // k^) as x\nfrom t", "Division by zero"),
    (errors.ExecutionError, "select case when k > 2 then a // k else ^a // (k - k)^ end from t", "Division by zero"),
    (errors.ExecutionError, "select ^strftime(day, '%Q')^ from t", "Unrecognized specifier %Q in the format '%Q'."),
    (errors.ExecutionError, "select ^strptime(s, '%Y')^ from t", "Could not parse string 'seven' according to the format '%Y'"),
    (errors.ExecutionError, "select (select ^v from u where u.k = t.k^) from t", TWO_ROWS),
    (errors.ExecutionError, "select k from t where k = (select ^v from u^)", TWO_ROWS),
    (errors.ConversionError, "select k from t where cast(^s^ as integer) > 3", "Could not convert string 'seven' to INTEGER: use TRY_CAST"),
    (errors.ConversionError, "select cast(^k + 300^ as tinyint) from t", "out of range for TINYINT"),
    (errors.ConversionError, "select cast(^300^ as tinyint)", "out of range for TINYINT"),
    (errors.ConversionError, "select ^make_date(2021, 2, 29 + k)^ from t", "2021-2-29 is no day of the calendar"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "marked", "message"), CASES, ids=[c[1] for c in CASES])
def test_the_place_of_what_raises(
    kind: type[errors.FuselineError], marked: str, message: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(kind) as caught:
        connection.sql(marked.replace("^", "")).fetchall()
    assert_marks(caught.value, marked, message)
    assert connection.sql("select n + 1 from one").fetchall() == [(2,)]


def test_a_statement_of_a_script(connection: fuseline.Connection) -> None:
    marked = "create or replace table made as select 1 as n;\ninsert into made select ^n // 0^ from one; select 2"
    with pytest.raises(errors.ExecutionError) as caught:
        connection.execute(marked.replace("^", ""))
    assert_marks(caught.value, marked)


def test_parameters(connection: fuseline.Connection) -> None:
    with pytest.raises(errors.OutOfRange) as caught:
        connection.execute("select 1, ? + a from t", [5])
    assert_marks(caught.value, "select 1, ^? + a^ from t")


@pytest.mark.parametrize(
    "query", ["select q from v", "select x\nfrom w", "select s || q from v, one"]
)
def test_a_view_shows_its_own_text(query: str, connection: fuseline.Connection) -> None:
    with pytest.raises(errors.ExecutionError) as caught:
        connection.sql(query).fetchall()
    assert_marks(caught.value, "select s, ^10 // k^ as q from t", '(in the view "v")')


def test_a_query_over_a_view_shows_the_query(connection: fuseline.Connection) -> None:
    marked = "select ^n // 0^ from v, one"
    with pytest.raises(errors.ExecutionError) as caught:
        connection.sql(marked.replace("^", "")).fetchall()
    assert_marks(caught.value, marked)


def test_methods_of_a_frame_keep_the_text(connection: fuseline.Connection) -> None:
    marked = "select k, ^a // k^ as x from t"
    frame = connection.sql(marked.replace("^", ""))
    for run in (frame.show, frame.sort("k").fetchall, frame.join(frame, on="k").fetchall):
        with pytest.raises(errors.ExecutionError) as caught:
            run()
        assert_marks(caught.value, marked)


def test_no_place_where_there_is_no_text_or_two(connection: fuseline.Connection) -> None:
    table = connection.table("t")
    queries = [connection.sql(f"select k, {n} // k as x from t") for n in (1, 2)]
    for frame in (table.select(x=col("a") // col("k")), queries[0].union(queries[1])):
        with pytest.raises(errors.ExecutionError, match=r"^Division by zero[^\n]*$"):
            frame.fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from t where (k > 2 and a // k > 5) or (k = 1 and a // (k - 5) < 0)",
        "select k from t where k = 0 or (k = 1 or a // (k - 1) < 5)",
        "select case when k > 0 and a // k > 5 then 'much' else 'little' end, count(*) from t group by 1",
        "select sum(k) from t where nullif(k, 3) <> 0 and a // k > 5",
        "select sum(k) from t where nullif(k, 3) = 0 or a // k > 5",
        "select count(*), sum(k) from t where s <> 'seven' and s::integer + k > 8",
        "select count(*) from many where s like '%7' and 70 // k > 9",
        "select count(*) from many where k <> 0 and 70 // k > 9",
    ],
)
def test_rows_that_are_decided_raise_nothing(query: str, backend: str, fuse: str) -> None:
    n = range(150_000)  # more than a filter in stages takes
    many = pa.table({"k": [i % 10 for i in n], "s": [str(i % 10) for i in n]})
    assert_same_as_duckdb(query, {"t": T, "many": many}, backend=backend, fuse=(fuse,))


def test_a_kernel_that_may_overflow_leaves_the_error_to_operators(backend: str) -> None:
    with connected({"t": T}, backend, fuse="always") as connection:
        frame = connection.sql("select sum(a + k) from t")
        assert "Pipeline" in frame.explain()
        with pytest.raises(errors.OutOfRange) as caught:
            frame.fetchall()
    assert_marks(caught.value, "select sum(^a + k^) from t")
