"""read_json: DuckDB's answers for the same file, and an error with file, line and column for what is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import connected

from .json_cases import CASES
from .test_read_csv import same, write


def rows(count: int) -> list[dict[str, object]]:
    return [
        {"i": i, "t": "é" * (i % 50), "l": list(range(i % 4)), "s": {"x": i / 7}}
        for i in range(count)
    ]


@pytest.fixture(params=["by Python", "by kernels"])
def connection(tmp_path, monkeypatch, request, limits):
    """Lines of few objects are read as those of many are, some at a time."""
    if request.param == "by kernels":
        limits(FEW_DOCUMENTS=-1, WAITED_FOR=0, json_lines__TEXT_BYTES=1 << 9)
    monkeypatch.chdir(tmp_path)
    with connected({}, device="cpu") as opened:
        yield opened


@pytest.mark.by_day
@pytest.mark.parametrize(("content", "options"), CASES)
def test_a_file_has_the_columns_and_rows_that_duckdb_finds(content, options, connection):
    write(content, "f.json")
    same(connection, f"select * from read_json('f.json', {options})".replace(", )", ")"))


@pytest.mark.by_day
@pytest.mark.parametrize(
    ("form", "made"),
    [
        ("newline_delimited", lambda: "\n".join(json.dumps(r, ensure_ascii=False) for r in rows(12_000))),
        ("array", lambda: json.dumps(rows(12_000))),
        ("unstructured", lambda: "".join(json.dumps(row, indent=1) for row in rows(5000))),
    ],
    ids=["lines", "array", "objects"],
)  # fmt: skip
def test_files_of_several_blocks(form, made, connection, limits):
    limits(json_lines__TEXT_BYTES=1 << 14)
    text = made()
    write(text, "f.json")
    write(gzip.compress(text.encode()), "g.json.gz")
    assert same(connection, "from 'f.json'")
    assert same(connection, f"from read_json('g.json.gz', format = '{form}', filename = true)")


def test_lines_that_the_kernels_leave_to_python(connection):
    lines = [
        '{"a": 1, "b": "x", "c": [1.5, 2], "d": {"e": true, "f": "2024-01-01"}, "g": "2024-01-01 10:00:00"}'
    ] * 30
    lines += ["", " ", '{"a": null, "c": null}', "null", "{}", '{"a": 5}']
    lines += ['{"b": "\\u00e9\\n\\"", "c": [0.1234567890123456789, 1e300]}', '{"\\u0061": 3}']
    lines += ['{"d": {"f": null}, "a": 7}', ' { "a" : 8 , "b" : "é" , "c" : [ ] } ', '{"a": 5}']
    write("\n".join(lines), "f.json")
    assert same(connection, "from 'f.json'")
    write("\r\n".join(lines) + "\r\n\r\n", "f.json")
    assert same(connection, "from 'f.json'")
    write("\n".join([*lines, '{"a": 1}{"a": 2}', '{"a":', "3}", *lines]), "f.json")
    found = connection.sql("select a from 'f.json'").fetchall()
    assert found[len(lines) - 2 :][:3] == [(1,), (2,), (3,)]  # of lines that are not blank


@pytest.mark.by_day
@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"a":1}\n\n{"a":"x"}\n', "columns = {'a': 'INT'}", r'"x" is no INTEGER: file "f.json", line 3, column "a"'),
        ('[{"a":1},\n{"a":\n"x"}]', "columns = {'a': 'INT'}", r'"x" is no INTEGER: file "f.json", line 2, column "a"'),
        ('{"a":1}\n' * 30000 + '{"a":[2]}', "", r'"\[2\]" is no BIGINT: file "f.json", line 30001, column "a"'),
        ('{"a":1}\n{"a":1,"b":2}', "sample_size = 1", r'the key "b", which the first values have not: file "f.json", line 2'),
        ('{"a":{"x":1}}\n{"a":{"y":2}}', "sample_size = 1", r'the key "y"'),
        ('{"a":1}\n5', "sample_size = 1", r"a value that is no object: file .*, line 2"),
        ('{"a":1}\nx', "", r'"f.json" is no JSON at line 2'),
        ('[{"a":1},\n{"a":2}', "", r'"f.json" is no JSON at line 2'),
        ('[{"a":1}\n{"a":2}]', "", r"a comma is missing"),
        ('[{"a":1},\nx]', "ignore_errors = true", r"no JSON at line 2"),
        ('{"a":1,"a":2}', "", r'the key "a" twice'),
        ('{"a":"' + "x" * 3_000_000, "maximum_object_size = 1000", r"more than 1000 characters"),
        ('[' * 100_000, "", r"no JSON at line 1"),
        (b'{"a":"\xff"}', "", r"is not UTF-8"),
        ('{"a":"\\ud800"}', "", r"half a character"),
        ('{"a":"31-12-2020"}', "", r"dateformat"),
        ('{"a":1}', "columns = {'a': 'INTERVAL'}", r"INTERVAL"),
        ('{"a":1}', "auto_detect = false", r"needs columns"),
        ('{"filename":1}', "filename = true", r"already"),
        ('{"a":1}', "file_row_number = true", r"file_row_number of read_json is not supported"),
        ('{"a":1}', "foo = 5", r'no option "foo"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(content, options, message, connection):
    write(content, "f.json")
    with pytest.raises(fuseline.FuselineError, match=message):
        connection.sql(
            f"select * from read_json('f.json', {options})".replace(", )", ")")
        ).to_arrow()


def test_a_column_of_another_type_fails_where_it_is_named(connection):
    write('{"a":1,"b":"31-12-2020"}\n{"a":2,"b":"30-12-2020"}', "f.json")
    assert same(connection, "select sum(a) from 'f.json'")
    for query in ("from 'f.json'", "select b from 'f.json'"):
        with pytest.raises(fuseline.FuselineError, match="dateformat"):
            connection.sql(query).to_arrow()


def test_json_of_a_file_is_read_as_that_of_a_table(connection):
    write('{"a":1,"b":{"c":[1,"x"]}}\n{"a":"x","b":{"c":[]}}\n{"a":null}', "f.json")
    for query in (
        "select typeof(a), a ->> '$', b.c[2] ->> '$', typeof(b) from 'f.json'",
        "select a, count(*) from 'f.json' group by a order by a",
        "select key, value from 'f.json', json_each(to_json(b))",
    ):
        assert same(connection, query)


def test_paths_functions_and_copy_read(connection):
    write('{"a":1}\n{"a":2}\n', "1.ndjson")
    write('[{"a":3, "b":"2020-01-01"}]', "2.json")
    for path in ("'1.ndjson'", "read_ndjson('1.ndjson')", "read_json_auto('2.json')"):
        assert same(connection, f"select * from {path}")
    assert same(connection, "select * from read_json(['1.ndjson', '2.json'])")
    reference = duckdb.connect()
    for each in (connection, reference):
        each.sql("create table t(a integer, b date)")
    for file in ("1.ndjson", "2.json"):
        count = connection.sql(f"copy t from '{file}'").fetchall()
        assert count == reference.execute(f"copy t from '{file}'").fetchall()
    assert connection.sql("from t").fetchall() == reference.sql("from t").fetchall()
    assert connection.read_json("2.json", "u", columns={"a": "BIGINT"}).fetchall() == [(3,)]
    assert fuseline.read_json(Path("1.ndjson")).fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_values_deep_in_others(before, behind, connection):
    """Types are as deep as Parquet has them, and what lies deeper is JSON."""
    for levels, deepest in ((10, "BIGINT"), (49, "JSON"), (127, "JSON")):
        write(f'{{"x": {before * levels}1{behind * levels}}}', "f.json")
        ((kind, _),) = connection.execute("select typeof(x), x from 'f.json'").fetchall()
        assert deepest in kind
    write(f'{{"x": {before * 100_000}1{behind * 100_000}}}', "f.json")
    with pytest.raises(FuselineError, match="no JSON at line 1: values lie too deep in others"):
        connection.execute("from 'f.json'").fetchall()
