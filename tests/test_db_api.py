"""The Python database interface: PEP 249's public suite, transactions, many rows at once, and clients of others that ask for no more."""

from __future__ import annotations

import datetime
import itertools
import random
import threading
from decimal import Decimal
from typing import Any

import dbapi20
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.errors import (
    ConversionError,
    FuselineError,
    InvalidQuery,
    NoRows,
    TransactionError,
    Unsupported,
)


class TestCompliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    """All 36 tests of `dbapi-compliance`; the two that each driver has to write itself are at the end."""

    driver = fuseline
    connect_args = ("cpu",)

    def test_nextset(self) -> None:
        """A text of several statements gives the rows of the last: there are no more sets."""
        with self._connect() as connection:
            cursor = connection.cursor().execute("select 1; select 2")
            assert cursor.fetchall() == [(2,)]
            assert not hasattr(cursor, "nextset")

    def test_setoutputsize(self) -> None:
        """Values come whole, whatever size was asked for."""
        with self._connect() as connection:
            cursor = connection.cursor()
            cursor.setoutputsize(3, 0)
            cursor.execute("select repeat('ab', 1000)")
            assert cursor.fetchone() == ("ab" * 1000,)


@pytest.fixture
def filled(connection: Any) -> Any:
    connection.execute("create table t (a integer, b varchar)")
    connection.execute("insert into t values (1, 'x')")
    return connection


def rows(connection: Any, query: str = "from t order by all") -> list[Any]:
    return list(connection.execute(query).fetchall())


def test_every_error_is_of_a_class_that_the_standard_names() -> None:
    named = ["DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"]
    parents = tuple(getattr(errors, n) for n in [*named, "NotSupportedError", "InterfaceError"])
    own = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, FuselineError)]
    assert len(own) > 20
    assert [
        e
        for e in own
        if not issubclass(e, (*parents, errors.DatabaseError)) and e is not FuselineError
    ] == []
    assert fuseline.Error is FuselineError


def test_description_names_kinds_of_types(connection: Any) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount, cursor.rownumber) == (None, -1, None)
    cursor.execute(
        "select 'x', 1.5, 2::utinyint, date '2024-01-01', timestamp '2024-01-01', 1e0, true"
    )
    codes = [column[1] for column in cursor.description]
    kinds = [fuseline.STRING, fuseline.NUMBER, fuseline.DATETIME, fuseline.BINARY, fuseline.ROWID]
    assert [[code == kind for kind in kinds].index(True) for code in codes[:6]] == [
        0,
        1,
        1,
        2,
        2,
        1,
    ]
    assert not any(codes[6] == kind for kind in kinds)
    assert cursor.rownumber == 0
    cursor.fetchone()
    assert cursor.rownumber == 1


def test_a_cursor_is_used_again_and_ends(connection: Any) -> None:
    cursor = connection.cursor()
    assert cursor.execute("select 1").fetchall() == [(1,)]
    assert cursor.execute("select x from range(3) t(x)").fetchmany(2) == [(0,), (1,)]
    with pytest.raises(FuselineError):
        cursor.execute("select nothing")
    with pytest.raises(NoRows, match="execute a query first"):
        cursor.fetchone()
    cursor.close()
    cursor.close()
    for call in (cursor.fetchall, lambda: cursor.execute("select 1"), cursor.to_arrow):
        with pytest.raises(NoRows, match="closed"):
            call()


def test_a_connection_ends_once() -> None:
    with fuseline.connect(device="cpu") as opened, opened.cursor() as cursor:
        cursor.close()
        opened.close()  # both blocks end in silence
    for call in (opened.close, opened.cursor, opened.commit, opened.rollback):
        with pytest.raises(fuseline.InterfaceError, match="closed"):
            call()
    with pytest.raises(fuseline.Error, match="closed"):
        cursor.execute("select 1")


def test_results_leave_as_what_other_libraries_hold(connection: Any) -> None:
    def run() -> Any:
        return connection.execute("select x::integer as x, 'y' as y from range(5) t(x)")

    expected = run().to_arrow()
    assert run().fetch_arrow_table() == expected
    assert run().to_arrow_reader(2).read_all() == expected
    assert pa.table(run()) == expected
    assert run().df().equals(expected.to_pandas())
    assert run().pl().equals(pl.from_arrow(expected))
    cursor = run()
    cursor.fetchone()
    assert pa.table(cursor).num_rows == 4


def test_pandas_and_polars_read_through_a_connection(filled: Any) -> None:
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql("select a, b from t where a = ?", filled, params=(1,))
    assert frame.to_dict("list") == {"a": [1], "b": ["x"]}
    assert pl.read_database("from t", filled).rows() == [(1, "x")]


# Transactions

STEPS = [
    "begin",
    "commit",
    "rollback",
    "insert into t values (2, 'y')",
    "create table u as select 7 as c",
    "drop table t",
    "create or replace table t as select 3 as a, 'z' as b",
    "create view v as select a + 1 as a from t",
]


