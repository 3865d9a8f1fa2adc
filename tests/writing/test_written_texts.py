"""COPY TO of CSV and JSON: the bytes are those that DuckDB writes, over more rows than a step writes at a time."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import polars as pl
import pytest

import fuseline

ROWS = 40_000
NUMBERS = f"""select i, case when i % 7 <> 0 then i * 1.5 - 3000 end::decimal(12, 3) wide, (i % 90 - 40)::decimal(4, 2) narrow, (i % 99 / 100)::decimal(2, 2) part,
  i::decimal(18, 7) long, i::decimal(30, 2) widest, case when i % 5 <> 0 then sqrt(i) * power(10, i % 40 - 20) end::double scattered, i / 4 halves, (i / 7)::float short,
  (i - 20000)::float whole, date '1992-01-01' + (i % 2500)::integer a_day, timestamp '2020-01-01' + to_microseconds(i * 777777777) at_moment,
  timestamp '2020-01-01' + to_seconds(i) at_second, time '00:00:00' + to_seconds(i * 2) at_clock, i % 3 = 0 is_third
from range({ROWS}) t(i)"""
TEXTS = f"""select ['plain', 'a,b', 'a"b', 'a#b', '#', '', null, 'line' || chr(10), chr(13), 'a''b', 'a\\b', 'NA', '|', 'é☃', ' ', chr(7)][i % 16 + 1] mixed,
  'row' || i "n#o", case when i % 1000 = 0 then 'a,"' || i else 'same' end rare, null::varchar nothing, ['x', 'y,z', null][i % 3 + 1] few, [i, null] "list"
from range({ROWS}) t(i)"""


def written(query: str, options: str, folder: Path) -> tuple[bytes, bytes]:
    """Return what we write and what DuckDB writes."""
    files = folder / "ours", folder / "theirs"
    fuseline.connect(device="cpu").execute(f"copy ({query}) to '{files[0]}' ({options})")
    duckdb.connect().execute(f"copy ({query}) to '{files[1]}' ({options})")
    return files[0].read_bytes(), files[1].read_bytes()


CSV = ["", "header false, nullstr 'NA'", "delim '|', quote ''''", "escape '\\'", "force_quote *", "delim '#'"]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "options"), [*itertools.product([NUMBERS, TEXTS], CSV), (TEXTS, "quote ''")]
)
def test_lines_of_csv_are_those_of_duckdb(query, options, tmp_path):
    ours, theirs = written(query, ", ".join(filter(None, ["format csv", options])), tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("form", ["csv", "json"])
def test_moments_of_each_unit_have_the_formats_that_duckdb_gives_them(form, tmp_path):
    moments = ", ".join(
        f"m::{kind} as {kind}"
        for kind in (
            "timestamp",
            "timestamptz",
            "timestamp_s",
            "timestamp_ms",
            "timestamp_ns",
            "date",
        )
    )
    query = f"select {moments} from (values (timestamp '2020-01-02 03:04:05'), (null)) v(m)"
    for options in ("timestampformat '%d.%m.%Y'", "dateformat '%m/%d'"):
        ours, theirs = written(query, f"format {form}, {options}", tmp_path)
        assert ours == theirs


@pytest.mark.parametrize("query", [NUMBERS, TEXTS])
@pytest.mark.parametrize("array", ["true", "false"])
def test_lines_of_json_are_those_of_duckdb(query, array, tmp_path):
    ours, theirs = written(query, f"format json, array {array}", tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_lines_too(rows, tmp_path):
    for form in ("csv", "json", "json, array true"):
        ours, theirs = written(f"from ({TEXTS}) limit {rows}", f"format {form}", tmp_path)
        assert ours == theirs


MANY = """select i, i::hugeint * i * i huge, i // 4 few, case when i % 3 <> 0 then i * 7 end::integer gaps, (i % 250)::utinyint tiny, (i % 9)::smallint small, i::ubigint not_below,
  (i * 1.25)::decimal(9, 2) narrow, (i - 5000)::decimal(18, 4) wide, i::decimal(30, 1) widest, sqrt(i) root, i::float short_real, 'text ' || i numbered, ['a', null, 'b'][i % 3 + 1] kinds,
  date '2020-01-01' + i::integer a_day, timestamp '2020-01-01' + to_seconds(i) at_second, timestamptz '2020-01-01 00:00:00+00' + to_hours(i) at_hour,
  time '00:00:00' + to_seconds(i) at_clock, i % 2 = 0 is_even, ('x' || i)::blob in_bytes, null::bigint nothing
from range(ROWS) t(i)"""


@pytest.mark.parametrize("rows", [0, 1, 5000, 8192, 20_000])
@pytest.mark.parametrize("more", ["", ", [i, null] listed, {'a': i} record"])
def test_parquet_of_many_values_comes_back(rows, more, tmp_path):
    query = MANY.replace("ROWS", str(rows)).replace(" nothing\n", f" nothing{more}\n")
    path = tmp_path / "f.parquet"
    with fuseline.connect(device="cpu") as connection:
        connection.execute(f"copy ({query}) to '{path}' (row_group_size 9000)")
        expected = connection.sql(query).to_arrow()
        assert connection.sql(f"from '{path}'").to_arrow().equals(expected)
    found = duckdb.connect().execute(f"from '{path}'").fetchall()
    hidden = (
        duckdb.connect()
        .execute(query.replace("i::hugeint * i * i", "(i::hugeint * i * i)::decimal(38, 0)"))
        .fetchall()
    )
    assert found == hidden
    assert pl.read_parquet(path).height == rows
    if rows >= 8192 and not more:
        said = f"select path_in_schema, encodings from parquet_metadata('{path}')"
        kinds = dict(duckdb.connect().execute(said).fetchall())
        for name in ("i", "few", "gaps", "not_below", "narrow", "wide", "a_day", "at_second"):
            assert "DELTA_BINARY_PACKED" in kinds[name], name
        for name in ("tiny", "small", "kinds"):
            assert "DICTIONARY" in kinds[name], name
        assert "DICTIONARY" not in kinds["numbered"]
