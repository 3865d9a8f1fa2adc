"""An INSERT runs by the plan of another one that differs in its constants, and what it does to a table leaves the plans of others alone."""

from __future__ import annotations

from typing import Any

import pytest

import fuseline
from fuseline.errors import DataError
from tests.work import calls_of

INSERT = "insert into t values (?, ?)"


@pytest.fixture
def opened() -> Any:
    with fuseline.connect() as connection:
        connection.execute("create table t (a bigint, b varchar); create table u as select 1 as k")
        yield connection


def origin(connection: Any, text: str) -> str:
    frame = connection.sql(text)
    frame.to_arrow()
    return str(frame.profile.plan_origin)


def test_an_insert_with_other_constants_is_not_planned(opened: Any) -> None:
    first = calls_of(lambda: opened.execute(INSERT, [1, "a"]))
    opened.execute(INSERT, [2, "b"])
    again = calls_of(lambda: opened.execute(INSERT, [3, "c"]))
    assert again <= 345 < first
    assert opened.execute("from t").fetchall() == [(1, "a"), (2, "b"), (3, "c")]


def test_plans_outlast_rows_of_other_tables(opened: Any) -> None:
    for text in ("select k + 1 as n from u", "select count(*) from t"):
        origin(opened, text)
    opened.execute(INSERT, [1, "a"])
    assert origin(opened, "select k + 1 as n from u") == "text"
    assert origin(opened, "select k + 2 as n from u") == "shape"
    assert origin(opened, "select count(*) from t") == "new"
    opened.execute("create view v as from t")
    assert origin(opened, "select k + 1 as n from u") == "new"


def test_plans_of_what_was_read_while_they_were_bound_do_not(opened: Any) -> None:
    opened.execute("create table w (k int)")
    text = "from (pivot u on k in (select k from w) using count(*))"
    size = "select estimated_size from duckdb_tables() where table_name = 'w'"
    for n in range(1, 4):
        opened.execute(f"insert into w values ({n})")
        assert opened.sql(text).columns == [str(k) for k in range(1, n + 1)]
        assert opened.sql(size).fetchall() == [(n,)]


def test_an_explained_insert_stores_nothing_but_for_analyze(opened: Any) -> None:
    for n in range(3):
        opened.execute(f"insert into t values ({n}, 'a')")
    opened.execute("explain insert into t values (7, 'a')")
    opened.execute("explain analyze insert into t values (8, 'a')")
    assert opened.execute("select a from t").fetchall() == [(0,), (1,), (2,), (8,)]


def test_an_error_has_its_place_in_the_text_at_hand(opened: Any) -> None:
    for end in ("7", "8"):
        opened.execute(f"insert into t select cast(k || '{end}' as bigint), 'a' from u")
    text = "insert  into t select cast(k || 'x' as bigint), 'a' from u"
    with pytest.raises(DataError) as told:
        opened.execute(text)
    assert told.value.text == text
    span = told.value.span
    assert span is not None
    assert "'x'" in text[span.start : span.end]
    assert opened.execute("select a from t").fetchall() == [(17,), (18,)]
