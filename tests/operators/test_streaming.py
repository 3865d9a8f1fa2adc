"""Tables that the column cache cannot hold come in chunks, and the answers stay the same."""

import importlib
import os
import shutil
from datetime import date, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError, Interrupted, MemoryLimitError
from fuseline.operators.chunked_run import ChunkedRun
from fuseline.operators.context import Context
from fuseline.plan.expr import AggregateCall, ColumnRef, Literal, new_column
from fuseline.plan.partial import PartialAggregate, in_parts
from fuseline.plan.physical import HashAggregate, ParquetScan, ValuesScan
from fuseline.plan.types import BIGINT, VARCHAR
from fuseline.storage.tables.parquet import ParquetTable
from tests.compare import assert_same_as_duckdb, connected

ROWS, GROUP_ROWS = 40_000, 4_000
SMALL = "50kB"

AGGREGATES = (
    *("count(*)", "count(i)", "sum(i)", "avg(i)", "min(i)", "max(i)", "any_value(n)"),
    *("sum(d)", "avg(d)", "min(d)", "max(w)", "sum(w)", "avg(w)", "sum(f)", "avg(f)", "min(f)"),
    *("max(s)", "min(k)", "max(t)", "min(t)", "bool_and(b)", "bool_or(b)", "count_if(b)"),
    *("bit_and(i)", "bit_or(i)", "bit_xor(i)", "first(n)", "last(n)", "product(p)"),
    *("sum(i) filter (where b)", "count(*) filter (where b)", "first(n) filter (where b)"),
    *("last(n) filter (where i > 100)", "max(i) filter (where f > 2)", "avg(d) filter (where b)"),
    *("sum(i * 2 - n)", "min(distinct i)", "bool_or(distinct b)"),
)
GROUPED = f"select {{keys}}, {', '.join(f'{a} as a{i}' for i, a in enumerate(AGGREGATES))} from t {{where}} group by {{keys}}"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Ten row groups: one without the values of the others, one all NULL, texts that differ from one to the next."""
    random = np.random.default_rng(20)
    group = np.arange(ROWS) // GROUP_ROWS
    nulls = (random.random(ROWS) < 0.2) | (group == 4)
    i = random.integers(-(10**6), 10**6, ROWS) * np.where(group == 7, 10**6, 1)
    table = pa.table(
        {
            "n": pa.array(range(ROWS), pa.int64()),
            "k": [f"key {g}" if r % 3 else f"common {r % 2}" for r, g in enumerate(group)],
            "g": pa.array(np.where(nulls, 0, i % 5), pa.int32(), mask=nulls),
            "i": pa.array(i, mask=nulls),
            "d": pa.array(i).cast(pa.decimal128(20, 0)).cast(pa.decimal128(24, 2)),
            "w": pa.array(i).cast(pa.decimal128(38, 0)).cast(pa.decimal128(38, 12)),
            "f": pa.array(np.where((i % 9 == 0) & (group == 6), np.nan, i / 7), mask=nulls),
            "p": pa.array(np.where(i % 2, 1.0, -1.0)),
            "s": [f"text {v}" for v in i],
            "t": [date(2000, 1, 1) + timedelta(days=int(v) % 1000) for v in i],
            "b": pa.array(i % 3 == 0, mask=nulls),
        }
    )
    file = tmp_path_factory.mktemp("stream") / "t.parquet"
    pq.write_table(table, file, row_group_size=GROUP_ROWS)
    return file


@pytest.fixture(params=["never", "always"], ids=["unfused", "fused"])
def connect(request, backend):
    def connect(limit=SMALL, **settings):
        return fuseline.connect(backend, fuse=request.param, column_cache_limit=limit, **settings)

    return connect


def run(connection, path, query):
    connection.read_parquet(path, "t")
    frame = connection.sql(query)
    return frame.to_arrow(), [p.receipt.chunks for p in frame.profile.pipelines]


def check(connect, path, query):
    """Streamed, the answer is DuckDB's, and apart from floats exactly that of one chunk."""
    with connect() as connection:
        streamed, chunks = run(connection, path, query)
        assert_same_as_duckdb(query, {"t": path}, connection=connection)
        assert connection.cache.used(connection.device) <= 50_000
    assert max(chunks) > 1
    with connect("1GB") as connection:
        whole, chunks = run(connection, path, query)
        assert not any(chunks)
    order = [(name, "ascending") for name in whole.column_names]
    streamed, whole = streamed.sort_by(order), whole.sort_by(order)
    exact = [f.name for f in whole.schema if not pa.types.is_floating(f.type)]
    assert streamed.select(exact).equals(whole.select(exact))
    for place, call in enumerate(AGGREGATES):
        name = f"a{place}"
        if call.startswith("avg") and "(f)" not in call and name in whole.column_names:
            # Of exact sums, divided once; where few rows of a GPU's are, by the host, which has more bits
            near = 4e-16 if connection.device == "gpu" else 0
            pairs = zip(streamed[name].to_pylist(), whole[name].to_pylist(), strict=True)
            assert all(a == b or a == pytest.approx(b, rel=near, abs=0) for a, b in pairs), call


