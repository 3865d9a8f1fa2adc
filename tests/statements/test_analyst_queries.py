"""Statements as analysts type them answer as in DuckDB: reports, dates, JSON, nested values, windows, changes of tables, the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseline.sql.parsing.pieces import split
from tests.compare import connected, difference, duckdb_answer, fuseline_answer, ordering

LINES = (Path(__file__).parent / "analyst_queries.sql").read_text().splitlines()
SETUP = [line[1:] for line in LINES if line.startswith("!")]
TEXTS = [line for line in LINES if line[:1] not in ("!", "-")]
WRITES = ("update", "delete")
ALONE = [t for t in TEXTS if len(list(split(t))) == 1 and t.split()[0] not in WRITES]
SCRIPTS = [text for text in TEXTS if text not in ALONE]


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    made = _ready(duckdb.connect())
    yield made
    made.close()


@pytest.fixture(scope="module", params=["auto", "never"])
def connection(request: pytest.FixtureRequest, backend: str) -> Iterator[Any]:
    with connected(device=backend, fuse=request.param) as made:
        yield _ready(made)


def _ready(engine: Any) -> Any:
    for statement in SETUP:
        engine.execute(statement)
    return engine


def _problem(text: str, reference: Any, connection: Any) -> str | None:
    expected, actual = duckdb_answer(reference, text), fuseline_answer(connection, text)
    return difference(expected, actual, ordering(text, expected.column_names))


@pytest.mark.by_day
@pytest.mark.parametrize("text", ALONE)
def test_a_query(text: str, reference: Any, connection: Any) -> None:
    assert _problem(text, reference, connection) is None


@pytest.mark.by_day(2)
@pytest.mark.parametrize("text", SCRIPTS)
def test_several_statements(text: str, backend: str) -> None:
    *before, last = [piece.sql for piece in split(text)]
    with duckdb.connect() as reference, connected(device=backend) as connection:
        for engine in (_ready(reference), _ready(connection)):
            for statement in before:
                engine.execute(statement)
        assert _problem(last, reference, connection) is None