def _state(connection: Any) -> list[Any]:
    """Whether a transaction is open, and what the names give."""
    found: list[Any] = []
    for name in ("t", "u", "v"):
        try:
            found.append(connection.execute(f"from {name} order by all").fetchall())
        except Exception:
            found.append(None)
    return found


def _does(connection: Any, step: str) -> bool:
    try:
        connection.execute(step)
    except (FuselineError, duckdb.Error):
        return False
    return True


def test_transactions_leave_what_duckdb_leaves() -> None:
    """All pairs of these steps and some longer ones, each refused where DuckDB refuses it, and a rollback at the end.

    COMMIT of a transaction that failed rolls it back in both; DuckDB does not say so.
    """
    silent = 0
    draw = random.Random(3)
    longer = [tuple(draw.choices(STEPS, weights=[3, 2, 2, 2, 1, 1, 1, 1], k=6)) for _ in range(30)]
    for steps in (*itertools.product(STEPS, repeat=2), *longer):
        with fuseline.connect("cpu") as here, duckdb.connect() as there:
            for connection in (here, there):
                connection.execute("create table t (a integer, b varchar)")
                connection.execute("insert into t values (1, 'x')")
            for step in (*steps, "rollback"):
                failed = here.catalog.failed
                ended = _does(here, step), _does(there, step)
                if step == "commit" and failed:
                    silent += 1
                    assert ended == (False, True)
                else:
                    assert ended[0] == ended[1], (steps, step)
                assert _state(here) == _state(there), (steps, step)
    assert silent


@pytest.mark.parametrize(
    "bad", ["selec", "select nothing", "drop table nothing", "insert into t values ('many', '')"]
)
def test_an_error_ends_a_transaction_as_in_duckdb(filled: Any, bad: str) -> None:
    frame = filled.sql("from t")
    filled.begin()
    filled.execute("insert into t values (2, 'y')")
    with pytest.raises(FuselineError):
        filled.execute(bad)
    for call in (lambda: filled.execute("from t"), frame.to_arrow, lambda: filled.sql("select 1")):
        with pytest.raises(TransactionError, match="ROLLBACK"):
            call()
    with pytest.raises(TransactionError, match="rolled back"):
        filled.commit()
    assert rows(filled) == [(1, "x")]
    filled.begin()
    with pytest.raises(FuselineError):
        filled.execute(bad)
    filled.rollback()
    assert rows(filled) == [(1, "x")]


def test_methods_begin_and_end_transactions(filled: Any) -> None:
    filled.commit()  # everything is kept already
    with pytest.raises(Unsupported, match="begin"):
        filled.rollback()
    filled.begin()
    filled.execute("insert into t values (2, 'y')")
    filled.rollback()
    assert rows(filled) == [(1, "x")]
    filled.begin()
    with pytest.raises(TransactionError, match="open already"):
        filled.begin()  # an error as any other
    with pytest.raises(TransactionError, match="ROLLBACK"):
        rows(filled)
    filled.rollback()
    filled.begin()
    filled.execute("insert into t values (2, 'y')")
    filled.commit()
    assert rows(filled) == [(1, "x"), (2, "y")]


def test_a_transaction_that_only_reads_refuses_changes(filled: Any) -> None:
    for text in ("insert into t values (2, 'y')", "drop table t", "create table u (a int)"):
        filled.execute("begin transaction read only")
        assert rows(filled) == [(1, "x")]
        with pytest.raises(TransactionError, match="only reads"):
            filled.execute(text)
        filled.execute("rollback")
    filled.execute("insert into t values (2, 'y')")


@pytest.mark.parametrize("fails", [False, True])
def test_columns_of_what_was_rolled_back_are_let_go_of(filled: Any, fails: bool) -> None:
    filled.begin()
    filled.execute("create table u as select x from range(1000) t(x)")
    rows(filled, "select sum(x) from u")
    cached = {column.source for column in filled.cache.stats()}
    assert cached
    if fails:
        with pytest.raises(FuselineError):
            filled.execute("select nothing")
        with pytest.raises(TransactionError):
            filled.commit()
    else:
        filled.rollback()
    assert not cached & {column.source for column in filled.cache.stats()}
    assert rows(filled, "select count(*) from fuseline_columns() where table_name = 'u'") == [(0,)]


