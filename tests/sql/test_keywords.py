"""The words that cannot be names are DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

import fuseline
from fuseline.sql.parsing.keywords import NO_LABELS, RESERVED
from tests.compare import assert_same_as_duckdb


def _refused(query: str) -> set[str]:
    """Return the keywords that DuckDB does not take at `{}`."""
    connection = duckdb.connect()
    found = set()
    for (word,) in connection.execute("select keyword_name from duckdb_keywords()").fetchall():
        try:
            connection.execute(query.format(word))
        except duckdb.ParserException:
            found.add(word)
    return found


NAMES = ["select 1 from (select 1) {}", "select {}: 1", "from {}: range(2)"]


@pytest.mark.parametrize("form", NAMES)
def test_reserved_words_are_those_that_name_no_table(form: str) -> None:
    assert _refused(form) == RESERVED


def test_all_are_listed_by_their_categories() -> None:
    assert_same_as_duckdb("from duckdb_keywords() order by all")
    where = "keyword_category = 'reserved' and keyword_name like 's%'"
    assert_same_as_duckdb(f"select keyword_name from duckdb_keywords() where {where} order by 1")


def test_labels_without_as_are_fewer() -> None:
    assert _refused("select 1 {}") == (RESERVED | NO_LABELS) - {"isnull", "notnull"}


@pytest.mark.parametrize("form", [*NAMES, "select 1 {}", "select 1 from (select 1) as {}"])
def test_they_are_refused_here(form: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        words = RESERVED | NO_LABELS if form == "select 1 {}" else RESERVED
        for word in sorted(words):
            if not (form == "select 1 {}" and word in ("isnull", "notnull")):  # operators
                with pytest.raises(fuseline.FuselineError):
                    connection.sql(form.format(word))
            assert connection.sql(f'select 1 "{word}"').columns == [word]


QUOTED = [
    'select \'{0}\', $${0}$$, t."{0}" as "{0}" from (select 1 as "{0}") t where "{0}" < 2 and \'{0}\' < \'~\'',
    'with "{0}" as (values (\'{0}\', 1)) select * from "{0}" t(x, "{0}") where x = \'{0}\'',
    "select max('{0}') as x, \"{0}\" from (select 2 as \"{0}\") group by \"{0}\" having min('{0}') = '{0}' union all select '{0}', 1",
]
OTHER_WORDS = ("by", "generated", "matched", "position", "source", "target", "tuple")


@pytest.mark.parametrize("form", QUOTED)
def test_in_quotes_all_are_text_or_names(form: str) -> None:
    with duckdb.connect() as theirs, fuseline.connect(device="cpu") as ours:
        found = theirs.execute("select keyword_name from duckdb_keywords()").fetchall()
        for word in (*OTHER_WORDS, *(word for (word,) in found)):
            query = form.format(word)
            assert ours.sql(query).fetchall() == theirs.sql(query).fetchall(), query


@pytest.mark.parametrize(
    "word",
    ["alter", "drop", "force", "grant", "insert", "install", "lock", "map", "revoke", "rollback"],
)
def test_words_of_other_statements_are_names(word: str, backend: str) -> None:
    inner = f"(select 1 as {word}, 2 as b) {word}"
    query = f"select {word}, {word} + 1, {word}.b, {word}.{word} as x from {inner} where {word} > 0"
    assert_same_as_duckdb(query, backend=backend)
    assert_same_as_duckdb(
        f"select * exclude ({word}) from {inner} order by {word}", backend=backend
    )
