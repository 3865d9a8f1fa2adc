"""now() and its relatives: one moment in a statement and in a transaction, another one in the next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import fuseline
from fuseline.errors import Unsupported
from tests.compare import assert_same_as_duckdb

MOMENTS = [datetime(2026, 12, 31, 22, 30, i, 5, tzinfo=UTC) for i in range(20)]


@pytest.fixture
def connection(monkeypatch):
    ticks = iter(MOMENTS)
    with fuseline.connect("cpu") as made:
        monkeypatch.setattr("fuseline.plan.temporal.zones.clock", lambda: next(ticks))
        monkeypatch.setattr(made._runner.plans, "_drop_old", lambda: None)  # asks for the day
        yield made


def test_now_has_duckdbs_types_and_names():
    assert_same_as_duckdb(
        "select typeof(now()), typeof(current_timestamp), typeof(get_current_timestamp()), typeof(transaction_timestamp()), "
        "typeof(localtimestamp), typeof(current_localtimestamp()), typeof(localtime), typeof(current_localtime()), "
        "typeof(today()), typeof(current_date), now() = current_timestamp, localtimestamp - now()::timestamp as none, "
        "current_date - now()::date as days, now() - interval 1 day < now() as before"
    )


def test_now_is_one_moment_of_a_statement_and_another_in_the_next(connection):
    query = (
        "select now(), (select max(current_timestamp) from range(3)), localtimestamp from range(2)"
    )
    first, second = connection.sql(query).fetchall(), connection.sql(query).fetchall()
    assert first[0] == first[1] == (MOMENTS[0], MOMENTS[0], MOMENTS[0].replace(tzinfo=None))
    assert second[0][0] == MOMENTS[1]
    connection.sql("create view v as select now() as n; prepare p as select now()")
    assert [connection.sql("from v").fetchall(), connection.sql("execute p").fetchall()] == [
        [(MOMENTS[3],)],
        [(MOMENTS[4],)],
    ]


def test_now_is_one_moment_of_a_transaction_in_the_sessions_zone(connection):
    connection.sql("set timezone = 'Asia/Tokyo'; begin")
    local = MOMENTS[0].replace(tzinfo=None) + timedelta(hours=9)
    query = "select now(), localtimestamp, localtime, today()"
    for _ in range(2):
        expected = (MOMENTS[0], local, local.time(), local.date())
        assert connection.sql(query).fetchall() == [expected]
    connection.sql("commit")
    assert connection.sql(query).fetchall()[0][0] == MOMENTS[1]


def test_current_time_is_refused_with_what_helps(connection):
    with pytest.raises(Unsupported, match="LOCALTIME"):
        connection.sql("select current_time")
