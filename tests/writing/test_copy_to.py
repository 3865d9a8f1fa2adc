"""COPY TO and write_...: what is written is read back by DuckDB, pyarrow and Polars; a failure leaves nothing."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, json as arrow_json

import fuseline
from fuseline.errors import FileError, ParseError
from tests.compare import assert_same, connected

TYPES = """select * from (values
  (1::tinyint, -1::smallint, 7, 9000000000, 255::utinyint, 1.5::float, 0.1::double, 12.50::decimal(9, 2), true,
   date '2020-02-29', time '10:11:12.5', timestamp '2020-01-01 00:00:00.000001', timestamptz '2020-01-01 10:00:00+00', 'a,"b'),
  (null, null, null, null, null, null, null, null, null, null, null, null, null, null),
  (-128, 32767, -2147483648, -9223372036854775808, 0, -0.0, 1e300, -1234567.89, false,
   date '1969-12-31', time '00:00:00', timestamp '1900-01-01 00:00:00', timestamptz '1970-01-01 00:00:00+00', 'é☃
line')) t(a, b, c, d, e, f, g, h, i, j, k, l, m, n)"""


def duck(statement: str) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().sql(statement)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def connection(backend):
    with connected({}, device=backend) as opened:
        yield opened


def test_parquet_comes_back_with_all_types(connection, folder):
    assert connection.sql(f"copy ({TYPES}) to 'f.parquet'").fetchall() == [(3,)]
    expected = duck(TYPES).to_arrow_table()
    assert duck("from 'f.parquet'").to_arrow_table().equals(expected)
    assert pq.read_table("f.parquet").to_pylist() == expected.to_pylist()
    assert pl.read_parquet("f.parquet").to_dicts() == expected.to_pylist()
    assert_same(connection.sql(TYPES).to_arrow(), connection.sql("from 'f.parquet'").to_arrow())


def test_csv_is_read_by_duckdb_as_its_own_is(connection, folder):
    connection.sql(f"copy ({TYPES}) to 'own.csv'")
    duck(f"copy ({TYPES}) to 'duckdb.csv'")
    assert Path("own.csv").read_bytes() == Path("duckdb.csv").read_bytes()


def test_csv_has_the_same_fields_for_arrow_and_polars_as_for_duckdb(connection, folder):
    connection.sql(f"copy ({TYPES}) to 'f.csv'")
    fields = duck("from read_csv('f.csv', all_varchar = true)")
    texts = csv.ConvertOptions(
        column_types=dict.fromkeys(fields.columns, pa.string()), strings_can_be_null=True
    )
    of_lines = csv.ParseOptions(newlines_in_values=True)
    found = csv.read_csv("f.csv", parse_options=of_lines, convert_options=texts)
    assert found.to_pylist() == fields.to_arrow_table().to_pylist()
    assert pl.read_csv("f.csv", infer_schema=False).to_dicts() == found.to_pylist()


@pytest.mark.parametrize(
    "options",
    ["header false", "delim '|', nullstr 'NA'", "quote '''', escape '\\', delim ';'", "force_quote *",
     "force_quote (a, n), header", "dateformat '%d/%m/%Y', timestampformat '%Y'", "sep 'ab', null 'x'"],
)  # fmt: skip
def test_csv_options_write_the_bytes_that_duckdb_writes(options, connection, folder):
    query = f"select * exclude (f, g) from ({TYPES}) union all by name select '' as n"
    connection.sql(f"copy ({query}) to 'own.csv' (format csv, {options})")
    duck(f"copy ({query}) to 'duckdb.csv' (format csv, {options})")
    assert Path("own.csv").read_bytes() == Path("duckdb.csv").read_bytes()


@pytest.mark.parametrize("array", ["false", "true"])
def test_json_has_the_values_that_duckdb_reads(array, connection, folder):
    odd = "select chr(x::int) || '\"\\' as t, x / 7 as d from range(0, 40) r(x) where x > 0"
    for query in (TYPES, odd, f"select * from ({odd}) where d < 0", "select 1 as a, 2 as A"):
        connection.sql(f"copy ({query}) to 'f.json' (array {array})")
        duck(f"copy ({query}) to 'g.json' (array {array})")
        own, theirs = (duck(f"from '{name}.json'").to_arrow_table() for name in "fg")
        assert own.equals(theirs)


def test_json_has_the_values_that_arrow_and_polars_read(connection, folder):
    connection.sql(f"copy (select * exclude (m) from ({TYPES})) to 'f.json'")
    written = [json.loads(line) for line in Path("f.json").read_text().splitlines()]
    assert [row["n"] for row in written] == ['a,"b', None, "é☃\nline"]
    assert pl.read_ndjson("f.json").to_dicts() == written
    dates = arrow_json.ParseOptions(explicit_schema=pa.schema([("j", pa.string())]))
    assert arrow_json.read_json("f.json", parse_options=dates).to_pylist() == written


def test_numbers_stand_in_json_as_duckdb_writes_them(connection, folder):
    query = """select * from (values (1e20::double, 0.1::float, 2.50::decimal(10, 2), 10.10::decimal(38, 2), 1::decimal(4, 0), 7::hugeint),
        (-0.0, 1e-7, -0.10, 0, -7, null), (1e16, 3.4e38, 99999999.99, 1, 1, -1), (5e-324, 'nan', null, null, null, 0)) v(a, b, c, d, e, f)"""
    connection.sql(f"copy ({query}) to 'f.json'")
    duck(f"copy ({query}) to 'g.json'")
    assert Path("f.json").read_text() == Path("g.json").read_text()


@pytest.mark.parametrize(
    "options",
    [
        r"(delim '\t')", r"(sep e'\t', header false)", "csv header", "with csv header delimiter as '|' null 'NA' quote '''' escape ''''",
        "with delimiter ';' csv",
    ],
)  # fmt: skip
def test_csv_is_written_as_duckdb_writes_it(options, connection, folder):
    query = "(select * from (values (1, 'a b'), (null, 'c;|,\t'''), (3, null)) v(k, v))"
    connection.sql(f"copy {query} to 'f.csv' {options}")
    duck(f"copy {query} to 'g.csv' {options}")
    assert Path("f.csv").read_text() == Path("g.csv").read_text()


@pytest.mark.parametrize(
    "options", ["delimiter", "csv nope", "header ','", "with", "csv header, quote"]
)
def test_options_without_parentheses_that_are_none(options, connection, folder):
    if options == "with":
        options = "with quote as"
    with pytest.raises(ParseError, match="stand in parentheses"):
        connection.sql(f"copy (select 1) to 'f.csv' {options}")


def test_infinite_and_no_numbers_stand_in_json_as_duckdb_writes_them(connection, folder):
    query = "select 'nan'::double as a, 'inf'::double as b, '-inf'::float as c, null as d"
    connection.sql(f"copy ({query}) to 'f.json'")
    assert Path("f.json").read_text() == '{"a":NaN,"b":Infinity,"c":-Infinity,"d":null}\n'


def test_ipc_and_feather_are_read_by_arrow_and_polars(connection, folder):
    connection.sql(f"copy ({TYPES}) to 'f.arrow' (compression lz4)")
    expected = duck(TYPES).to_arrow_table()
    assert pa.ipc.open_file("f.arrow").read_all().to_pylist() == expected.to_pylist()
    assert pl.read_ipc("f.arrow").to_dicts() == expected.to_pylist()


def test_row_groups_and_compression_are_those_that_were_asked_for(connection, folder):
    connection.sql(
        "copy (select x from range(1000) t(x)) to 'f.parquet' (row_group_size 300, codec zstd)"
    )
    footer = pq.read_metadata("f.parquet")
    assert [footer.row_group(i).num_rows for i in range(4)] == [300, 300, 300, 100]
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert footer.row_group(0).column(0).statistics.max == 299


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_texts_are_compressed_by_option_and_by_ending(codec, connection, folder):
    connection.sql(f"copy (select 42 as a) to 'f.csv' (compression {codec})")
    back = duck(f"from read_csv('f.csv', compression = '{codec}')")
    assert back.fetchall() == [(42,)]
    connection.sql("copy (select 42 as a) to 'f.json.gz'")
    assert gzip.decompress(Path("f.json.gz").read_bytes()) == b'{"a":42}\n'


def test_partitions_are_folders_that_duckdb_and_we_read(connection, folder):
    rows = "select x % 3 as k, nullif(x % 2, 1)::varchar || '/ü' as s, x from range(100) t(x)"
    connection.sql(f"copy ({rows}) to 'p' (format parquet, partition_by (k, s))")
    back = "select k::bigint as k, s, x from read_parquet('p/**/*.parquet', hive_partitioning = true) order by x"
    expected = duck(f"select * from ({rows}) order by x").fetchall()
    assert duck(back).fetchall() == expected
    assert connection.sql(back).fetchall() == expected
    assert sorted(os.listdir("p")) == ["k=0", "k=1", "k=2"]  # noqa: PTH208


def test_a_folder_with_files_is_written_only_by_word(connection, folder):
    def write(value: int, word: str = "") -> None:
        query = f"copy (select {value} as k, 1 as x) to 'p' (format csv, partition_by (k){word})"
        connection.sql(query)

    def files() -> list[str]:
        return sorted(str(p.parent) for p in Path("p").rglob("*.csv"))

    write(1)
    with pytest.raises(fuseline.FuselineError, match="not empty"):
        write(2)
    write(2, ", overwrite_or_ignore")
    write(2, ", append")
    assert files() == ["p/k=1", "p/k=2", "p/k=2"]
    write(3, ", overwrite")
    assert files() == ["p/k=3"]
    assert [p.name for p in Path("p").iterdir()] == ["k=3"]


@pytest.mark.parametrize("target", ["f.parquet", "f.csv", "f.json", "f.arrow", "f.csv.gz", "new"])
def test_a_query_that_fails_leaves_what_was_there(target, connection, folder):
    many = "select case when x < 300000 then x else error::int end as v, x % 2 as k from (select x, 'text' as error from range(300100) t(x))"
    Path("f.csv").write_text("old")
    options = "(format parquet, partition_by (k))" if target == "new" else ""
    with pytest.raises(fuseline.FuselineError, match="Could not convert"):
        connection.sql(f"copy ({many}) to '{target}' {options}")
    assert [p.name for p in folder.iterdir()] == ["f.csv"]
    assert Path("f.csv").read_text() == "old"


def test_a_file_that_is_read_can_be_written(connection, folder):
    connection.sql("copy (select 1 as a) to 'f.parquet'")
    connection.sql("copy (select a + 1 as a from 'f.parquet') to 'f.parquet'")
    assert connection.sql("from 'f.parquet'").fetchall() == [(2,)]


def test_a_link_leads_to_the_file_that_is_written(connection, folder):
    Path("there").mkdir()
    Path("link.csv").symlink_to("there/f.csv")
    connection.sql("copy (select 1 as a) to 'link.csv'")
    assert Path("link.csv").is_symlink()
    assert Path("there/f.csv").read_text() == "a\n1\n"


@pytest.mark.parametrize(
    "path",
    ["f.csv", "in/../f.csv", "in/link/f.csv", "file:///tmp/f.csv", "/dev/null", "in/leads_out.csv", "~/f.csv"],
)  # fmt: skip
def test_nothing_is_written_outside_of_the_allowed_paths(path, folder):
    Path("in").mkdir()
    Path("in/link").symlink_to("..")
    Path("in/leads_out.csv").symlink_to("../f.csv")
    with fuseline.connect(device="cpu", allowed_paths=["in"], external_access=False) as limited:
        limited.sql("copy (select 1 as a) to 'in/f.csv'")
        with pytest.raises(fuseline.FuselineError, match="may not be opened"):
            limited.sql(f"copy (select 1 as a) to '{path}'")
        with pytest.raises(fuseline.FuselineError, match="may not be opened"):
            limited.sql(
                f"copy (select 1 as a) to '{path}' (partition_by (a), write_partition_columns)"
            )
    assert sorted(p.name for p in folder.rglob("*.csv")) == ["f.csv", "leads_out.csv"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("copy t to 'no/f.csv'", r"No such file or directory\. Make its folder first\."),
        ("copy t to '.'", "is a folder"),
        ("copy t to 'f.csv' (foo 1)", 'no option "foo"'),
        ("copy t to 'f.csv' (heade)", 'Did you mean "header"'),
        ("copy t to 'f.parquet' (field_ids {'a': 1})", "field_ids of COPY TO .* is not supported"),
        ("copy t to 'f.parquet' (row_group_size 0)", "takes a whole number above 0, not 0"),
        ("copy t to 'f.parquet' (compression lzo)", "takes one of uncompressed, snappy"),
        ("copy t to 'f.parquet' (row_group_size 1, row_group_size 2)", "given twice"),
        ("copy t to 'f.xls' (format excel)", "format 'excel' is not supported"),
        ("copy t to 'f' (partition_by (nope))", 'no column "nope"'),
        ("copy t to 'f' (partition_by (a))", "No column is left"),
        ("copy t to 'f.csv' (append)", "goes with PARTITION_BY"),
        ("copy t to 'f' (partition_by (a), write_partition_columns, overwrite, append)", "exclude each other"),
        ("copy (select interval 1 day as i) to 'f.parquet'", "INTERVAL, which Parquet files are not"),
        ("copy t to 'f.csv' head", "stand in parentheses"),
        ("copy t to 'f.csv' (header,)", "Syntax error"),
        ("copy t to", "takes a path in quotes"),
        ("copy t", "is written COPY table TO"),
        ("copy nope to 'f.csv'", 'no table "nope"'),
        ("copy t (b) to 'f.csv'", 'no column "b"'),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(statement, message, connection, folder):
    connection.sql("create table t as select 1 as a")
    with pytest.raises(fuseline.FuselineError, match=message):
        connection.sql(statement)
    assert list(folder.iterdir()) == []


def test_some_columns_of_a_table_are_written(connection, folder):
    connection.sql('create table t as select 1 as a, 2 as "b c", 3 as d')
    connection.sql("copy main.t (d, \"b c\") to 'f.csv'")
    assert Path("f.csv").read_text() == "d,b c\n3,2\n"
    connection.sql("/* all */ copy t to 'f.csv' with (delimiter ';') -- done")
    assert Path("f.csv").read_text() == "a;b c;d\n1;2;3\n"


def test_frames_write_files_by_the_same_options(connection, folder):
    frame = connection.sql("select x, x % 2 as k from range(5) t(x)")
    frame.write_parquet(folder / "f.parquet", compression="zstd", row_group_size=2)
    frame.to_parquet("p", partition_by="k")
    frame.write_csv("f.csv", separator=";", include_header=False)
    frame.to_csv("g.csv")
    frame.write_json("f.json", array=True)
    frame.write_ipc("f.arrow")
    assert pq.read_metadata("f.parquet").num_row_groups == 3
    assert Path("f.csv").read_text().splitlines()[1] == "1;1"
    assert Path("g.csv").read_text().splitlines()[:2] == ["x,k", "0,0"]
    assert duck("select sum(x) from 'f.json'").fetchall() == [(10,)]
    assert pa.ipc.open_file("f.arrow").read_all().num_rows == 5
    assert duck("select count(*) from 'p/**/*.parquet'").fetchall() == [(5,)]
    with pytest.raises(fuseline.FuselineError, match='no option "sepp"'):
        frame.write_csv("f.csv", sepp=";")
    with pytest.raises(fuseline.FuselineError, match="A path is"):
        frame.write_csv(3)


def test_an_answer_beyond_the_memory_limit_is_written(folder):
    with fuseline.connect(device="cpu", memory_limit="8MB", spill_dir=str(folder / "s")) as small:
        small.sql(
            "copy (select x, x * 7 % 1000 as y from range(600000) t(x) order by y) to 'f.parquet'"
        )
    assert pq.read_metadata("f.parquet").num_rows == 600_000


@pytest.mark.parametrize("target", ["f.csv", "f.csv.gz", "f.json.zst", "f.parquet", "f.arrow", "p"])
def test_a_full_disk_leaves_what_was_there(target, connection, folder, monkeypatch):
    """Also where what a library held back does not fit, which is written when the file is closed."""
    Path("f.csv").write_text("a\n1\n")
    by_parts = " (partition_by k, format csv)" if target == "p" else ""

    class Full(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(handle, mode):
        return io.BufferedWriter(Full(handle, mode))

    monkeypatch.setattr("fuseline.writing.new_files.os.fdopen", opened)
    with pytest.raises(fuseline.FuselineError, match=r"cannot be written: No space left") as caught:
        connection.sql(
            f"copy (select range as x, range % 2 as k from range(9)) to '{target}'{by_parts}"
        )
    assert f'"{target}' in str(caught.value)
    assert [path.name for path in folder.iterdir()] == ["f.csv"]
    assert Path("f.csv").read_text() == "a\n1\n"
    assert connection.sql("select 42").fetchall() == [(42,)]


def test_a_pipe_is_written_to_at_once(connection, folder):
    connection.sql("copy (select 1 as a) to '/dev/null' (format csv)")
    assert not Path("/dev/null").is_file()


KILLED = """
import os, sys, time
import fuseline
from fuseline.errors import FileError
from fuseline.writing.copy_to import _NewOutput
write = _NewOutput._write
def held(self, writer, table):
    rows = write(self, writer, table)
    print("now", flush=True)
    time.sleep(1000)
    return rows
_NewOutput._write = held
with fuseline.connect("cpu", fuse="never") as connection:
    connection.execute(sys.argv[1])
"""


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("target", "again"), [
    ("'f.csv'", "'f.csv'"), ("'f.csv'", "'other.csv'"), ("'p' (partition_by p)",) * 2, ("'p' (partition_by p)", "'p' (partition_by p, append)")
])  # fmt: skip
def test_what_a_killed_process_left_is_removed_and_nothing_else(target, again, folder):
    copy = "copy (select range as x, range % 3 as p from range(9)) to "
    command = [sys.executable, "-c", KILLED, copy + target]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "now\n"
    (left,) = folder.rglob("*.writing-*")
    others = [left.with_name(name) for name in ("g.writing-", "g.writing-0123456789abcdef")]
    others.append(left.with_name(re.sub(".writing-.{8}", ".writing-00000000", left.name)))
    for other in others:
        other.write_text("of others")
    with fuseline.connect("cpu", fuse="never") as connection:
        if again == "'p' (partition_by p)":
            with pytest.raises(FileError, match="not empty"):
                connection.execute(copy + again)
        else:
            connection.execute(copy + again)
        assert left.exists()
        process.kill()
        process.wait()
        process.stdout.close()
        if again == "'p' (partition_by p)":
            for other in others:
                other.unlink()
            others = []
        connection.execute(copy + again)
    assert set(folder.rglob("*.writing-*")) == set(others)
    assert [other.read_text() for other in others] == ["of others"] * len(others)


def test_names_that_leave_no_room_are_written_too(connection, folder):
    for name in ("x" * 251 + ".csv", "é" * 125 + ".csv"):
        connection.execute(f"copy (select 7 as x) to '{name}'")
        assert (folder / name).read_text() == "x\n7\n"
