"""Operators ask for memory before they take it: what each of them makes is no more than it has asked for."""

import dataclasses
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import MemoryLimitError
from fuseline.operators import cpu
from fuseline.operators.cpu.scan import encoded
from fuseline.operators.cpu.scan.scan import held_of
from fuseline.operators.transfer import moved
from fuseline.plan import physical as p
from fuseline.plan.expr import new_column
from fuseline.plan.partial import FinishAverages
from fuseline.plan.types import Kind, decimal
from fuseline.runtime import in_pieces
from fuseline.runtime.memory import MemoryBudget
from tests.compare import connected

ROWS = 30_000
NOT_ASKED = 8_000  # bytes: masks and single values
NOT_COPIED = 64  # bytes: what conversions that pass an array on make beside it
NUMBERS = np.arange(ROWS)
DATA = pa.table({
    "k": NUMBERS * 7919 % ROWS, "x": NUMBERS, "f": NUMBERS / 3, "s": [f"text {n % 1000}" for n in NUMBERS],
    "u": [f"a longer, unique text {n}" for n in NUMBERS],
})  # fmt: skip
QUERIES = [
    "select * from t where k > 5",
    "select k, x, u from t order by u desc, k offset 7",
    "select s, count(*), sum(k), avg(f), min(x) from t group by s",
    "select u, max(s), min(u), first(s) from t group by u",
    "select u || s as v, count(*) from t group by v",
    "select distinct s, x % 7 from t",
    "select distinct on (s) s, u, x from t order by s, x",
    "select k % 50 as g, median(f), mode(s), quantile_disc(u, 0.3), count(distinct u) from t group by g",
    "select k % 50 as g, string_agg(u, ',' order by x), string_agg(s, '--') from t group by g",
    "select string_agg(u, ''), string_agg(s, '') from t",
    "select upper(u), k * 2.5, f + x, replace(s, 'text', 'a text'), x::varchar from t",
    "select a.u, b.s, b.x from t a join t b on a.k = b.x where a.x < b.k",
    "select a.u, b.u from t a left join t b on a.k = b.x + 20000",
    "select count(*), max(b.u) from t a full join t b on a.k = b.x + 9",
    "select a.x, b.u from t a, t b where a.x < 200 and b.x < 200 and a.x <> b.x",
    "select k from t where x in (select k * 3 from t) or x < 10",
    "select u from t union all select s from t",
    "select u from t union select s from t",
    "select s from t except all select u from t",
    "select k from t intersect select x * 2 from t",
    "select u from t order by k limit 9000",
    "select x, lag(u, 3, s) over (order by x), max(s) over (order by k rows 9 preceding), sum(f) over (partition by s order by k) from t",
    "select string_agg(u, ',') over (order by x rows 3 preceding), count(distinct u) over (order by k rows 5 preceding) from t",
    "select a.x, l.u from range(50) a(x), lateral (select u from t where t.k % 50 = a.x order by u limit 40) l",
    "select x, y, u from (select x, u, [k, x, 3] as l from t), unnest(l) v(y)",
    "select [u, s] as l, {'a': u} as r, [k][1:2] from t",
]


def addresses(arrays):
    found = {}
    for array in arrays:
        for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
            if pa.types.is_dictionary(chunk.type):
                found |= addresses([chunk.dictionary, chunk.indices])
            else:
                found |= {b.address: b.size for b in chunk.buffers() if b is not None}
    return found


