"""Of remote Parquet files only the bytes that a query needs are asked for, and what goes wrong on the way is an error that says so."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import FileError, Interrupted
from fuseline.operators.cpu.scan import remote_parts
from fuseline.storage.remote.remote_files import ByteRanges, RemoteFile, coalesced
from tests.compare import assert_same_as_duckdb
from tests.storage.remote.object_server import ObjectServer
from tests.storage.remote.test_remote_access import parquet, rows

ROWS, GROUP = 160_000, 20_000


@pytest.fixture(scope="module")
def wide() -> pa.Table:
    numbers = np.random.default_rng(7)
    columns = {f"c{i}": numbers.integers(0, 1 << 40, ROWS) for i in range(8)}
    texts = pa.array([f"text {i % 1000}" for i in range(ROWS)])
    return pa.table({"k": np.arange(ROWS), **columns, "t": texts})


@pytest.fixture(scope="module")
def stored(wide) -> bytes:
    return parquet(wide, row_group_size=GROUP)


@pytest.fixture
def large(server, stored) -> ObjectServer:
    server.objects["bkt/wide.parquet"] = stored
    return server


def needed(stored: bytes, names: list[str], groups: range) -> int:
    """Bytes of the footer, and of the column chunks of some columns in some row groups."""
    footer = pq.read_metadata(pa.BufferReader(stored))
    chunks = [footer.row_group(g).column(i) for g in groups for i in range(footer.num_columns)]
    return footer.serialized_size + 8 + sum(c.total_compressed_size for c in chunks if c.path_in_schema in names)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "names", "groups"),
    [
        ("select sum(c3) from 's3://bkt/wide.parquet'", ["c3"], range(8)),
        ("select sum(c1), sum(c2), max(t) from 's3://bkt/wide.parquet'", ["c1", "c2", "t"], range(8)),
        ("select sum(c0), sum(c7) from 's3://bkt/wide.parquet' where k between 21000 and 59000", ["k", "c0", "c7"], range(1, 3)),
        ("select * from 's3://bkt/wide.parquet' where k < 50", [f"c{i}" for i in range(8)] + ["k", "t"], range(1)),
        ("select c5 from 's3://bkt/wide.parquet' limit 3", ["c5"], range(1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fuse", ["never", "always"])
def test_a_tenth_more_bytes_are_asked_for_at_most(query, names, groups, fuse, large, opened, stored, wide):  # fmt: skip
    here = opened(fuse=fuse)
    found = rows(here, query)
    assert large.sent <= 1.1 * needed(stored, names, groups)
    here.register("wide", wide)
    assert found == rows(here, query.replace("'s3://bkt/wide.parquet'", "wide"))
    large.restart()
    assert rows(here, query) == found
    assert large.sent == 0 or "limit" in query


def test_answers_are_those_of_duckdb(large, opened, wide, tmp_path) -> None:
    local = tmp_path / "wide.parquet"
    pq.write_table(wide, local)
    here = opened()
    here.read_parquet("s3://bkt/wide.parquet", name="remote")
    assert_same_as_duckdb(
        "select t, count(*), sum(c1), min(c2) from remote where c3 % 3 = 1 group by t order by t limit 20",
        {"remote": wide},
        connection=here,
    )


def test_neighbours_come_with_one_request(large, here) -> None:
    rows(here, "select sum(c1), sum(c2), sum(c3) from 's3://bkt/wide.parquet' where k < 10")
    gets = [asked for asked in large.asked if asked.startswith("GET")]
    assert len(gets) == 3  # the footer, k, and three columns beside each other


def test_bytes_under_way_are_bounded(large, here, monkeypatch) -> None:
    monkeypatch.setattr(remote_parts, "AHEAD_BYTES", 1 << 20)
    found = rows(here, "select sum(c1), sum(c6) from 's3://bkt/wide.parquet'")
    assert found == rows(here, "select sum(c1), sum(c6) from 's3://bkt/wide.parquet' where k >= 0")


def test_footers_are_read_together(server, here) -> None:
    for i in range(24):
        server.objects[f"bkt/many/{i:02}.parquet"] = parquet({"v": [i]})
    begun, five, met = [], threading.Event(), []

    def meets_others(request) -> bool:
        if ".parquet" in request.path:
            begun.append(request)
            if len(begun) == 5:
                five.set()
            met.append(five.wait(60))
        return False

    server.fault = meets_others
    assert rows(here, "select sum(v) from 's3://bkt/many/*.parquet'") == [(276,)]
    assert all(met)


def test_a_file_that_was_replaced_is_read_anew(server, here) -> None:
    for value in (1, 22, 333):
        server.objects["bkt/v.parquet"] = parquet({"v": [value]})
        assert rows(here, "select sum(v) from 's3://bkt/v.parquet'") == [(value,)]


def replaced_behind_each_read(server: ObjectServer, times: int):
    """Put another file in the place as soon as some bytes of the one there were read."""
    new = [parquet({"v": list(range(n, n + 30_000))}) for n in range(times, 0, -1)]

    def fault(request) -> bool:
        if request.command == "GET" and new:
            server.fault = None
            request._get()
            server.objects["bkt/v.parquet"] = new.pop()
            server.fault = fault
            return True
        return False

    return fault


def test_a_file_replaced_between_footer_and_data_is_no_mixture(server, opened) -> None:
    server.objects["bkt/v.parquet"] = parquet({"v": list(range(30_000))})
    server.fault = replaced_behind_each_read(server, 3)
    found = rows(opened(), "select min(v), count(*) from 's3://bkt/v.parquet' where v % 2 >= 0")
    assert found == [(3, 30_000)]


def test_a_file_replaced_again_and_again_is_an_error(server, opened) -> None:
    server.objects["bkt/v.parquet"] = parquet({"v": list(range(30_000))})
    server.fault = replaced_behind_each_read(server, 20)
    with pytest.raises(FileError, match="has changed while it was read"):
        rows(opened(), "select sum(v) from 's3://bkt/v.parquet' where v % 2 >= 0")


def test_without_tags_a_table_serves_one_query(server, here) -> None:
    server.tags = False
    for value in (1, 2):
        server.objects["bkt/v.parquet"] = parquet({"v": [value]})
        assert rows(here, f"select sum(v) from '{server.address}/bkt/v.parquet'") == [(value,)]


def cut_off(request) -> bool:
    if request.command != "GET":
        return False
    begin, end = request.headers["Range"].removeprefix("bytes=").split("-")
    request.send_response(206)
    request.send_header("Content-Range", f"bytes {begin}-{end}/{10**9}")
    request.send_header("Content-Length", str(int(end) + 1 - int(begin)))
    request.end_headers()
    request.wfile.write(b"x" * 10)
    request.close_connection = True
    return True


def slow(request) -> bool:
    time.sleep(0.5)
    return False


def broken(request) -> bool:
    request.answer(503, b"<Error><Code>SlowDown</Code></Error>")
    return True


@pytest.mark.parametrize("restricted", [False, True], ids=["open", "restricted"])
@pytest.mark.parametrize(
    ("fault", "message", "tries"),
    [
        (cut_off, "ended too early", 0),
        (slow, "no answer within 0.2 s, tried 2 times", 2),
        (broken, "answers 503", 2),
    ],
)
def test_what_fails_on_the_way_is_said(fault, message, tries, restricted, large, opened) -> None:
    place = f"{large.address}/bkt/wide.parquet" if restricted else "s3://bkt/wide.parquet"
    allowed = {"allowed_paths": [f"{large.address}/bkt"]} if restricted else {}
    here = opened(http_timeout="0.2s" if fault is slow else "5s", **allowed)
    large.fault = fault
    with pytest.raises(FileError, match=message):
        here.sql(f"from '{place}'")
    assert not tries or len(large.asked) == tries


def test_a_failure_on_the_way_is_tried_again(large, opened) -> None:
    failures = [True, False, True, False, False]

    def fault(request) -> bool:
        return broken(request) if failures and failures.pop(0) else False

    large.fault = fault
    here = opened(http_retries=3)
    assert rows(here, "select count(c1) from 's3://bkt/wide.parquet'") == [(ROWS,)]


def test_a_query_that_waits_for_bytes_can_be_stopped(large, opened) -> None:
    here = opened(http_timeout="60s")
    rows(here, "select count(*) from 's3://bkt/wide.parquet'")
    over = threading.Event()

    def fault(request) -> bool:
        if request.command == "GET":
            here.interrupt()
            over.wait(60)
        return False

    large.fault = fault
    with pytest.raises(Interrupted):
        rows(here, "select sum(c1) from 's3://bkt/wide.parquet'")
    large.fault = None
    over.set()
    assert rows(here, "select count(c1) from 's3://bkt/wide.parquet'") == [(ROWS,)]


@pytest.mark.parametrize(
    ("ranges", "runs"),
    [
        ([], []),
        ([(0, 10), (10, 20)], [(0, 20)]),
        ([(10, 20), (0, 10), (5, 5)], [(0, 20)]),
        ([(0, 1000), (1010, 2000)], [(0, 2000)]),
        ([(0, 100), (150, 200)], [(0, 100), (150, 200)]),
        ([(0, 1 << 30), (1 << 31, (1 << 31) + 5)], [(0, 1 << 30), (1 << 31, (1 << 31) + 5)]),
    ],
)
def test_ranges_are_joined_where_little_lies_between(ranges, runs) -> None:
    assert coalesced(ranges) == runs


def test_a_file_read_in_order_comes_in_growing_blocks(large, here, stored) -> None:
    (found,) = here.catalog.access.rules.remote.find(["s3://bkt/wide.parquet"])
    large.restart()
    file = ByteRanges(found[0])
    parts = []
    while part := bytes(file.read(10_000)):
        parts.append(part)
    assert b"".join(parts) == stored
    assert large.sent == len(stored)
    assert len(large.asked) < 20
    assert isinstance(found[0], RemoteFile)
