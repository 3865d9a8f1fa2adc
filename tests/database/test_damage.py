"""Folders whose files are damaged: an error that names the file, and the other tables go on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import fuseline
from fuseline.database import commit_log, folder_database
from fuseline.errors import FileError


def connect(folder: Path) -> fuseline.Connection:
    return fuseline.connect(folder, device="cpu", fuse="never", column_cache_limit=0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two tables in files, one in Arrow's form, and a table in the log."""
    monkeypatch.setattr(folder_database, "INLINE_BYTES", 1000)
    place = tmp_path / "shop"
    with connect(place) as connection:
        connection.execute("create table good as select range as a from range(1000)")
        connection.execute("create table small as select 1 as a")
        files = {*(place / "data").iterdir()}
        connection.execute(
            "create table bad as select range * 7919 % 10007 as a from range(100000)"
        )
        connection.execute(
            "create table moments as select range as a, to_days(range::integer) as i from range(1000)"
        )
    names = {path.suffix: path for path in {*(place / "data").iterdir()} - files}
    names[".parquet"].rename(place / "data" / ("b" * 32 + ".parquet"))
    names[".arrow"].rename(place / "data" / ("c" * 32 + ".arrow"))
    log = next(place.glob("catalog*"))
    text = log.read_text()
    for suffix, letter in ((".parquet", "b"), (".arrow", "c")):
        text = text.replace(names[suffix].stem, letter * 32)
    lines = [line.partition(" ")[2].encode() for line in text.splitlines()]
    log.write_bytes(b"".join(b"%08x %s\n" % (commit_log.zlib.crc32(line), line) for line in lines))
    return place


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize("damage", [flipped, cut, Path.unlink])
@pytest.mark.parametrize(("table", "name"), [("bad", "b" * 32), ("moments", "c" * 32)])
def test_a_damaged_file_is_named_and_other_tables_go_on(
    damage: Callable[[Path], object], table: str, name: str, folder: Path
) -> None:
    path = next((folder / "data").glob(f"{name}*"))
    damage(path)
    with connect(folder) as connection:
        for text in (f"select sum(a) from {table}", f"update {table} set a = 1"):
            with pytest.raises(FileError, match=re.escape(str(path))):
                connection.sql(text).fetchall()
        assert connection.sql("select sum(a) from good").fetchall() == [(499500,)]
        assert connection.sql("from small").fetchall() == [(1,)]
        connection.execute(f"drop table {table}; insert into small values (2)")
        assert connection.sql("show tables").fetchall() == [
            (t,) for t in ("bad", "good", "moments", "small") if t != table
        ]


def test_a_damaged_log_is_named(folder: Path) -> None:
    (log,) = folder.glob("catalog*")
    whole = log.read_bytes()
    for place in (0, 5, 12, len(whole) // 2, len(whole) - 2):
        data = bytearray(whole)
        data[place] ^= 4
        log.write_bytes(data)
        with pytest.raises(FileError, match=re.escape(str(log))):
            connect(folder)
    log.write_bytes(whole)
    connect(folder).close()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"format":"fuseline database","version":2,"changes":[]}', "has the version 2"),
        ('{"format":"another","version":1,"changes":[]}', "is damaged at byte 0"),
        ('{"format":"fuseline database","version":1,"changes":[{"do":1}]}', "cannot be read"),
        ('{"format":"fuseline database","version":1}', "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("7", "is damaged"),
    ],
)
def test_another_log_is_refused(record: str, message: str, folder: Path) -> None:
    (log,) = folder.glob("catalog*")
    log.write_bytes(b"%08x %s\n" % (commit_log.zlib.crc32(record.encode()), record.encode()))
    with pytest.raises(FileError, match=message):
        connect(folder)


def test_a_log_names_files_of_its_own_folder_alone(folder: Path) -> None:
    (log,) = folder.glob("catalog*")
    text = log.read_text().partition(" ")[2].splitlines()[0].replace("b" * 32, "../" + "b" * 29)
    log.write_bytes(b"%08x %s\n" % (commit_log.zlib.crc32(text.encode()), text.encode()))
    with pytest.raises(FileError, match="a change that cannot be read"):
        connect(folder)


def test_a_link_in_the_place_of_a_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    path = folder / "data" / ("b" * 32 + ".parquet")
    path.rename(tmp_path / "elsewhere.parquet")
    path.symlink_to(tmp_path / "elsewhere.parquet")
    with connect(folder) as connection, pytest.raises(FileError, match="damaged"):
        connection.sql("from bad").fetchall()


@pytest.mark.parametrize(
    "replace", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")]
)
def test_what_is_no_file_is_not_read_as_a_catalog(
    replace: Callable[[Path], object], folder: Path
) -> None:
    (log,) = folder.glob("catalog*")
    log.unlink()
    replace(log)
    with pytest.raises(FileError, match=f"{re.escape(str(log))}.*cannot be read"):
        connect(folder)


def test_counts_in_a_log_have_64_bits(folder: Path) -> None:
    (log,) = folder.glob("catalog*")
    texts = [line.partition(b" ")[2] for line in log.read_bytes().splitlines()]
    larger = [re.sub(rb'"rows":\[\[1,', b'"rows":[[%d,' % 10**25, text) for text in texts]
    assert larger != texts
    log.write_bytes(b"".join(b"%08x %s\n" % (commit_log.zlib.crc32(t), t) for t in larger))
    with pytest.raises(FileError, match="a change that cannot be read"):
        connect(folder)


@pytest.mark.parametrize(
    "rule", ["a bigint primary key", "a bigint not null", "a bigint default 3"]
)
def test_rules_in_a_log_name_columns_of_their_table(rule: str, tmp_path: Path) -> None:
    with connect(tmp_path / "shop") as connection:
        connection.execute(f"create table t ({rule})")
    (log,) = (tmp_path / "shop").glob("catalog*")
    texts = [line.partition(b" ")[2] for line in log.read_bytes().splitlines()]
    other = [
        text.replace(b'[["a", {', b'[["b", {').replace(b'[["a",{', b'[["b",{') for text in texts
    ]
    assert other != texts
    log.write_bytes(b"".join(b"%08x %s\n" % (commit_log.zlib.crc32(t), t) for t in other))
    with pytest.raises(FileError, match="a change that cannot be read"):
        connect(tmp_path / "shop")
