"""The words that cannot be names are DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

import fuseline
from fuseline.sql.parsing.keywords import NO_LABELS, RESERVED


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


def test_reserved_words_are_those_that_name_no_table() -> None:
    assert _refused("select 1 from (select 1) {}") == RESERVED


def test_labels_without_as_are_fewer() -> None:
    assert _refused("select 1 {}") == (RESERVED | NO_LABELS) - {"isnull", "notnull"}


@pytest.mark.parametrize(
    "form", ["select 1 {}", "select 1 from (select 1) {}", "select 1 from (select 1) as {}"]
)
def test_they_are_refused_here(form: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        words = RESERVED | NO_LABELS if form == "select 1 {}" else RESERVED
        for word in sorted(words):
            if not (form == "select 1 {}" and word in ("isnull", "notnull")):  # operators
                with pytest.raises(fuseline.FuselineError):
                    connection.sql(form.format(word))
            assert connection.sql(f'select 1 "{word}"').columns == [word]