# Many rows at once


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were bound."""
    from fuseline import sql

    texts: list[str] = []
    plan = sql.plan_sql
    monkeypatch.setattr(
        sql, "plan_sql", lambda text, *given: (texts.append(text), plan(text, *given))[1]
    )
    return texts


SETS: dict[str, list[Any]] = {
    "numbers": [(number, str(number)) for number in range(1000)],
    "nulls": [(None, "x"), (1, None), (None, None)],
    "all null": [(None, None), (None, None)],
    "several types": [(1, "x"), (2.4, "y"), ("3", "z")],
    "large": [(2**31 - 1, "x"), (-(2**31), "")],
    "decimals": [(Decimal("1.5"), "x"), (Decimal("2.25"), "y")],
    "texts": [("1", "x"), ("2", "y")],
    "dates": [(1, datetime.date(2024, 2, 29)), (2, datetime.date(1, 1, 1))],
    "truths": [(True, False), (False, True)],
    "one": [(5, "x")],
}


@pytest.mark.parametrize("name", SETS)
def test_many_rows_are_those_that_duckdb_stores(name: str, bound: list[str]) -> None:
    found = []
    with fuseline.connect("cpu") as here, duckdb.connect() as there:
        for connection in (here, there):
            connection.execute("create table t (a integer, b varchar)")
            connection.executemany("insert into t values (?, ?)", SETS[name])
            found.append(connection.execute("from t order by all").fetchall())
    assert found[0] == found[1]
    assert len(found[0]) == len(SETS[name])
    inserts = [text for text in bound if text.startswith("insert")]
    assert len(inserts) == (len(SETS[name]) if name == "several types" else 1)


def test_many_rows_by_names_in_some_columns_with_constants(filled: Any, bound: list[str]) -> None:
    cursor = filled.executemany(
        "insert into t (b, a) values ($text, 7)", [{"text": "p"}, {"text": "q"}]
    )
    assert (cursor.rowcount, cursor.description) == (2, None)
    assert rows(filled) == [(1, "x"), (7, "p"), (7, "q")]
    assert len([text for text in bound if text.startswith("insert")]) == 1


def test_names_of_parameters_that_differ_in_case(filled: Any) -> None:
    filled.executemany("insert into t values ($a, $A)", [{"A": "p", "a": 2}, {"A": "q", "a": 3}])
    assert rows(filled) == [(1, "x"), (2, "p"), (3, "q")]


def test_other_statements_run_once_for_each_set(filled: Any) -> None:
    assert filled.executemany("insert into t select ? + 1, 'z'", [(1,), (2,)]).rowcount == 2
    assert filled.executemany("insert into t values (? + 1, 'w')", [(10,), (20,)]).rowcount == 2
    assert [a for a, _ in rows(filled)] == [1, 2, 3, 11, 21]
    returned = filled.executemany("insert into t values (? + 1, 'v') returning a", [(30,), (40,)])
    assert (returned.rowcount, returned.fetchall()) == (2, [(31,), (41,)])
    assert filled.executemany("insert into t values (?, ?)", []).rowcount == 0


def test_other_statements_run_for_each_set_in_a_transaction(filled: Any) -> None:
    filled.begin()
    assert filled.executemany("update t set b = ? where a = ?", [("y", 1), ("z", 1)]).rowcount == 2
    filled.commit()
    assert rows(filled) == [(1, "z")]
    with pytest.raises(InvalidQuery, match="no query"):
        filled.executemany("select ?", [(1,), (2,)])


@pytest.mark.parametrize(
    ("text", "sets", "message"),
    [
        ("insert into t values (?, ?)", [(1, "x"), ("many", "y")], "many"),
        ("insert into t values (?, ?)", [(1, "x"), (2**40, "y")], "INTEGER"),
        ("insert into t values (?, ?)", [(1, "x"), (2,)], "no value"),
        ("insert into t values (?, ?)", [(1,), (2,)], "no value"),
        ("insert into t values (?, ?)", [(1, "x", 3)], r"\$3"),
        ("insert into t values (?, ?, ?)", [(1, "x", 3)], "takes 2 columns"),
        ("insert into t values (?, ?)", [(1, object())], "object"),
        ("insert into t values (?, ?)", [(1, "\ud800")], "surrogate"),
        ("insert into nothing values (?)", [(1,)], "no table"),
    ],
)
def test_bad_sets_are_refused_with_the_reason(
    filled: Any, text: str, sets: list[Any], message: str
) -> None:
    with pytest.raises(FuselineError, match=message):
        filled.executemany(text, sets)
    assert rows(filled, "select count(*) from t where a > 1") == [(0,)]


def test_a_set_that_cannot_be_stored_leaves_none_of_its_rows(filled: Any) -> None:
    sets = [(str(number), "x") for number in range(100)] + [("many", "x")]
    with pytest.raises(ConversionError, match="many"):
        filled.executemany("insert into t values (?, ?)", sets)
    assert rows(filled) == [(1, "x")]


def test_threads_share_a_connection(filled: Any) -> None:
    """`threadsafety` is 2: each thread with a cursor of its own stores and reads what it stored."""
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            cursor = filled.cursor()
            for step in range(20):
                cursor.execute("insert into t values (?, ?)", (number, str(step)))
                found = cursor.execute("select count(*) from t where a = ?", (number,)).fetchone()
                assert found == (step + 1,)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(100 + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows(filled, "select count(*) from t") == [(81,)]
