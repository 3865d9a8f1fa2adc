"""Whatever is wrong with the folder of columns or with what it has, answers are those of Parquet, and the profile says why."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, InvalidQuery
from fuseline.storage import spill_folders
from fuseline.storage.column_store import column_file
from fuseline.storage.tables import parquet

if TYPE_CHECKING:
    from pathlib import Path

from .runs import AGGREGATES, QUERIES, ROWS, answers, files, run, table, tiers


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    match how:
        case "cut off":
            path.write_bytes(content[: len(content) // 2])
        case "other bytes":
            path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        case "another version":
            path.write_bytes(content[:-1] + b"2")
        case "empty":
            path.write_bytes(b"")
        case "another column":
            others = path.with_suffix(".other")
            column = column_file.StoredColumn(pa.array([1]))
            column_file.write_column(others, "another key", column, lambda: None)
            others.replace(path)


@pytest.mark.parametrize(
    "how", ["cut off", "other bytes", "another version", "empty", "another column"]
)
def test_a_damaged_file_is_read_from_parquet_and_written_anew(
    source: Path, store: Path, how: str, without_parquet: Any
) -> None:
    expected = answers(source, store)
    for path in files(store):
        damage(path, how)
    found, lifted, reasons = run(source, store)
    assert (found, tiers(lifted)) == (expected, {"Parquet"})
    assert set(reasons) == set("nkumtfbl")
    assert how in reasons["n"] or how == "empty"
    without_parquet()
    assert answers(source, store) == expected


def test_the_reason_stands_in_explain(source: Path, store: Path) -> None:
    run(source, store, ("select sum(n) from t",))
    damage(files(store)[0], "another version")
    with fuseline.connect("cpu", column_store=store) as connection:
        connection.read_parquet(str(source), "t")
        told = connection.sql("select sum(n) from t").explain("analyze")
        assert "n of t is not in the column store: its file is of another version" in told


def test_a_file_that_was_written_anew_has_other_columns(source: Path, store: Path) -> None:
    answers(source, store)
    for factor in (2, 3):
        pq.write_table(table(factor), source, row_group_size=ROWS // 5)
        found, lifted, _ = run(source, store)
        assert (found, tiers(lifted)) == (answers(source, None), {"Parquet"})


def test_a_file_of_the_same_size_and_times_in_its_place(source: Path, store: Path) -> None:
    query, plain = (
        ("select arg_min(n, m) from t",),
        {"compression": "none", "use_dictionary": False},
    )
    found = []
    for numbers in (range(ROWS), range(ROWS)[::-1]):
        content = pa.table({"n": numbers, "m": range(ROWS)})
        pq.write_table(content, source.with_suffix(".new"), **plain)
        source.with_suffix(".new").replace(source)
        os.utime(source, ns=(10**18, 10**18))
        found.append((run(source, store, query)[0], source.stat().st_size))
    (first, size), (second, same) = found
    assert (first, second, size) == ([[(0,)]], [[(ROWS - 1,)]], same)


def test_of_a_file_that_may_still_be_written_nothing_is_kept(
    source: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "is_settled", lambda file: False)
    answers(source, store)
    assert files(store) == []


def test_names_of_columns_and_types_are_told_apart(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"x": pa.array([b"a", b"b"])}), path)
    with fuseline.connect("cpu", column_store=store) as connection:
        blob = f"select x from read_parquet('{path}')"
        text = f"select x from read_parquet('{path}', binary_as_string=true)"
        assert connection.sql(blob).fetchall() == [(b"a",), (b"b",)]
    with fuseline.connect("cpu", column_store=store) as connection:
        assert connection.sql(text).fetchall() == [("a",), ("b",)]


def test_what_may_not_be_opened_is_not_read_from_the_store(
    source: Path, store: Path, tmp_path: Path
) -> None:
    answers(source, store)
    with (
        fuseline.connect(
            "cpu", column_store=store, allowed_paths=[tmp_path / "other"]
        ) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"select sum(n) from '{source}'").fetchall()


def test_a_folder_that_is_open_to_others_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    for mode in (0o755, 0o770, 0o701):
        folder.chmod(mode)
        with pytest.raises(AccessDenied, match=r"column_store cannot be used: .* open to other"):
            fuseline.connect("cpu", column_store=folder)
    folder.chmod(0o700)
    fuseline.connect("cpu", column_store=folder).close()


def test_a_folder_of_somebody_else_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.mkdir(0o700)
    user = os.geteuid()
    monkeypatch.setattr(spill_folders.os, "geteuid", lambda: user + 1)
    with pytest.raises(AccessDenied, match="belongs to another user"):
        fuseline.connect("cpu", column_store=store)


def test_the_folder_is_made_for_its_user_alone(source: Path, store: Path) -> None:
    answers(source, store / "in" / "here")
    assert (store / "in" / "here").stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_may_write_is_not_read(source: Path, store: Path) -> None:
    expected = answers(source, store)
    for path in files(store):
        path.chmod(0o666)
    found, lifted, reasons = run(source, store)
    assert (found, tiers(lifted)) == (expected, {"Parquet"})
    assert "open to other users" in reasons["n"]


def test_the_setting_is_no_business_of_sql(tmp_path: Path) -> None:
    with fuseline.connect("cpu") as connection:
        for name in ("column_store", "column_store_limit"):
            value = f"'{tmp_path}'" if name == "column_store" else "10"
            with pytest.raises(InvalidQuery, match=f"{name} is chosen when a connection is made"):
                connection.execute(f"set {name} = {value}")


def test_a_full_disk(source: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(column_file._Blocks, "write", write)
    expected = answers(source, None)
    assert answers(source, store) == expected
    assert list(store.iterdir()) == []
    with fuseline.connect("cpu", column_store=store) as connection:
        connection.read_parquet(str(source), "t")
        connection.sql("select sum(n) from t").fetchall()
        connection.cache.store.close()  # type: ignore[union-attr]
        frame = connection.sql("select sum(m) from t")
        frame.fetchall()
        (lifted,) = frame.profile.lifted or ()
        assert lifted.reason == "nothing can be written: No space left on device"


def test_a_folder_that_cannot_be_made(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    found, lifted, reasons = run(source, tmp_path / "file" / "columns")
    assert (found, tiers(lifted)) == (answers(source, None), {"Parquet"})
    assert reasons["n"] == "Not a directory"


def test_the_store_is_removed_under_a_reader(source: Path, store: Path) -> None:
    expected = answers(source, store)
    with fuseline.connect("cpu", column_store=store, fuse="always") as connection:
        connection.read_parquet(str(source), "t")
        assert connection.sql(AGGREGATES).fetchall() == expected[0]
        for path in files(store):
            path.unlink()
        store.rmdir()
        assert [connection.sql(query).fetchall() for query in QUERIES] == expected
    assert answers(source, store) == expected


def test_beyond_its_limit_what_was_used_longest_ago_goes(source: Path, store: Path) -> None:
    settings = {"column_store_limit": 200_000, "fuse": "always"}
    for column in "nmtf":  # 60 to 240 kB
        run(source, store, (f"select max({column}) from t",), **settings)
        for path in files(store):
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert sum(path.stat().st_size for path in files(store)) <= 200_000
    assert any("_m_" in path.name for path in files(store))
    assert not any("_f_" in path.name for path in files(store))


def test_what_a_killed_process_has_left_goes(source: Path, store: Path) -> None:
    store.mkdir(0o700)
    old, new = store / "c_old.new", store / "c_new.new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    answers(source, store)
    assert (old.exists(), new.exists()) == (False, True)
