"""The column cache holds each column in the form that was asked for, and makes one form of the other without reading again."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.operators import streaming
from fuseline.operators.cpu.scan import read_parts
from fuseline.operators.run_pipeline import COMPILING
from fuseline.planner.pipelines import fuse
from fuseline.storage.columns.encodings import Narrow
from fuseline.storage.tables.sizes import ColumnSizes
from tests.compare import assert_same_as_duckdb

ROWS, GROUP_ROWS = 40_000, 1_000
LONG = "many"  # too many different strings to be encoded


def holed(values, every=7):
    return [None if n % every == 0 else v for n, v in enumerate(values)]


DATA = pa.table(
    {
        "n": pa.array(range(ROWS), pa.int64()),
        "tiny": pa.array(holed(n % 256 - 128 for n in range(ROWS)), pa.int8()),
        "steps": pa.array(holed(n * 40_000 - 7 for n in range(ROWS)), pa.int64()),
        "far": pa.array(holed((-1) ** n * (2**62 + n) for n in range(ROWS)), pa.int64()),
        "natural": pa.array(holed(n + 2**40 for n in range(ROWS)), pa.uint64()),
        "money": pa.array(holed(Decimal(n) / 4 for n in range(ROWS)), pa.decimal128(12, 2)),
        "wide": pa.array(holed(Decimal(-n) / 8 for n in range(ROWS)), pa.decimal128(30, 3)),
        "day": holed(date(1960, 1, 1) + timedelta(n) for n in range(ROWS)),
        "at": holed(datetime(1960, 1, 1) + timedelta(hours=n) for n in range(ROWS)),
        "yes": holed(n % 3 == 0 for n in range(ROWS)),
        "f": pa.array(holed(n / 3 for n in range(ROWS)), pa.float32()),
        "d": pa.array(range(ROWS), pa.float64()),
        "nothing": pa.nulls(ROWS, pa.int32()),
        "no_text": pa.nulls(ROWS, pa.string()),
        "few": holed(f"value {n % 5}" for n in range(ROWS)),
        "some": holed(f"value {n % 200}" for n in range(ROWS)),
        "more": holed(f"value {n % 1500}" for n in range(ROWS)),
        LONG: [f"text {n}" for n in range(ROWS)],
    }
)


@pytest.fixture(params=["file", "memory"])
def source(request):
    return request.param


@pytest.fixture
def connection(backend, tmp_path, source):
    with fuseline.connect(device=backend, fuse="always") as opened:
        if source == "file":
            path = tmp_path / "t.parquet"
            pq.write_table(DATA, path, row_group_size=GROUP_ROWS)
            opened.read_parquet(path, "t")
        else:
            opened.register("t", DATA)
        yield opened


@pytest.fixture
def no_reading(monkeypatch, backend, source):
    """Make a scan fail that would read a file, or move a table in memory to the device, once it is called."""

    def nothing_to_read(table, sources, *rest):
        assert not sources
        return {}

    def start():
        scan = import_module(f"fuseline.operators.{backend}.scan.scan")
        moved = scan.to_device if backend == "gpu" else None

        def nothing_to_move(array, data_type):
            assert len(array) != ROWS
            return moved(array, data_type)

        if source == "file":
            name = "_read" if backend == "gpu" else "read_in_parts"
            monkeypatch.setattr(scan, name, nothing_to_read)
        elif backend == "gpu":
            monkeypatch.setattr(scan, "to_device", nothing_to_move)

    return start


def cached(connection):
    """How often each column is in the cache, and which are there as they are."""
    query = "select column_name, encoding from fuseline_columns()"
    rows = connection.execute(query).fetchall()
    plain = {c for c, e in rows if e.startswith(("arrow", "cudf"))}
    return Counter(c for c, _ in rows), plain


def test_a_cached_table_lies_there_once(connection):
    connection.table("t").cache()
    counts, plain = cached(connection)
    assert counts == dict.fromkeys(DATA.column_names, 1)
    assert plain == {LONG}


def test_a_column_without_an_encoding_keeps_its_hits(connection):
    for hits in (0, 1):
        connection.table("t").cache()
        query = f"select hits from fuseline_columns() where column_name = '{LONG}'"
        assert connection.execute(query).fetchall() == [(hits,)]


def test_a_column_without_an_encoding_is_tried_once(tmp_path, monkeypatch):
    """New texts, whose kernels are generated anew, do not go through all of its rows again."""
    encoded = import_module("fuseline.operators.cpu.scan.encoded")
    tried, encode = [], encoded.encode
    monkeypatch.setattr(encoded, "encode", lambda *given: tried.append(1) or encode(*given))
    with fuseline.connect(device="cpu", fuse="always") as opened:
        opened.register("t", DATA)
        for text in (
            "n > 5",
            "n > 5 and tiny > 3",
            f"{LONG} like '%9'",
            f"{LONG} like '%7' and n < 9",
        ):
            found = opened.sql(f"select {LONG}, n from t where {text}").to_arrow()
            assert found.num_rows
    assert len(tried) == len({"n", LONG, "tiny"})


def test_operators_get_columns_that_only_kernels_have_read(connection, no_reading):
    connection.table("t").cache()
    connection.set_option("fuse", "never")
    no_reading()
    assert connection.table("t").to_arrow().equals(DATA)
    counts, plain = cached(connection)
    assert plain == set(DATA.column_names)
    assert all(counts[c] == 2 for c in DATA.column_names if c != LONG)


SELECTIONS = {
    "n < 3500": range(3500),
    "n >= 39000": range(39_000, ROWS),
    "n between 4000 and 5999": range(4000, 6000),
    "n < 1000 or n >= 39000": [*range(1000), *range(39_000, ROWS)],
}


@pytest.mark.parametrize("rows", SELECTIONS)
def test_selected_row_groups_come_out_of_all(connection, no_reading, rows):
    connection.table("t").cache()
    connection.set_option("fuse", "never")
    no_reading()
    found = connection.sql(f"select * from t where {rows} order by n").to_arrow()
    assert found.equals(DATA.take(list(SELECTIONS[rows])))


def test_what_operators_have_read_stays_and_is_encoded_from_there(connection, no_reading):
    connection.set_option("fuse", "never")
    connection.table("t").select("n", "few").to_arrow()
    connection.set_option("fuse", "always")
    no_reading()
    connection.table("t").select("n", "few").cache()
    assert cached(connection)[0] == {"n": 2, "few": 2}


@pytest.mark.gpu
def test_files_are_read_in_turns_of_some_columns(tmp_path, monkeypatch):
    turns = import_module("fuseline.operators.gpu.scan.load_columns")
    parts = []
    read = turns.read_columns
    monkeypatch.setattr(turns, "BYTES_A_TURN", 1)
    monkeypatch.setattr(
        turns, "read_columns", lambda scan, *rest: parts.append(scan) or read(scan, *rest)
    )
    pq.write_table(DATA, tmp_path / "t.parquet")
    with fuseline.connect(device="gpu") as connection:
        connection.read_parquet(tmp_path / "t.parquet", "t").cache()
        counts, plain = cached(connection)
        assert counts == dict.fromkeys(DATA.column_names, 1)
        assert plain == {LONG}
        connection.set_option("fuse", "never")
        assert connection.table("t").to_arrow().equals(DATA)
    assert len(parts) > 1
    assert parts[0].sources[0] == LONG
    assert Counter(s for part in parts for s in part.sources) == counts


@pytest.mark.gpu
def test_turns_are_read_one_after_the_other_where_memory_is_short(tmp_path, monkeypatch):
    """What takes most while it is read comes first, and columns of other tables make room for it."""
    turns = import_module("fuseline.operators.gpu.scan.load_columns")
    sizes = {c: 10 * i for i, c in enumerate(DATA.column_names)}
    events, read, encode = [], turns.read_columns, turns.encode_each
    monkeypatch.setattr(turns, "BYTES_A_TURN", 1)
    monkeypatch.setattr(
        ColumnSizes,
        "reading",
        lambda self, sources, part, copies=2: sum(sizes[s] for s in sources) << 24,
    )

    def reading(scan, *rest):
        events.append(scan.sources)
        return read(scan, *rest)

    monkeypatch.setattr(turns, "read_columns", reading)
    monkeypatch.setattr(turns.run_column_kernels, "ready", lambda *_: False)
    monkeypatch.setattr(
        turns, "encode_each", lambda *given: events.append("encoded") or encode(*given)
    )
    pq.write_table(DATA, tmp_path / "t.parquet")
    # By these sizes the largest turn has room, and no others beside it; what is really read has plenty of it
    limit = sum(sizes.values()) * 2 // 3 << 24
    with fuseline.connect(device="gpu", memory_limit=limit) as connection:
        connection.read_parquet(tmp_path / "t.parquet", "t").cache()
        assert connection.table("t").to_arrow().equals(DATA)
    assert events[1::2] == ["encoded"] * (len(events) // 2)
    taken = [sum(sizes[s] for s in sources) for sources in events[::2]]
    assert len(taken) > 2
    assert taken == sorted(taken, reverse=True)


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A table in row groups whose columns are read one at a time, and how to let reads of all its rows fail by their numbers."""
    turns = import_module("fuseline.operators.gpu.scan.load_columns")
    reads, read = [], turns.read_columns
    monkeypatch.setattr(turns, "BYTES_A_TURN", 1)
    monkeypatch.setattr(turns, "READERS", 1)
    pq.write_table(DATA, tmp_path / "t.parquet", row_group_size=GROUP_ROWS)

    def failing(numbers):
        def reading(scan, *rest):
            if scan.selection is None:
                reads.append(scan.sources)
                if len(reads) in numbers:
                    raise MemoryError("out_of_memory")
            return read(scan, *rest)

        monkeypatch.setattr(turns, "read_columns", reading)
        return tmp_path / "t.parquet", reads

    return failing


