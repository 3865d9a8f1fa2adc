"""Operators ask for memory before they take it: what each of them makes is no more than it has asked for."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.operators import cpu
from fuseline.operators.cpu import encoded
from fuseline.operators.cpu.scan import held_of
from fuseline.plan import physical as p

ROWS = 30_000
NOT_ASKED = 8_000  # bytes: masks and single values
NUMBERS = np.arange(ROWS)
DATA = pa.table(
    {
        "k": NUMBERS * 7919 % ROWS,
        "x": NUMBERS,
        "f": NUMBERS / 3,
        "s": [f"text {n % 1000}" for n in NUMBERS],
        "u": [f"a longer, unique text {n}" for n in NUMBERS],
    }
)
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
    "select a.x, l.u from range(50) a(x), lateral (select u from t where t.k % 50 = a.x order by u limit 40) l",
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


def test_columns_are_asked_for_before_they_are_encoded(monkeypatch, tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet", row_group_size=ROWS // 3)
    asked, read = [], []
    ours, reads = encoded.askable_shares, encoded.read_columns

    def shares(scan, share, context):
        monkeypatch.setattr(context, "ask", lambda node, nbytes: asked.append(nbytes))
        return ours(scan, share, context)

    def columns(scan, context):
        assert asked
        found = reads(scan, context)
        read.append(sum(array.nbytes for array in found.values()))
        return found

    monkeypatch.setattr(encoded, "askable_shares", shares)
    monkeypatch.setattr(encoded, "read_columns", columns)
    with fuseline.connect("cpu", fuse="always") as connection:
        connection.read_parquet(tmp_path / "t.parquet", "t")
        connection.sql(
            "select k % 10 as g, sum(f), max(x) from t where s < 'text 5' group by g"
        ).to_arrow()
    assert read
    assert max(asked) >= max(read)