@pytest.fixture
def beyond(monkeypatch):
    """The bytes that kinds of operators made beyond those that they had asked for, at most."""
    found = defaultdict(int)

    def noting(kind, operator):
        def run(node, inputs, context):
            asked = 0
            ask = context.ask

            def noted(asking, nbytes):
                nonlocal asked
                asked += nbytes
                ask(asking, nbytes)

            monkeypatch.setattr(context, "ask", noted)
            given = addresses(array for table in inputs for array in table.arrays.values())
            if isinstance(node, p.ParquetScan):
                given |= addresses(held_of(node, context).values())
            made = operator(node, inputs, context)
            monkeypatch.setattr(context, "ask", ask)
            if isinstance(node, p.MemoryScan):
                given |= addresses(node.table.data.columns)
            new = sum(n for a, n in addresses(made.arrays.values()).items() if a not in given)
            found[kind.__name__] = max(found[kind.__name__], new - asked)
            return made

        return run

    for kind, operator in cpu.OPERATORS.items():
        if kind is not p.Pipeline:
            monkeypatch.setitem(cpu.OPERATORS, kind, noting(kind, operator))
    return found


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("source", ["memory", "file"])
def test_operators_make_what_they_asked_for(query, source, beyond, tmp_path):
    with fuseline.connect("cpu", fuse="never", column_cache_limit=0) as connection:
        if source == "memory":
            connection.register("t", DATA)
        else:
            pq.write_table(DATA, tmp_path / "t.parquet", row_group_size=ROWS // 3)
            connection.read_parquet(tmp_path / "t.parquet", "t")
        connection.sql(query).to_arrow()
    assert beyond
    assert {kind: size for kind, size in beyond.items() if size > NOT_ASKED} == {}


def test_each_operator_is_among_them(monkeypatch):
    """The queries above run every operator that there is; a new one needs a query here."""
    ran = set()

    def noting(kind, operator):
        def run(node, inputs, context):
            ran.add(kind)
            return operator(node, inputs, context)

        return run

    for kind, operator in cpu.OPERATORS.items():
        monkeypatch.setitem(cpu.OPERATORS, kind, noting(kind, operator))
    with connected({"t": DATA}, fuse="never") as connection:
        for query in QUERIES:
            connection.sql(query).to_arrow()
    # What a file has instead of a table in memory, constants of a query's text, what runs kernels, and a value a group of merged parts
    assert set(cpu.OPERATORS) - ran == {p.ParquetScan, p.ValuesScan, p.Pipeline, FinishAverages}


def test_columns_are_asked_for_before_they_are_encoded(monkeypatch, tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet", row_group_size=ROWS // 3)
    asked, read = [], []
    ours, reads = encoded.askable_shares, encoded.read_columns

    def shares(scan, share, context):
        monkeypatch.setattr(context, "ask", lambda node, nbytes: asked.append(nbytes))
        return ours(scan, share, context)

    def columns(scan, context, encode):
        assert asked
        found = reads(scan, context, encode)
        read.append(sum(array.nbytes for array in found.values()))
        return found

    monkeypatch.setattr(encoded, "askable_shares", shares)
    monkeypatch.setattr(encoded, "read_columns", columns)
    with connected({"t": tmp_path / "t.parquet"}, fuse="always") as connection:
        connection.sql(
            "select k % 10 as g, sum(f), max(x) from t where s < 'text 5' group by g"
        ).to_arrow()
    assert read
    assert max(asked) >= max(read)


TYPES = {
    "boolean": "x % 2 = 0", "tinyint": "(x % 100)::tinyint", "smallint": "x::smallint", "integer": "x::integer",
    "bigint": "x", "utinyint": "(x % 100)::utinyint", "usmallint": "x::usmallint", "uinteger": "x::uinteger",
    "ubigint": "x::ubigint", "float": "x::float", "double": "x / 7", "decimal": "x::decimal(12, 2)",
    "wide decimal": "x::decimal(30, 2)",
    "date": "date '2020-01-01' + (x % 1000)::integer",
    "timestamp": "timestamp '2020-01-01' + interval 1 day * x",
    "time": "(timestamp '2020-01-01' + interval 1 second * x)::time",
    **{
        name: f"(timestamp '2020-01-01' + interval 1 day * (x % 1000))::{name}"
        for name in ("timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz")
    },
    "list": "[x, x + 1]", "struct": "{'a': x, 'b': s}", "map": "map {s: x}", "bytes": "encode('bytes ' || x)",
    "interval": "interval 1 day * x", "text": "'a text ' || x", "text of few values": "s",
    "text with NULL": "case when x % 3 > 0 then s end",
    "decimal with NULL": "case when x % 3 > 0 then x::decimal(12, 2) end",
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_answers_are_asked_for_as_arrow_has_them(kind, tmp_path):
    pq.write_table(DATA.select(["x", "s"]), tmp_path / "t.parquet")
    with connected({"t": tmp_path / "t.parquet"}, fuse="never") as connection:
        result = connection.sql(f"select {TYPES[kind]} as v from t")._run()
        asked = result.backend.arrow_bytes(result.table, result.columns)
        given = addresses(result.table.arrays.values())
        arrow = result.to_arrow()
        made = sum(n for a, n in addresses(arrow.columns).items() if a not in given)
        assert made - NOT_COPIED <= asked * 1.2
        assert asked <= made * 1.2 + NOT_COPIED
        if asked:
            limited = dataclasses.replace(result, budget=MemoryBudget(asked - 1))
            with pytest.raises(MemoryLimitError, match=r"no room for the answer.*to_batches"):
                limited.to_arrow()


def test_each_type_is_among_them():
    with connected({"t": DATA}) as connection:
        values = ", ".join(f"{value} as v{i}" for i, value in enumerate(TYPES.values()))
        frame = connection.sql(f"select {values} from t")
        # UUIDs become text, which is asked for and made elsewhere
        others = {Kind.NULL, Kind.OTHER, Kind.UUID}
        assert {t.kind for t in frame.schema.values()} == set(Kind) - others


@pytest.mark.parametrize("limit", [None, 3_000_000])
def test_parts_of_an_answer_are_asked_for(limit, monkeypatch):
    """A stream asks for each part, and gives smaller ones where there is little room."""
    asked = []
    ask = in_pieces.ask_for_answer
    monkeypatch.setattr(
        in_pieces, "ask_for_answer", lambda budget, size: asked.append(size) or ask(budget, size)
    )
    with connected({"t": DATA}, memory_limit=limit, fuse="never") as connection:
        batches = list(connection.sql("select x::decimal(12, 2) as v from t").to_batches())
    assert sum(b.num_rows for b in batches) == ROWS
    assert sum(asked) >= 16 * ROWS
    assert max(asked) <= (16 * ROWS if limit is None else limit // 16)


@pytest.mark.parametrize(("source", "target"), [("cpu", "gpu"), ("gpu", "cpu")])
def test_moving_a_table_asks_both_devices(source, target):
    """Arrow's arrays lie on the host; from there they go to a GPU."""
    column = new_column("v", decimal(12, 2))
    table = cpu.Table({column.id: pa.array(range(ROWS))}, ROWS)
    node = p.Transfer(p.Stored(0, (column,), device=source), device=target)
    asked = []
    context = SimpleNamespace(ask=lambda node, size: asked.append((node.device, size)))
    made = moved(node, table, {"cpu": cpu, "gpu": cpu}, context)
    assert made.arrays[column.id].equals(table.arrays[column.id])
    assert asked == [("cpu", 16 * ROWS), ("gpu", 16 * ROWS)][: 1 + (target == "gpu")]
