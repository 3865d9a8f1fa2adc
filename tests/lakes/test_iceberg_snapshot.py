"""Iceberg tables: snapshots, renamed and later columns, position deletes, deletion vectors, and equality deletes refused."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError, Unsupported
from tests.lakes.lake_writers import add_deletes, puffin

sql = pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")


def rows(connection, query):
    return connection.sql(query).fetchall()


@pytest.fixture
def catalog(tmp_path):
    made = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    made.create_namespace("n")
    yield made
    made.close()


@pytest.fixture
def table(catalog):
    first = pa.table(
        {"a": pa.array([1, 2, 3], pa.int32()), "s": ["x", "y", None], "gone": [1.0, 2.0, 3.0]}
    )
    made = catalog.create_table("n.t", schema=first.schema)
    made.append(first)
    return made


def folder(table) -> str:
    return table.location().removeprefix("file://")


def changed(table) -> None:
    from pyiceberg.types import DoubleType, LongType

    with table.update_schema() as update:
        update.rename_column("s", "text")
        update.update_column("a", LongType())
        update.delete_column("gone")
    with table.update_schema() as update:
        update.add_column("gone", DoubleType())
    table.append(pa.table({"a": pa.array([1 << 40], pa.int64()), "text": ["q"], "gone": [2.5]}))


def test_columns_are_found_by_their_ids(table) -> None:
    changed(table)
    with fuseline.connect("cpu") as connection:
        found = rows(
            connection, f"select a, text, gone from iceberg_scan('{folder(table)}') order by a"
        )
        assert found == [(1, "x", None), (2, "y", None), (3, None, None), (1 << 40, "q", 2.5)]
        connection.read_iceberg(folder(table), name="i")
        assert rows(connection, "select max(text) from i where a < 3") == [("y",)]


def test_snapshots_by_id_and_moment(table) -> None:
    first = table.current_snapshot()
    changed(table)
    moment = datetime.datetime.fromtimestamp(first.timestamp_ms / 1000, datetime.UTC)
    with fuseline.connect("cpu") as connection:
        for asked in (f"snapshot_from_id = {first.snapshot_id}", f"snapshot_from_timestamp = '{moment.isoformat()}'"):  # fmt: skip
            found = rows(
                connection,
                f"select a, s, gone from iceberg_scan('{folder(table)}', {asked}) where a = 1",
            )
            assert found == [(1, "x", 1.0)]
        with pytest.raises(FileError, match="no such snapshot"):
            connection.sql(f"from iceberg_scan('{folder(table)}', snapshot_from_id = 5)")


def test_what_is_written_is_seen(table) -> None:
    with fuseline.connect("cpu") as connection:
        connection.read_iceberg(folder(table), name="i")
        assert rows(connection, "select sum(a) from i") == [(6,)]
        table.append(pa.table({"a": pa.array([4], pa.int32()), "s": ["w"], "gone": [0.5]}))
        assert rows(connection, "select sum(a), sum(gone) from i") == [(10, 6.5)]
        table.delete("a = 2")
        assert rows(connection, "select sum(a) from i") == [(8,)]


def test_a_table_without_rows_has_none(catalog) -> None:
    made = catalog.create_table("n.empty", schema=pa.schema({"a": pa.int64()}))
    with fuseline.connect("cpu") as connection:
        assert rows(connection, f"select count(*), sum(a) from iceberg_scan('{folder(made)}')") == [
            (0, None)
        ]


def test_partitions_are_columns_of_the_files(catalog) -> None:
    data = pa.table({"p": ["x", "y", "x"], "v": [1, 2, 3]})
    made = catalog.create_table("n.p", schema=data.schema)
    with made.update_spec() as update:
        update.add_identity("p")
    made.append(data)
    with fuseline.connect("cpu") as connection:
        assert rows(
            connection, f"select sum(v) from iceberg_scan('{folder(made)}') where p = 'x'"
        ) == [(4,)]


@pytest.fixture
def large(catalog):
    data = pa.table({"n": range(1000), "s": [f"t{i % 3}" for i in range(1000)]})
    made = catalog.create_table(
        "n.large", schema=data.schema, properties={"write.parquet.row-group-limit": "100"}
    )
    made.append(data)
    made.append(pa.table({"n": range(1000, 1010), "s": ["z"] * 10}))
    return made


def data_files(table) -> list[str]:
    found = [(task.file.record_count, task.file.file_path) for task in table.scan().plan_files()]
    return [path for _, path in sorted(found, reverse=True)]


def delete_file(path: Path, count: int, **more: object) -> dict[str, object]:
    from pyiceberg.manifest import DataFileContent, FileFormat

    kind = FileFormat.PARQUET if path.suffix == ".parquet" else FileFormat.PUFFIN
    return {"content": DataFileContent.POSITION_DELETES, "file_path": f"file://{path}", "file_format": kind, "record_count": count,
            "file_size_in_bytes": path.stat().st_size, **more}  # fmt: skip


GONE = [0, 99, 100, 500, 999, *range(200, 300)]


@pytest.mark.parametrize("fuse", ["never", "always"])
def test_position_deletes_are_applied(fuse, large, tmp_path) -> None:
    first, second = data_files(large)
    deletes = tmp_path / "deletes.parquet"
    places = pa.table({"file_path": [first] * len(GONE) + [second], "pos": [*GONE, 3]})
    pq.write_table(places, deletes)
    add_deletes(large, [delete_file(deletes, len(GONE) + 1)])
    left = [n for n in range(1010) if n not in GONE and n != 1003]
    with fuseline.connect("cpu", fuse=fuse) as connection:
        found = rows(connection, f"select n from iceberg_scan('{folder(large)}') order by n")
        assert found == [(n,) for n in left]


def test_deletion_vectors_are_applied(large, tmp_path) -> None:
    first, second = data_files(large)
    vectors = tmp_path / "deletes.puffin"
    puffin(vectors, {first: GONE, second: [3]})
    add_deletes(large, [delete_file(vectors, len(GONE))])
    left = [n for n in range(1010) if n not in GONE and n != 1003]
    with fuseline.connect("cpu") as connection:
        found = rows(connection, f"select count(*), sum(n) from iceberg_scan('{folder(large)}')")
        assert found == [(len(left), sum(left))]


def test_equality_deletes_are_refused(large, tmp_path) -> None:
    from pyiceberg.manifest import DataFileContent

    deletes = tmp_path / "deletes.parquet"
    pq.write_table(pa.table({"n": [5]}), deletes)
    add_deletes(
        large, [delete_file(deletes, 1, content=DataFileContent.EQUALITY_DELETES, equality_ids=[1])]
    )
    with (
        fuseline.connect("cpu") as connection,
        pytest.raises(Unsupported, match="equality deletes"),
    ):
        connection.sql(f"from iceberg_scan('{folder(large)}')")


def test_tables_are_judged_as_files(table, tmp_path) -> None:
    with (
        fuseline.connect("cpu", allowed_paths=[tmp_path / "other"]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from iceberg_scan('{folder(table)}')")
    with fuseline.connect("cpu", allowed_paths=[folder(table)]) as connection:
        assert rows(connection, f"select sum(a) from iceberg_scan('{folder(table)}')") == [(6,)]
    with (
        fuseline.connect("cpu", allowed_paths=[f"{folder(table)}/metadata"]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from iceberg_scan('{table.metadata_location.removeprefix('file://')}')")


@pytest.mark.parametrize(
    "length", [b"\x80\x80\x80\x80\x08", b"\xfe\xff\xff\xff\xff\x7f", b"\xff\xff\x7f"]
)
def test_a_manifest_of_lengths_beyond_its_end_is_an_error(length: bytes, large) -> None:
    """The length of the first name in its header: the library read beyond the file, and the process ended."""
    for list_of_manifests in Path(folder(large)).rglob("snap-*.avro"):
        list_of_manifests.write_bytes(b"Obj\x01\x02" + length)
    with fuseline.connect("cpu") as connection, pytest.raises(FileError):
        connection.sql(f"select * from iceberg_scan('{folder(large)}')").fetchall()


def test_what_is_no_table_is_said(tmp_path) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(FileError, match="no Iceberg table"):
            connection.read_iceberg(tmp_path)
        (tmp_path / "metadata").mkdir()
        (tmp_path / "metadata/v1.metadata.json").write_text("{}")
        with pytest.raises(FileError, match="cannot be read"):
            connection.read_iceberg(tmp_path)
