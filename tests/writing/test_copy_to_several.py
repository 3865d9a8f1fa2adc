"""COPY TO with names, sizes and lists of files, and with pairs in a Parquet footer, as in DuckDB."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError, InvalidQuery, Unsupported


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def here():
    with fuseline.connect("cpu") as connection:
        yield connection


ROWS = "select i as n, i % 2 as p from range(1000) t(i)"


@pytest.mark.parametrize(
    "options",
    [
        "format parquet, partition_by (p), return_files true",
        "format parquet, partition_by (p), filename_pattern 'f', return_files",
        "format csv, partition_by (p), filename_pattern 'f_{i}_x', file_extension 'txt', return_files",
        "format csv, per_thread_output, return_files",
        "format parquet, per_thread_output, filename_pattern 'a_{i}', return_files",
        "format json, file_size_bytes '1GB', return_files",
        "format csv, return_files",
    ],
)
def test_files_are_named_as_by_duckdb(options, here) -> None:
    found = here.sql(f"copy ({ROWS}) to 'own' ({options})")
    with duckdb.connect() as reference:
        reference.execute("set threads = 1")
        expected = reference.sql(f"copy ({ROWS}) to 'duck' ({options})")
        assert list(found.columns) == expected.columns
        rows = expected.fetchall()
    ((count, files),) = found.fetchall()
    assert [(count, sorted(files))] == [(n, sorted(f.replace("duck", "own") for f in names)) for n, names in rows]  # fmt: skip
    assert sorted(files) == sorted(
        str(p) for p in [Path("own"), *Path("own").rglob("*")] if p.is_file()
    )


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_files_are_about_as_large_as_asked_for(form, here) -> None:
    more = ", row_group_size 10000" if form == "parquet" else ""
    query = "select i as n, 'some text ' || i * 7919 % 100003 as h from range(100000) t(i)"
    made = here.sql(
        f"copy ({query}) to 'parts' (format {form}, file_size_bytes '200kb', return_files{more})"
    )
    ((count, files),) = made.fetchall()
    assert count == 100_000
    assert len(files) > 2
    assert all(Path(f).stat().st_size < 700_000 for f in files)
    assert files == [f"parts/data_{i}.{form}" for i in range(len(files))]
    reader = {"csv": "read_csv", "json": "read_json", "parquet": "read_parquet"}[form]
    assert here.sql(f"select count(*), sum(n) from {reader}('parts/*.{form}')").fetchall() == [
        (100_000, 4_999_950_000)
    ]


def test_names_of_their_own_differ(here) -> None:
    copy = f"copy ({ROWS}) to 'by' (format parquet, partition_by (p), filename_pattern '{{uuid}}', return_files, append)"
    first, second = (here.sql(copy).fetchall()[0][1] for _ in range(2))
    assert len({*first, *second}) == 4
    assert all(re.fullmatch(r"by/p=[01]/[0-9a-f-]{36}\.parquet", f) for f in (*first, *second))


def test_pairs_stand_in_the_footer(here) -> None:
    here.sql(f"copy ({ROWS}) to 'x.parquet' (kv_metadata {{a: 'b', c: 3}})")
    told = here.sql("select key, value from parquet_kv_metadata('x.parquet')").fetchall()
    assert sorted(told) == [(b"a", b"b"), (b"c", b"3")]
    assert pq.read_table("x.parquet").num_rows == 1000


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("format parquet, partition_by (p), per_thread_output", Unsupported, "exclude each other"),
        ("format parquet, partition_by (p), file_size_bytes 5", Unsupported, "exclude each other"),
        ("format csv, file_size_bytes 'much'", InvalidQuery, "number of bytes"),
        ("format csv, per_thread_output, filename_pattern '../x'", InvalidQuery, "without folders"),
        ("format csv, per_thread_output, file_extension 'a/b'", InvalidQuery, "without folders"),
        ("format parquet, kv_metadata 'x'", InvalidQuery, "a struct of texts"),
        ("format parquet, return_stats", Unsupported, "return_stats"),
        ("format csv, append", Unsupported, "append goes with"),
    ],
)
def test_what_does_not_go_together_is_refused(options, error, message, here) -> None:
    with pytest.raises(error, match=message):
        here.sql(f"copy ({ROWS}) to 'out' ({options})")
    assert not Path("out").exists()


def test_a_folder_with_files_is_left_as_it_is(here) -> None:
    here.sql(f"copy ({ROWS}) to 'out' (format csv, per_thread_output)")
    before = Path("out/data_0.csv").read_bytes()
    with pytest.raises(FileError, match="is not empty"):
        here.sql("copy (select 1 as n) to 'out' (format csv, per_thread_output)")
    assert Path("out/data_0.csv").read_bytes() == before
    here.sql("copy (select 1 as n) to 'out' (format csv, per_thread_output, overwrite)")
    assert Path("out/data_0.csv").read_text() == "n\n1\n"
