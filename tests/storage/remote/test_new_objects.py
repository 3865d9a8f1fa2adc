"""COPY TO a store: objects appear whole, folders as Hive writes them, and what fails leaves the bucket as it was."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError, FuselineError, Unsupported
from fuseline.storage.remote import object_stores

SALES = "select i as n, 'c' || (i % 3)::varchar as city from range(1000) t(i)"


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "arrow", "csv.gz"])
def test_what_is_written_is_read(ending, here, server) -> None:
    path = f"s3://bkt/out/x.{ending}"
    assert here.sql(f"copy ({SALES}) to '{path}'").fetchall() == [(1000,)]
    assert list(server.objects) == [f"bkt/out/x.{ending}"]
    found = here.sql(f"select count(*), sum(n), max(city) from '{path}'").fetchall()
    assert found == [(1000, 499500, "c2")]


def test_a_large_object_is_stored_in_parts(here, server, monkeypatch) -> None:
    monkeypatch.setattr(object_stores, "PART_BYTES", 5 << 20)
    here.sql("copy (select (i * 7919) % 1600003 / 7 as h from range(1600000) t(i)) to 's3://bkt/h.parquet' (compression uncompressed)")  # fmt: skip
    assert sum("partNumber" in asked for asked in server.asked) > 2
    assert server.uploads == {}
    assert here.sql("select count(distinct h) from 's3://bkt/h.parquet'").fetchall() == [(1600000,)]


def test_partitions_are_folders(here, server) -> None:
    copy = f"copy ({SALES}) to 's3://bkt/cities' (format parquet, partition_by (city)"
    here.sql(f"{copy})")
    assert sorted(server.objects) == [f"bkt/cities/city=c{i}/data_0.parquet" for i in range(3)]
    found = here.sql("select city, count(*) from 's3://bkt/cities' group by all order by all")
    assert found.fetchall() == [("c0", 334), ("c1", 333), ("c2", 333)]
    with pytest.raises(FileError, match="is not empty"):
        here.sql(f"{copy})")
    server.objects["bkt/cities/old.parquet"] = b""
    here.sql(f"{copy}, append)")
    assert len(server.objects) == 7
    here.sql(f"{copy}, overwrite)")
    assert sorted(server.objects) == [f"bkt/cities/city=c{i}/data_0.parquet" for i in range(3)]


def test_a_query_that_fails_stores_nothing(here, server) -> None:
    server.objects["bkt/x.parquet"] = b"as it was"
    failing = "select case when i = 900000 then 'x'::integer else i end from range(1000000) t(i)"
    with pytest.raises(FuselineError):
        here.sql(f"copy ({failing}) to 's3://bkt/x.parquet'")
    assert server.objects == {"bkt/x.parquet": b"as it was"}
    assert not any(asked.startswith(("PUT", "POST")) for asked in server.asked)


def test_a_store_that_fails_leaves_no_half_folder(opened, server) -> None:
    server.fault = lambda request: "c2" in request.path and not request.answer(403)
    with pytest.raises(FileError, match="may not be written"):
        opened().sql(f"copy ({SALES}) to 's3://bkt/cities' (format csv, partition_by (city))")
    assert server.objects == {}


def test_places_are_judged_as_those_that_are_read(opened, server) -> None:
    here = opened(allowed_paths=["s3://bkt/out"])
    for path in ("s3://bkt/x.parquet", "s3://bkt/outer/x.parquet", "s3://other/out/x.parquet"):
        with pytest.raises(AccessDenied):
            here.sql(f"copy (select 1) to '{path}'")
    with pytest.raises(Unsupported, match="takes no files"):
        fuseline.connect("cpu").sql("copy (select 1) to 'https://host/x.parquet'")
    with pytest.raises(FileError, match="is a folder"):
        here.sql("copy (select 1) to 's3://bkt/out/'")
    assert server.asked == []
    frame = here.sql("select 1 as a")
    frame.write_csv("s3://bkt/out/a.csv")
    assert server.objects == {"bkt/out/a.csv": b"a\n1\n"}


@pytest.mark.nightly
def test_a_server_of_others_takes_and_gives_the_same(monkeypatch) -> None:
    """The library moto answers as S3 does, with its own reading of the protocol."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    served = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    served.start()
    try:
        host, port = served.get_host_and_port()
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys)
        client.create_bucket(Bucket="bucket")
        with fuseline.connect("cpu") as connection:
            connection.execute(
                f"create secret (type s3, endpoint '{host}:{port}', use_ssl false, url_style path, key_id 'a', secret 'b')"
            )
            rows = "select i as n, (i * 7919) % 1600003 as h, i % 4 as p from range(1600000) t(i)"
            connection.sql(f"copy ({rows}) to 's3://bucket/all.parquet' (compression uncompressed)")
            connection.sql(f"copy ({rows}) to 's3://bucket/by' (format parquet, partition_by (p))")
            for path in ("s3://bucket/all.parquet", "s3://bucket/by/*/*.parquet"):
                told = "select count(*), sum(h), sum(p) from"
                assert (
                    connection.sql(f"{told} '{path}'").fetchall()
                    == connection.sql(f"{told} ({rows})").fetchall()
                )
            connection.sql(
                "copy (select 1 as p, 2 as n) to 's3://bucket/by' (format parquet, partition_by (p), overwrite)"
            )
            assert connection.sql("select n from 's3://bucket/by'").fetchall() == [(2,)]
    finally:
        served.stop()
