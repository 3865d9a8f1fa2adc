"""Values of JSON files as they are, options of what types are guessed, and Hive's folders: DuckDB's answers for the same files."""

from __future__ import annotations

import json
import random

import pytest

from fuseline import errors
from tests.compare import connected

from .test_read_csv import same, write

FILES = {
    "lines.json": '{"a": 1 , "b" : [1, 2]}\n\n  "x"\n[1,  2]\n5\nnull\n',
    "several.json": '{"a":\n 1}\n{"a":2} {"a":3}\n',
    "array.json": '[{"a":1},\n {"b" : 2} , 3]',
    "twice.json": '{"a":1,"a":2}\n{"a":1.500}\n{"a":"\\u00e9\\n"}\n',
    "broken.json": '{"a":1}\n{"b":\n{"c":3}\n',
    "empty.json": "",
    "texts.json": '{"a":"1","b":"007","c":"-5","d":["1"," 2"],"e":"9223372036854775808"}\n{"a":"3"}',
    "maps.json": "\n".join(json.dumps({"o": {f"k{i % 7}": i}, "p": {"a": i}}) for i in range(20)),
    "rare.json": "\n".join(json.dumps({"o": {f"k{i}": i}, "p": {"a": i}}) for i in range(20)),
    "1.json": '{"a":1}',
    "2.json": '{"a":"x"}',
    "3.json": '{"b":"x"}',
    "y=1/m=a/p.json": '{"a": 1,"b": "x"}\n{"a":  null , "c":[1,2]}\n',
    "y=2/m=b/p.json": '[{"a":3}, {"a" : "4"}]',
    "y=2/m=c/q.json": '{"y":7,"k":1}',
}
READERS = ("read_json_objects", "read_json_objects_auto", "read_ndjson_objects")
HIVE = ("y=*/m=*/p.json", "y=2/m=c/q.json")


@pytest.fixture
def connection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(content, name)
    with connected({}, device="cpu") as opened:
        yield opened


@pytest.mark.parametrize("reader", READERS)
def test_values_keep_their_text(reader, connection):
    read = [same(connection, f"from {reader}('{name}')") for name in FILES if name.count("/") == 0]
    assert sum(read) > len(read) // 2
    assert same(connection, f"from {reader}('broken.json', format = 'nd', ignore_errors = true)")


def test_what_values_are_not_asked_is_refused(connection):
    for option in (
        "columns = {'a': 'INT'}",
        "records = true",
        "sample_size = 1",
        "dateformat = '%Y'",
    ):
        assert not same(connection, f"from read_json_objects('lines.json', {option})")
    with pytest.raises(errors.FileError, match=r'"broken.json" is no JSON'):
        connection.sql("from read_json_objects('broken.json')").fetchall()


@pytest.mark.parametrize("path", HIVE)
@pytest.mark.parametrize("reader", ["read_json", "read_json_objects"])
def test_folders_are_columns_as_hive_has_them(reader, path, connection):
    for options in (
        "",
        ", hive_partitioning = true",
        ", hive_partitioning = false",
        ", hive_types = {'y': 'VARCHAR'}",
        ", hive_types_autocast = false",
        ", hive_partitioning = true, filename = true",
    ):
        assert same(connection, f"from {reader}('{path}'{options})")
    assert not same(connection, f"from {reader}('{path}', hive_types = {{'z': 'INT'}})")


def test_partitions_filter_and_group(connection):
    query = "select y, m, count(*) from read_json('y=*/m=*/p.json') where y = 2 group by all"
    assert same(connection, query)


@pytest.mark.parametrize(
    "options",
    [
        "convert_strings_to_integers = true",
        "map_inference_threshold = 5",
        "map_inference_threshold = -1",
        "map_inference_threshold = 0",
        "map_inference_threshold = -2",
        "field_appearance_threshold = 0.01",
        "field_appearance_threshold = 1, map_inference_threshold = 3",
        "field_appearance_threshold = 2",
        "geojson = false, case_insensitive_keys = false",
    ],
)
def test_how_types_are_guessed(options, connection):
    for name in ("texts", "maps", "rare"):
        same(connection, f"from read_json('{name}.json', {options})")