@pytest.mark.parametrize("keys", ["k", "g", "k, g", "n", "b"])
def test_every_aggregate_by_group(connect, path, keys):
    check(connect, path, GROUPED.format(keys=keys, where=""))


@pytest.mark.parametrize("where", ["where n > 30000", "where n % 4000 = 17", "where i > 0"])
def test_chunks_in_which_few_rows_pass(connect, path, where):
    check(connect, path, GROUPED.format(keys="k", where=where))


@pytest.mark.parametrize("where", ["", "where n in (5000, 25001)", "where i * 2 = 7"])
def test_without_keys(connect, path, where):
    check(connect, path, f"select {', '.join(AGGREGATES)} from t {where}")


def test_distinct(connect, path):
    check(connect, path, "select distinct k, b from t")


def test_texts_are_put_together_in_order(backend, path):
    query = "select k, string_agg(s, ';') filter (where n % 500 = 0) from t group by k"
    with fuseline.connect(backend, column_cache_limit=SMALL) as connection:
        _, chunks = run(connection, path, query)
        assert_same_as_duckdb(query, {"t": path}, connection=connection)
    assert max(chunks) > 1


def test_selected_rows(connect, path):
    check(connect, path, "select n, s, i from t where i between 0 and 3000 order by n")


def test_below_a_join(connect, path):
    query = """select a.k, a.total, count(*) from (select k, sum(i) total from t where b group by k) a
        join (select k, n from t where n % 100 = 3) c on a.k = c.k group by all"""
    check(connect, path, query)


def test_pruned_row_groups_stay_out(connect, path):
    with connect() as connection:
        _, chunks = run(
            connection, path, "select k, sum(d), max(s) from t where n < 7000 group by k"
        )
    assert max(chunks) == 2


@pytest.mark.parametrize("call", ["median(f)", "var_pop(f)", "arg_min(i, n)"])
def test_an_aggregate_that_needs_all_rows_is_not_streamed(backend, path, call):
    with fuseline.connect(backend, column_cache_limit=SMALL) as connection:
        _, chunks = run(connection, path, f"select k, {call} from t group by k")
        assert not any(chunks)
        query = f"select k, {call} from t group by k"
        assert_same_as_duckdb(query, {"t": path}, connection=connection)


def test_columns_that_fit_are_kept_and_not_streamed(connect, path):
    with connect("10MB") as connection:
        for _ in range(2):
            _, chunks = run(connection, path, "select k, sum(i) from t group by k")
            assert not any(chunks)
        assert connection.cache.used(connection.device) > 0


def test_columns_that_fit_encoded_alone(backend, path):
    """Plain columns of 640 kB, encoded ones of 200 kB: read one by one and kept; without a kernel they come in chunks."""
    settings = {"column_cache_limit": "400kB", "fuse": "always"}
    with fuseline.connect(backend, **settings) as connection:
        _, chunks = run(connection, path, "select sum(n), max(p) from t")
        assert not any(chunks)
        assert 0 < connection.cache.used(connection.device) <= 400_000
        _, chunks = run(connection, path, "select sum(n), last(p) from t")
        assert max(chunks) > 1


def test_memory_limit_streams_too(path):
    with fuseline.connect("cpu", memory_limit="500kB") as connection:
        query = "select k, sum(i), avg(d), max(s) from t group by k"
        _, chunks = run(connection, path, query)
        assert max(chunks) > 1
        assert_same_as_duckdb(query, {"t": path}, connection=connection)


