"""Words that are functions without parentheses: a column or an item of the SELECT list that has the name goes before."""

from __future__ import annotations

import pytest

from fuseline.errors import UnknownName
from tests.compare import assert_same_as_duckdb, connected

WORDS = [
    "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
    "current_user", "session_user", "current_role", "current_catalog", "user",
]  # fmt: skip
QUERIES = [
    "select {0} from t",
    "select {0} + 1 as x from t where {0} > 1 order by {0} desc",
    "select t.{0}, \"{0}\" from t",
    "select {0}, count(*) from t group by {0} order by all",
    "select sum({0}), min({0} * 2) from t",
    "select a.{0}, {0} from t a join t b using ({0}) order by 1",
    "select {0} from t a asof join t b using ({0}) order by 1",
    "select {0} from (select {0} from t where {0} = 2)",
    "select 7 as {0}, {0} + 1",
    "select {0} as x, x + 1 from t order by x",
    "select max({0}) over (order by {0}) from t order by 1",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_column_of_the_name_goes_before(word: str) -> None:
    setup = (f'create table t ("{word}" integer)', "insert into t values (1), (2), (2), (null)")
    for query in QUERIES:
        assert_same_as_duckdb(query.format(word), setup=setup, fuse=("never",))


def test_of_an_outer_query_it_does_not() -> None:
    assert_same_as_duckdb(
        "select (select current_user) = 1::varchar from (select 1 as current_user)"
    )


@pytest.mark.parametrize("word", [w for w in WORDS if w not in ("user", "current_time")])
def test_an_item_does_not_read_itself(word: str) -> None:
    """DuckDB refuses it, too."""
    with connected({}) as connection:
        for query in (f"select {word} {word}", f"select {word} is null as {word}"):
            with pytest.raises(UnknownName, match="is read by the item of that name"):
                connection.sql(query)
        connection.sql(f"select {word}").fetchall()