@pytest.mark.parametrize("most", [0, 1, 2, 3, -1, -2])
def test_files_that_tell_the_columns(most, connection):
    same(
        connection, f"from read_json(['1.json', '2.json', '3.json'], maximum_sample_files = {most})"
    )
    names = f"from read_json(['1.json', '3.json'], maximum_sample_files = {most}"
    same(connection, f"{names})")
    same(connection, f"{names}, union_by_name = true)")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ("format json, maximum_sample_files 1", [("1", "007")]),
        ("format json, convert_strings_to_integers true", [("1", "007")]),
    ],
)
def test_copy_takes_the_options(options, rows, connection):
    connection.execute("create table t (a VARCHAR, b VARCHAR)")
    write('{"a":"1","b":"007"}', "one.json")
    connection.execute(f"copy t from 'one.json' ({options})")
    assert connection.sql("from t").fetchall() == rows
    with pytest.raises(errors.FileError, match="no array"):
        connection.execute("copy t from 'one.json' (format json, array true)")
    with pytest.raises(errors.FuselineError, match="hive_partitioning"):
        connection.execute("copy t from 'one.json' (format json, hive_partitioning true)")


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_copy_reads_a_file_in_a_folder_of_a_partition(form, connection):
    connection.execute("create table k (y BIGINT, k BIGINT)")
    connection.execute(f"copy (select 7::BIGINT as y, 1::BIGINT as k) to 'y=2/m=c/r.{form}'")
    connection.execute(f"copy k from 'y=2/m=c/r.{form}'")
    assert connection.sql("from k").fetchall() == [(7, 1)]


def test_a_folder_that_may_not_be_read(tmp_path, connection):
    with connected({}, device="cpu", allowed_paths=[str(tmp_path / "y=1")]) as other:
        with pytest.raises(errors.AccessDenied):
            other.sql("from read_json_objects('lines.json')").fetchall()
        found = other.sql(f"from read_json_objects('{tmp_path}/y=1/m=a/p.json')").fetchall()
        assert [row[1:] for row in found] == [("a", 1)] * 2


def drawn(source: random.Random) -> str:
    """Return a file of a drawn form, which may be none that can be read."""

    def value(depth: int) -> object:
        kind = source.randrange(9 if depth else 6)
        if kind < 6:
            return source.choice([None, True, 1, -2.5, "x", "é\n", "", "12", 10**15, "2020-01-01"])
        if kind == 6:
            return [value(depth - 1) for _ in range(source.randrange(3))]
        return {source.choice("abcde"): value(depth - 1) for _ in range(source.randrange(4))}

    values = [
        value(2) if source.random() < 0.4 else {"a": value(1)} for _ in range(source.randrange(5))
    ]
    texts = [json.dumps(v, ensure_ascii=source.random() < 0.5, indent=source.choice([None, None, 1])) for v in values]  # fmt: skip
    form = source.randrange(4)
    if form == 0:
        return "[" + source.choice([",", " ,\n"]).join(texts) + "]" + source.choice(["", "\n"])
    return source.choice(["\n", "\n\n", "\n \n", "\r\n"]).join(texts) + source.choice(["", "\n"])


def agree(connection, seed: int) -> bool:
    """Both give the same, or DuckDB refuses: it holds a file to the form that its first value has."""
    source = random.Random(seed)
    write(drawn(source), "drawn.json")
    option = source.choice(["", "", ", format = 'nd'", ", format = 'array'", ", format = 'unstructured'"])  # fmt: skip
    return same(connection, f"from read_json_objects('drawn.json'{option})", refused=False)


def test_drawn_files(connection):
    assert sum(agree(connection, seed) for seed in range(60)) > 30


@pytest.mark.nightly
def test_many_drawn_files(connection):
    assert sum(agree(connection, seed) for seed in range(1000, 1500)) > 250