def test_rows_that_memory_cannot_hold(path):
    with fuseline.connect("cpu", memory_limit="500kB") as connection:
        with pytest.raises(MemoryLimitError, match=r"memory_limit (=|is) 488"):
            run(connection, path, "select * from t where n >= 0")
        assert connection.sql("select max(n) from t").fetchall() == [(ROWS - 1,)]


def test_what_is_derived_of_a_chunk_goes_with_it(path, monkeypatch, limits):
    limits(DISTINCT_SAMPLE=16, DISTINCT_SHARE=0.0, REPEATED_SHARE=0.0)
    kept, derived = [], Context.derived

    def counted(context, *given):
        found = derived(context, *given)
        kept.append(len(context._derived))
        return found

    monkeypatch.setattr(Context, "derived", counted)
    with connected({"t": path}, fuse="always", column_cache_limit=SMALL) as connection:
        assert_same_as_duckdb(
            "select count(*) from t where s like '%1%2%'", {"t": path}, connection=connection
        )
    assert len(kept) > 1
    assert set(kept) == {1}


def test_parts_are_merged_as_they_grow(connect, path, limits):
    limits(MERGED_PARTS=3, MERGED_ROWS=10)
    check(connect, path, GROUPED.format(keys="k", where=""))


def test_a_device_without_memory_streams(backend, path, monkeypatch):
    """The first try fails as an allocation does; then come chunks, smaller ones, and where the smallest fail an error."""
    scan = importlib.import_module(f"fuseline.operators.{backend}.scan.scan")
    operators = importlib.import_module(f"fuseline.operators.{backend}").OPERATORS
    most = 9

    def allocate(node, inputs, context):
        groups = [g for part in node.selection or node.table.all_row_groups for g in part.groups]
        if len(groups) > most:
            raise MemoryError("no room")
        return scan.parquet_scan(node, inputs, context)

    monkeypatch.setitem(operators, ParquetScan, allocate)
    query = "select k, sum(i), max(s) from t group by k"
    with fuseline.connect(backend, fuse="always", host_cache_limit=0) as connection:
        for most, expected in ((9, 4), (1, 10)):  # noqa: B007 - `allocate` reads it
            connection.cache.clear()
            _, chunks = run(connection, path, query)
            assert max(chunks) >= expected
            assert_same_as_duckdb(query, {"t": path}, connection=connection)
        most = 0
        connection.cache.clear()
        with pytest.raises(MemoryLimitError, match="column_cache_limit"):
            connection.sql(query).to_arrow()
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_build_sides_are_made_once_whatever_the_chunks(backend, path, monkeypatch, limits):
    """Fewer rows of the probe side at a time need no other build side."""
    scan = importlib.import_module(f"fuseline.operators.{backend}.scan.scan")
    operators = importlib.import_module(f"fuseline.operators.{backend}").OPERATORS
    made: list[str] = []

    def allocate(node, inputs, context):
        groups = [g for part in node.selection or node.table.all_row_groups for g in part.groups]
        if node.table.name == "t" and len(groups) > 1:
            raise MemoryError("no room")
        made.append(node.table.name)
        return scan.parquet_scan(node, inputs, context)

    query = "select count(*), sum(t.i), max(u.s) from t join u on t.n = u.n and u.i > 0"
    settings = {"fuse": "always", "column_cache_limit": "300kB", "host_cache_limit": 0}
    with connected({"t": path}, backend, **settings) as connection:
        smaller = path.with_name("u.parquet")
        pq.write_table(pq.read_table(path, filters=[("n", "<", 4000)]), smaller)
        connection.read_parquet(smaller, "u")
        monkeypatch.setitem(operators, ParquetScan, allocate)
        limits(CHUNKS_IN_ROOM=2)
        answer = connection.sql(query).fetchall()
        assert made.count("u") == 1
        assert made.count("t") >= ROWS // GROUP_ROWS
    with duckdb.connect() as duck:
        duck.read_parquet(str(path)).create_view("t")
        duck.read_parquet(str(smaller)).create_view("u")
        assert answer == duck.sql(query).fetchall()


def test_a_stop_between_chunks(connect, path, monkeypatch):
    run_chunk = ChunkedRun._run_chunk
    with connect() as connection:

        def stop(*args):
            connection.interrupt()
            return run_chunk(*args)

        monkeypatch.setattr(ChunkedRun, "_run_chunk", stop)
        with pytest.raises(Interrupted):
            run(connection, path, "select k, sum(i), max(s) from t group by k")
        monkeypatch.undo()
        query = "select k, sum(i), max(s) from t group by k"
        assert_same_as_duckdb(query, {"t": path}, connection=connection)


