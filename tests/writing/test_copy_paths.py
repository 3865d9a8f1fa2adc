"""Paths of COPY that are expressions and parameters, and signs of CSV that are no good beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fuseline


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[fuseline.Connection]:
    monkeypatch.chdir(tmp_path)
    with fuseline.connect(device="cpu") as opened:
        opened.sql("create table t as select 1 as a")
        yield opened


@pytest.mark.parametrize(
    "steps",
    [
        ["set variable p = 'f.csv'", "copy t to (getvariable('p'))"],
        ["copy t to ('f' || '.' || 'csv') (header)"],
        ["prepare c as copy (select a + ? as a from t) to 'f.csv'", "execute c(0)"],
        ["prepare d as copy t to ($path) (delim $d)", "execute d(path := 'f.csv', d := '|')"],
    ],
)
def test_paths_are_expressions_and_parameters(
    steps: list[str], connection: fuseline.Connection
) -> None:
    for text in steps:
        connection.sql(text)
    assert Path("f.csv").read_text() == "a\n1\n"
    connection.sql("copy t from ('f' || '.csv')")
    assert connection.sql("from t").fetchall() == [(1,), (1,)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("copy t to 'f.csv' (quote ',')", "quote of CSV, ',', is within its delim"),
        ("copy t to 'f.csv' (delim 'q', escape 'q')", "escape of CSV"),
        ("copy t to 'f.csv' (nullstr 'a,b')", "delim of CSV, ',', is within its nullstr, 'a,b'"),
        ("copy t to 'f.csv' (nullstr 'x', quote '', escape 'x')", "escape of CSV"),
        ("copy t to (1)", "a path in quotes, or an expression in parentheses"),
        ("copy t to ('f' || a)", "must be a constant|no column"),
        ("copy t to ()", "Syntax error"),
    ],
)
def test_what_cannot_be_written_is_refused(
    statement: str, message: str, connection: fuseline.Connection
) -> None:
    with pytest.raises(fuseline.FuselineError, match=message):
        connection.sql(statement)
    assert list(Path().iterdir()) == []
