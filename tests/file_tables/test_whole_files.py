"""read_text, read_blob and glob: files as rows, as DuckDB has them."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from tests.compare import connected

from .test_read_csv import same, write


@pytest.fixture
def connection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name, content in (
        ("a.txt", "hé\n"),
        ("b.txt", ""),
        ("in/c.txt", "x\0y"),
        ("d.bin", b"\xff\0"),
    ):
        write(content, name)
    with connected({}, device="cpu") as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    [
        "from read_text('*.txt') order by filename",
        "from read_text(['in/c.txt', 'a.txt'])",
        "select size, content || '!' from read_text('a.txt')",
        "from read_blob('*') order by filename",
        "from glob('*') order by file",
        "from glob('**/*.txt') order by file",
        "from glob('a.txt')",
        "from glob(['a.*', '*.txt', 'nosuch*'])",
        "from glob('in')",
        "from glob('nothing*')",
    ],
)
def test_rows_are_those_of_duckdb(query, connection):
    assert same(connection, query)


def test_functions_are_listed(connection):
    query = "select function_name from duckdb_functions() where function_type = 'table'"
    names = {name for (name,) in connection.sql(query).fetchall()}
    assert names >= {
        "read_csv",
        "read_json",
        "read_ndjson",
        "read_text",
        "read_blob",
        "glob",
        "range",
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from read_text('d.bin')", "not UTF-8 from byte 0 on: read it with read_blob"),
        ("from read_text('nothing*')", "no file"),
        ("from read_text('a.txt', foo = 1)", 'no option "foo"'),
        ("from glob()", "takes a path or a pattern"),
        ("from glob(1)", "takes a path or a pattern"),
    ],
)
def test_what_is_wrong_is_named(query, message, connection):
    with pytest.raises(fuseline.FuselineError, match=message):
        connection.sql(query).to_arrow()


def test_what_may_not_be_read_is_not_seen(connection):
    with fuseline.connect(device="cpu", allowed_paths=["in"], external_access=False) as limited:
        assert limited.sql("select file from glob('in/*')").fetchall() == [("in/c.txt",)]
        for query in ("from glob('*')", "from glob('a.txt')", "from read_text('a.txt')"):
            with pytest.raises(fuseline.FuselineError, match="may not be opened"):
                limited.sql(query).to_arrow()
