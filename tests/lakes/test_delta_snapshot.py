"""Delta tables: versions, partitions, columns that came later, deletion vectors, and what is refused."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError, Unsupported
from tests.lakes.lake_writers import delta_with_vectors

deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")

FIRST = pa.table(
    {
        "a": pa.array([1, 2, 3], pa.int32()),
        "p": ["x y/ä", None, "b"],
        "day": pa.array([datetime.date(2024, 2, 29)] * 2 + [None]),
        "m": pa.array([Decimal("1.25")] * 3, pa.decimal128(9, 2)),
        "t": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "l": [[1, 2], [], None],
    }
)


def rows(connection, query):
    return connection.sql(query).fetchall()


@pytest.fixture
def table(tmp_path):
    root = str(tmp_path / "table")
    deltalake.write_deltalake(root, FIRST, partition_by=["p", "day"])
    more = pa.table({"a": pa.array([9], pa.int32()), "p": ["b"], "new": [2.5]})
    deltalake.write_deltalake(root, more, mode="append", schema_mode="merge")
    return root


def test_all_rows_are_read(table) -> None:
    with fuseline.connect("cpu") as connection:
        found = connection.read_delta(table, name="d").to_arrow()
        expected = deltalake.DeltaTable(table).to_pyarrow_table()
        assert sorted(found.column_names) == sorted(expected.column_names)
        expected = expected.select(found.column_names).cast(found.schema)
        assert found.sort_by("a").equals(expected.sort_by("a"))
        assert rows(connection, "select a, p from d where day = date '2024-02-29' order by a") == [(1, "x y/ä"), (2, None)]  # fmt: skip
        assert rows(connection, f"select sum(new) from delta_scan('{table}') where p = 'b'") == [
            (2.5,)
        ]
        assert rows(connection, "select count(*) from d where p is null and new is null") == [(1,)]


def test_versions_and_moments(table) -> None:
    with fuseline.connect("cpu") as connection:
        assert rows(connection, f"select count(*) from delta_scan('{table}', version = 0)") == [
            (3,)
        ]
        history = deltalake.DeltaTable(table).history()
        first = datetime.datetime.fromtimestamp(history[-1]["timestamp"] / 1000, datetime.UTC)
        asked = f"delta_scan('{table}', timestamp = '{first.isoformat()}')"
        assert rows(connection, f"select count(*) from {asked}") == [(3,)]
        with pytest.raises(FileError, match="version 7"):
            connection.sql(f"from delta_scan('{table}', version = 7)")


def test_what_is_written_is_seen(table) -> None:
    with fuseline.connect("cpu") as connection:
        connection.read_delta(table, name="d")
        count = "select count(*), sum(a) from d"
        assert rows(connection, count) == [(4, 15)]
        deltalake.write_deltalake(table, FIRST, mode="append", schema_mode="merge")
        assert rows(connection, count) == [(7, 21)]
        deltalake.DeltaTable(table).delete("a = 1")
        assert rows(connection, count) == [(5, 19)]
        deltalake.DeltaTable(table).delete()
        assert rows(connection, count) == [(0, None)]


@pytest.mark.parametrize("fuse", ["never", "always"])
def test_deletion_vectors_are_applied(fuse, tmp_path) -> None:
    one = pa.table({"n": range(1000), "s": [f"t{i % 7}" for i in range(1000)]})
    other = pa.table({"n": range(1000, 1100), "s": ["z"] * 100})
    gone = {0, 99, 100, 500, 999, *range(200, 300)}
    root = tmp_path / "vectors"
    delta_with_vectors(root, [(one, sorted(gone)), (other, []), (other.slice(0, 3), [0, 1, 2])])
    left = [i for i in range(1100) if i not in gone]
    with fuseline.connect("cpu", fuse=fuse) as connection:
        connection.read_delta(root, name="d")
        assert rows(connection, "select n from d order by n") == [(n,) for n in left]
        expected = sum(n for n in left if n < 1000 and n % 7 == 3)
        assert rows(connection, "select sum(n), count(*) from d where s = 't3'") == [
            (expected, sum(n < 1000 and n % 7 == 3 for n in left))
        ]


def test_what_a_reader_must_know_and_does_not_is_refused(tmp_path) -> None:
    root = tmp_path / "later"
    delta_with_vectors(root, [(pa.table({"n": [1]}), [])])
    log = root / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    with fuseline.connect("cpu") as connection:
        log.write_text(text.replace('"delta.enableDeletionVectors": "true"', '"delta.columnMapping.mode": "name"'))  # fmt: skip
        with pytest.raises((Unsupported, FileError), match=r"columnMapping|cannot be read"):
            connection.read_delta(root)


def test_what_is_no_table_is_said(tmp_path) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(FileError, match="no Delta table"):
            connection.read_delta(tmp_path / "nothing")
        (tmp_path / "broken/_delta_log").mkdir(parents=True)
        (tmp_path / f"broken/_delta_log/{0:020}.json").write_text(json.dumps({"add": 3}))
        with pytest.raises(FileError, match=r"cannot be read|no Delta table"):
            connection.read_delta(tmp_path / "broken")


def test_tables_are_judged_as_files(table, tmp_path) -> None:
    with (
        fuseline.connect("cpu", allowed_paths=[tmp_path / "other"]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from delta_scan('{table}')")
    with fuseline.connect("cpu", allowed_paths=[table]) as connection:
        assert rows(connection, f"select count(*) from delta_scan('{table}')") == [(4,)]
    outside = tmp_path / "outside"
    delta_with_vectors(outside, [(pa.table({"n": [1]}), [])])
    log = outside / "_delta_log" / f"{0:020}.json"
    (outside / "part-0.parquet").rename(tmp_path / "elsewhere.parquet")
    log.write_text(
        log.read_text().replace("part-0.parquet", f"file://{tmp_path}/elsewhere.parquet")
    )
    with fuseline.connect("cpu") as connection:
        assert rows(connection, f"from delta_scan('{outside}')") == [(1,)]
    with (
        fuseline.connect("cpu", allowed_paths=[outside]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from delta_scan('{outside}')")


def vectors_named(root, storage: str, name: str) -> None:
    """Name the deletion vector of a table otherwise."""
    log = root / "_delta_log" / f"{0:020}.json"
    text = log.read_text().replace(f"file://{root}/deleted_0.bin", name)
    log.write_text(text.replace('"storageType": "p"', f'"storageType": "{storage}"'))


def refused(root) -> None:
    with (
        fuseline.connect("cpu", allowed_paths=[root]) as connection,
        pytest.raises(AccessDenied),
    ):
        connection.sql(f"from delta_scan('{root}')")


@pytest.fixture
def one_deleted(tmp_path):
    root = tmp_path / "table"
    delta_with_vectors(root, [(pa.table({"n": [1, 2]}), [1])])
    return root


ID = "a" * 20  # a deletion vector's own name, in base 85
OUTSIDE = [
    ("p", "file://{outside}"), ("p", "file://{root}/%2e%2e/d.bin"), ("p", "FILE://{outside}"), ("p", "file://{outside}#/../table/d.bin"),
    ("p", "file://{root}/..\\\\d.bin"), ("p", "file://{root}/.\\t./d.bin"), ("p", "http://host{outside}"), ("p", "{root}/d.bin"),
    ("u", "../" + ID), ("u", "%2e%2e/" + ID), ("u", "file:///tmp/" + ID), ("u", "/tmp/" + ID),
]  # fmt: skip


@pytest.mark.parametrize(("storage", "name"), OUTSIDE)
def test_deletion_vectors_outside_are_not_opened(storage, name, one_deleted, tmp_path) -> None:
    with fuseline.connect("cpu", allowed_paths=[one_deleted]) as connection:
        assert rows(connection, f"from delta_scan('{one_deleted}')") == [(1,)]
    vectors_named(one_deleted, storage, name.format(root=one_deleted, outside=tmp_path / "d.bin"))
    refused(one_deleted)


@pytest.mark.parametrize("folder", ["", "ab"])
def test_links_to_deletion_vectors_are_followed_before_they_are_opened(
    folder, one_deleted, tmp_path
) -> None:
    vectors_named(one_deleted, "u", folder + ID)
    place = one_deleted / folder
    place.mkdir(exist_ok=True)
    moved = (one_deleted / "deleted_0.bin").rename(tmp_path / "d.bin")
    (place / "deletion_vector_625c99d1-8fd9-43ff-a34a-c8eb0fbd1f8e.bin").symlink_to(moved)
    refused(one_deleted)


@pytest.mark.parametrize("change", [
    lambda text: text.replace("deletionVector\"", "deletion\\u0056ector\""),
    lambda text: text.replace('"deletionVector": ', '\n"deletionVector":\n'),
    lambda text: text.replace('{"path"', '\n{"path"'),
    lambda text: text.replace('etc/passwd"', 'etc/passwd", "pathOrInlineDv": "file://{root}/d.bin"'),
    lambda text: text.replace('"pathOrInlineDv"', '"pathOrInlineDv": "file://{root}/d.bin", "pathOrInlineDv"'),
])  # fmt: skip
def test_a_log_of_another_layout_hides_no_path(change, one_deleted) -> None:
    vectors_named(one_deleted, "p", "file:///etc/passwd")
    log = one_deleted / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    log.write_text(change(text).replace("{root}", str(one_deleted)))
    assert log.read_text() != text
    refused(one_deleted)


def test_links_and_checkpoints_of_logs_name_nothing_outside(one_deleted, tmp_path) -> None:
    log = one_deleted / "_delta_log" / f"{0:020}.json"
    log.rename(tmp_path / "log.json")
    log.symlink_to(tmp_path / "log.json")
    refused(one_deleted)
    log.unlink()
    (tmp_path / "log.json").rename(log)
    deltalake.DeltaTable(str(one_deleted)).create_checkpoint()
    log.unlink()
    (kept,) = (one_deleted / "_delta_log").glob("*.parquet")
    checkpoint = pa.parquet.read_table(kept)
    changed = checkpoint.to_pylist()
    for action in changed:
        if action["add"]:
            action["add"]["deletionVector"]["pathOrInlineDv"] = f"file://{tmp_path}/d.bin"
    pa.parquet.write_table(pa.Table.from_pylist(changed, checkpoint.schema), kept)
    refused(one_deleted)


def with_sidecar(root, named: str, form: str) -> None:
    """Give a table a checkpoint of the second version, whose files are listed in a sidecar."""
    deltalake.DeltaTable(str(root)).create_checkpoint()
    log = root / "_delta_log"
    (whole,) = log.glob("*.checkpoint.parquet")
    actions = pa.parquet.read_table(whole)
    is_file = pa.compute.is_valid(actions["add"])
    (log / "_sidecars").mkdir()
    pa.parquet.write_table(
        actions.filter(is_file).select(["add"]), log / "_sidecars" / "one.parquet"
    )
    size = (log / "_sidecars" / "one.parquet").stat().st_size
    first = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    for protocol in (a["protocol"] for a in first if "protocol" in a):
        for kind in ("readerFeatures", "writerFeatures"):
            protocol[kind].append("v2Checkpoint")
    sidecar = {"path": named, "sizeInBytes": size, "modificationTime": 0}
    kept = [a for a in first if "add" not in a] + [{"checkpointMetadata": {"version": 0}}, {"sidecar": sidecar}]  # fmt: skip
    whole.unlink()
    (log / f"{0:020}.json").unlink()
    (log / "_last_checkpoint").unlink()
    place = log / f"{0:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    if form == "json":
        place.write_text("".join(json.dumps(a) + "\n" for a in kept))
    else:
        pa.parquet.write_table(pa.Table.from_pylist([{"sidecar": sidecar}]), place)


SIDECARS = (
    "../../../one.parquet",
    "%2e%2e/one.parquet",
    "file:///tmp/one.parquet",
    "/tmp/one.parquet",
    "..\\\\one.parquet",
)


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("name", SIDECARS)
def test_sidecars_outside_are_not_opened(name, form, one_deleted) -> None:
    with_sidecar(one_deleted, name, form)
    refused(one_deleted)


def test_sidecars_are_read_and_links_in_their_place_are_not(one_deleted, tmp_path) -> None:
    with_sidecar(one_deleted, "one.parquet", "json")
    with fuseline.connect("cpu", allowed_paths=[one_deleted]) as connection:
        assert rows(connection, f"from delta_scan('{one_deleted}')") == [(1,)]
    sidecar = one_deleted / "_delta_log" / "_sidecars" / "one.parquet"
    sidecar.rename(tmp_path / "one.parquet")
    sidecar.symlink_to(tmp_path / "one.parquet")
    refused(one_deleted)


def test_a_damaged_deletion_vector_is_a_file_error(tmp_path) -> None:
    delta_with_vectors(tmp_path / "table", [(pa.table({"n": [1, 2]}), [1])])
    path = tmp_path / "table" / "deleted_0.bin"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    with fuseline.connect("cpu") as connection, pytest.raises(FileError, match="CRC32"):
        connection.sql(f"from delta_scan('{tmp_path}/table')")