QUERY = "select sum(n), count(few) from t where n > 3"


@pytest.mark.gpu
def test_a_turn_without_memory_is_read_again_without_other_tables(short):
    with fuseline.connect(device="gpu", fuse="always") as connection:
        connection.register("other", pa.table({"x": [1, 2]}))
        connection.table("other").cache()
        path, reads = short({1})
        connection.read_parquet(path, "t")
        assert_same_as_duckdb(QUERY, {"t": DATA}, connection=connection)
        assert reads.count(reads[0]) == 2
        assert len(reads) == 3
        assert set(cached(connection)[0]) == {"n", "few"}


@pytest.mark.gpu
def test_columns_that_do_not_fit_are_tried_once(short):
    """Then come chunks of row groups, where a second try of the whole would read for nothing."""
    with fuseline.connect(device="gpu", fuse="always") as connection:
        path, reads = short(range(2, 100))
        connection.read_parquet(path, "t")
        assert_same_as_duckdb(QUERY, {"t": DATA}, connection=connection)
        assert len(reads) == 2


def first_run(connection, query, tables):
    """Run a query whose kernel is not there, and return its pipeline's receipt."""
    first = connection.sql(query)
    first.to_arrow()
    receipt = first.profile.pipelines[0].receipt
    assert receipt.reason == COMPILING
    assert_same_as_duckdb(query, tables, connection=connection)
    return receipt


