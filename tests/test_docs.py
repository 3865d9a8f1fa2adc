"""docs/sql.md says what is there: its examples run on both engines, and its function tables are complete."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest

import fuseline
from fuseline.errors import Unsupported
from fuseline.plan.derived import DERIVED
from fuseline.plan.functions import aggregate_name, scalar_name, sql_names, window_name
from fuseline.sql.parsing.pieces import split
from tests.compare import difference, ordering
from tests.test_layout import ROOT

TEXT = (ROOT / "docs/sql.md").read_text()
SCRIPT = "\n".join(re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL))
STATEMENTS = [piece.sql.strip() for piece in split(SCRIPT)]
SETUP = [s for s in STATEMENTS if s.startswith(("create", "insert"))]
QUERIES = [s for s in STATEMENTS if s not in SETUP]
FUNCTIONS = TEXT.partition("## Functions")[2].partition("## Limits")[0]
REFUSED = [
    row.strip("`")
    for row in re.findall(r"^\| [^|]+ \| (`.*`) \|$", TEXT.partition("## Limits")[2], re.MULTILINE)
]
SYNTAX = {
    "position",
    "extract",
    "current_date",
    "current_query",
    "current_schemas",
    "in_search_path",
    "random",
    "uuid",
    "uuidv4",
    "uuidv7",
    "gen_random_uuid",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "nextval",
    "version",
    "current_setting",
    "currval",
    "setval",
    "percentile_cont",
    "percentile_disc",
}  # grammar of their own


@pytest.fixture(scope="module")
def connections() -> Iterator[tuple[fuseline.Connection, duckdb.DuckDBPyConnection]]:
    with fuseline.connect(device="cpu") as connection, duckdb.connect() as reference:
        for statement in SETUP:
            connection.execute(statement)
            reference.execute(statement)
        yield connection, reference


@pytest.mark.parametrize("query", QUERIES)
def test_an_example_answers_as_duckdb(query, connections) -> None:
    connection, reference = connections
    expected = reference.sql(query).to_arrow_table()
    actual = connection.sql(query).to_arrow()
    assert difference(expected, actual, ordering(query, expected.column_names)) is None


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_said_to_be_refused_is(query, connections) -> None:
    with pytest.raises(Unsupported):
        connections[0].sql(query)


def words() -> set[str]:
    """Names in backticks that a parenthesis follows, or that stand alone in one as another spelling."""
    quoted = re.findall(r"`([^`]+)`", FUNCTIONS)
    return {name for text in quoted for name in re.findall(r"^([a-z_0-9]+)(?:\(|$)", text)}


def test_each_function_is_named() -> None:
    spellings = {n for n in (*sql_names(), *DERIVED) if re.fullmatch(r"[a-z_0-9]+", n)}
    assert sorted(spellings - words() - {"count_star"}) == []


def test_each_name_is_a_function() -> None:
    made_up = {
        w
        for w in words()
        if not (
            scalar_name(w) or aggregate_name(w) or window_name(w) or w in DERIVED or w in SYNTAX
        )
    }
    assert sorted(made_up) == []
