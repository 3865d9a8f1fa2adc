"""docs/files.md says what is there: its statements run here and in DuckDB, and leave the same rows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

import fuseline
from fuseline.plan.files.read_options import READ_OPTIONS
from fuseline.plan.files.write_options import WRITE_OPTIONS
from fuseline.sql.parsing.pieces import split
from tests.compare import Ordering, difference
from tests.test_layout import ROOT

TEXT = (ROOT / "docs/files.md").read_text()
STATEMENTS = [
    piece.sql.strip()
    for block in re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
    for piece in split(block)
]


def test_the_statements_leave_the_rows_that_duckdb_leaves(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with fuseline.connect(device="cpu") as connection, duckdb.connect() as reference:
        for statement in STATEMENTS:
            connection.sql(statement).to_arrow()
            written = re.search(r"\bto '([^']+)'", statement)
            if statement.startswith("select"):
                expected = reference.sql(statement).to_arrow_table()
                found = connection.sql(statement).to_arrow()
                assert difference(expected, found, Ordering(False)) is None, statement
                continue
            if written is None:
                reference.sql(statement)
                continue
            copied = duckdb_rows(reference, written[1])
            reference.sql(statement.replace(written[1], f"duckdb_{written[1]}"))
            expected = duckdb_rows(reference, f"duckdb_{written[1]}")
            assert difference(expected, copied, Ordering(False)) is None, statement


def duckdb_rows(reference: duckdb.DuckDBPyConnection, path: str):
    place = f"{path}/**/*.parquet" if Path(path).is_dir() else path
    return reference.sql(f"select * from '{place}'").to_arrow_table()


def test_each_option_is_named() -> None:
    for table in (*WRITE_OPTIONS.values(), *READ_OPTIONS.values()):
        missing = [
            name for name in table.checks if f"`{name}" not in TEXT and name != "use_tmp_file"
        ]
        assert missing == [], table.what