def test_operators_of_a_first_run_get_what_was_read_to_be_encoded(tmp_path, monkeypatch):
    """Six million rows of a column took 30 ms to decode, right after they had been encoded."""
    decoded = []
    decode = Narrow.decode
    monkeypatch.setattr(
        Narrow, "decode", lambda self, *given: decoded.append(self) or decode(self, *given)
    )
    table = pa.table({"k": np.arange(10 * ROWS) % 300, "n": np.arange(10 * ROWS)})
    with fuseline.connect(device="cpu", fuse="auto", cache_dir=tmp_path) as connection:
        connection.register("t", table)
        query = "select k, sum(n) as total from t where n > 7 group by k order by k"
        first_run(connection, query, {"t": table})
    assert not decoded


FIRST_RUNS = (
    "select few, sum(money) as m, count(yes), max(day), min(f) from t where steps > 7 group by few",
    'select sum(tiny), count(*), min("at"), max("some"), sum("natural") from t where n % 3 = 1',
    "select steps + 1 from t where steps % 1000 = 993 order by 1",
    "select a.few, count(*), sum(b.money) from t a join t b on a.n = b.n group by a.few",
)


@pytest.mark.parametrize("query", FIRST_RUNS)
def test_a_first_run_has_no_column_of_a_file_whole_as_operators_read_it(
    tmp_path, monkeypatch, query
):
    """Six million decimals are 96 MB, and 6 as codes."""
    module = import_module("fuseline.operators.cpu.scan.encoded")
    lengths, encode, decode = [], module.encode, Narrow.decode
    monkeypatch.setattr(
        module, "encode", lambda array, *given: lengths.append(len(array)) or encode(array, *given)
    )
    monkeypatch.setattr(
        Narrow,
        "decode",
        lambda self, codes, *given: lengths.append(len(codes)) or decode(self, codes, *given),
    )
    monkeypatch.setattr(read_parts, "ROWS_A_TASK", 4 * GROUP_ROWS)
    monkeypatch.setattr(read_parts, "SMALL_PART_ROWS", 0)
    monkeypatch.setattr(streaming, "MEANWHILE_BYTES", 1 << 16)
    monkeypatch.setattr(fuse, "SMALL_INPUT", 0)
    path = tmp_path / "t.parquet"
    pq.write_table(DATA, path, row_group_size=GROUP_ROWS)
    settings = {"device": "cpu", "fuse": "auto", "cache_dir": tmp_path, "threads": 2}
    with fuseline.connect(**settings) as connection:
        connection.read_parquet(path, "t")
        receipt = first_run(connection, query, {"t": path})
        if " join " in query:
            assert receipt.chunks == 0
            return
        assert receipt.chunks > 2
        assert receipt.summary.startswith("streamed in")
        assert max(lengths) < ROWS / 2
        assert not cached(connection)[1]
        # Where earlier runs have left them as operators read them, nothing is to be gained
        connection.set_option("fuse", "never")
        connection.table("t").to_arrow()
        connection.set_option("fuse", "auto")
        other = query.replace(" where ", " where tiny is not null and ")
        assert first_run(connection, other, {"t": path}).chunks == 0


