"""Text that a Parquet file has as bytes, as ClickBench's has: read with `binary_as_string`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError, FuselineError
from tests.compare import connected, difference, duckdb_answer, fuseline_answer, ordering

QUERIES = [
    "select s, many, k from {t} order by k",
    "select s, count(*), min(many), max(length(many)) from {t} group by s order by s",
    "select count(*) from {t} where s like '%b%' and many > 'text 5'",
    "select upper(s), k from {t} where s = 'ab' or s is null order by k",
]


@pytest.mark.parametrize("fuse", ["always", "never"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_bytes_are_text(tmp_path: Path, fuse: str, dictionary: bool) -> None:
    import duckdb

    values = [[b"ab", b"", None, "\u00e9b".encode()][i % 4] for i in range(400)]
    many = [f"text {i * 7919}".encode() for i in range(400)]
    table = pa.table({"k": range(400), "s": pa.array(values, pa.binary()), "many": many})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, use_dictionary=dictionary, row_group_size=150, store_schema=False)
    source = f"read_parquet('{path}', binary_as_string = true)"
    with connected(fuse=fuse) as connection, duckdb.connect() as theirs:
        for query in QUERIES if fuse == "never" else QUERIES[1:2]:
            text = query.format(t=source)
            expected = duckdb_answer(theirs, text)
            order = ordering(text, expected.column_names)
            assert difference(expected, fuseline_answer(connection, text), order) is None, text
        frame = connection.read_parquet(path, "t", binary_as_string=True)
        assert frame.to_arrow().column("s").to_pylist()[:2] == ["ab", ""]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": pa.array([b"\xff", b"a"]), "k": [1, 2]}), path)
    with connected() as connection:
        query = f"select s from read_parquet('{path}', binary_as_string = {{}})"
        with pytest.raises(FileError, match="not UTF-8"):
            connection.sql(query.format("true")).fetchall()
        assert connection.sql(query.format("false")).fetchall() == [(b"\xff",), (b"a",)]
        with pytest.raises(FuselineError, match="binary_as_string"):
            connection.sql(query.format("3")).fetchall()