def test_explain_analyze_says_so(backend, path):
    with connected({"t": path}, backend, column_cache_limit=SMALL, fuse="always") as connection:
        text = connection.sql("select k, sum(i), max(t) from t group by k").explain("analyze")
    assert "streamed in 10 chunks" in text


# Files that change while they are read


@pytest.fixture
def changing(path, tmp_path):
    return shutil.copy(path, tmp_path / "t.parquet")


def rewritten(file):
    """Write the file anew, with as many rows of which only `i` differs."""
    table = pq.read_table(file)
    other = table.set_column(table.schema.get_field_index("i"), "i", pa.array([1] * ROWS))
    pq.write_table(other, file, row_group_size=GROUP_ROWS)


@pytest.mark.parametrize("limit", [SMALL, "1GB"])
@pytest.mark.parametrize("chunk", [0, 3])
def test_a_file_replaced_while_it_is_read(backend, changing, monkeypatch, limit, chunk):
    """The answer is that of the new file, not a mix."""
    calls = []
    unchanged = ParquetTable.check_unchanged

    def replace_first(table, parts):
        if len(calls) == (chunk if limit == SMALL else 0):
            rewritten(changing)
        calls.append(parts)
        unchanged(table, parts)

    monkeypatch.setattr(ParquetTable, "check_unchanged", replace_first)
    with fuseline.connect(backend, column_cache_limit=limit) as connection:
        query = "select sum(i), count(s), max(d) from t"
        found, _ = run(connection, changing, query)
        assert found.column(0)[0].as_py() == ROWS
        assert_same_as_duckdb(query, {"t": changing}, connection=connection)


def test_a_file_cut_off_before_it_is_read(backend, changing, monkeypatch):
    with connected({"t": changing}, backend, column_cache_limit=SMALL) as connection:
        content = changing.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(ParquetTable, "is_current", lambda table: True)
            changing.write_bytes(content[: len(content) // 2])
            with pytest.raises(FileError, match=r"t\.parquet"):
                connection.sql("select sum(i), max(s) from t").to_arrow()
        changing.write_bytes(content)
        query = "select sum(i), max(s) from t"
        assert_same_as_duckdb(query, {"t": changing}, connection=connection)


def test_a_file_written_anew_with_the_old_size_and_time(backend, tmp_path):
    """The time of the last write can be set back, that of the last change cannot."""
    file = tmp_path / "t.parquet"
    with fuseline.connect(backend) as connection:
        plain = {"use_dictionary": False, "compression": "none"}
        pq.write_table(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}), file, **plain)
        before = file.stat()
        connection.read_parquet(file, "t")
        assert connection.sql("select sum(a) from t").fetchall() == [(6,)]
        pq.write_table(pa.table({"a": [7, 8, 9], "b": [1, 1, 1]}), file, **plain)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (
            before.st_size,
            before.st_mtime_ns,
        )
        assert connection.sql("select sum(a), sum(b) from t").fetchall() == [(24, 3)]


# Aggregates in parts


def aggregate(function, *args, **more):
    x = new_column("x", BIGINT)
    made = new_column("made", more.pop("type", BIGINT))
    call = AggregateCall(function, (ColumnRef(x), *args), made.type, **more)
    return HashAggregate(ValuesScan((x,), ()), (), ((made, call),))


def test_what_cannot_be_done_in_parts_says_why():
    assert in_parts(aggregate("mode")) == "mode() needs the rows of a group together"
    assert "count(DISTINCT)" in in_parts(aggregate("count", distinct=True))
    assert "ORDER BY" in in_parts(aggregate("first", order=(ColumnRef(new_column("o", BIGINT)),)))


def test_merging_gives_the_columns_of_a_part():
    node = aggregate("avg")
    split = in_parts(node)
    assert isinstance(split, PartialAggregate)
    assert split.merge[-1].columns == split.partial.columns
    (finish,) = split.finish
    assert finish.columns == node.columns
    text = in_parts(aggregate("string_agg", Literal(",", VARCHAR), type=VARCHAR))
    assert isinstance(text, PartialAggregate)
    assert text.merge[0].aggregates[0][1].args[1] == Literal(",", VARCHAR)