def test_parts_have_the_form_of_all_rows(tmp_path, monkeypatch):
    """Of integers, dates, decimals, floats and texts, with NULLs and without, parts of nothing but NULLs among them."""
    monkeypatch.setattr(read_parts, "ROWS_A_TASK", 4 * GROUP_ROWS)
    path = tmp_path / "t.parquet"
    late = pa.array([None] * (ROWS - 3) + [5, None, 900])
    table = DATA.append_column("late", late)
    pq.write_table(table, path, row_group_size=GROUP_ROWS)
    query = "select column_name, encoding, rows, bytes from fuseline_columns() order by 1"
    found = []
    for at_once in (False, True):
        if at_once:
            monkeypatch.setattr(read_parts, "ROWS_A_TASK", ROWS)
            monkeypatch.setattr(read_parts, "PARTS_A_THREAD", 0)
        with fuseline.connect(device="cpu", fuse="always") as connection:
            connection.read_parquet(path, "t").cache()
            found.append(connection.sql(query).fetchall())
            connection.set_option("fuse", "never")
            assert connection.table("t").to_arrow().equals(table)
    assert found[0] == found[1]


def test_texts_of_too_many_values_in_small_dictionaries_are_text(tmp_path, monkeypatch):
    """Each part has few values, and all together more than columns have as a dictionary."""
    column_parts = import_module("fuseline.storage.column_store.column_parts")
    monkeypatch.setattr(read_parts, "ROWS_A_TASK", 4 * GROUP_ROWS)
    monkeypatch.setattr(read_parts, "SMALL_PART_ROWS", 0)
    monkeypatch.setattr(column_parts, "largest_dictionary", lambda rows: 20)
    texts = holed(f"value {n % 7 + n // 10_000 * 10}" for n in range(ROWS))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": texts, "n": range(ROWS)}), path, row_group_size=GROUP_ROWS)
    lengths, whole = [], column_parts.ColumnParts.whole

    def noted(self, threads):
        made = whole(self, threads)
        lengths.append(made.refused)
        return made

    monkeypatch.setattr(column_parts.ColumnParts, "whole", noted)
    query = "select s, count(*), sum(n) from t group by s"
    assert_same_as_duckdb(query, {"t": path}, fuse=("always", "never"))
    assert True in lengths
