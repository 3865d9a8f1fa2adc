"""Fused joins on the GPU: kernels ran, and their answer is that of the operators; what a run finds out serves the next."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.operators.context import PipelineReceipt
from tests.codegen.test_clustered_self_join import QUERIES as NEIGHBOURS, tables
from tests.codegen.test_joins import KINDS, SHAPES, SOME, STAR, TYPES, keyed
from tests.compare import assert_same, connected
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

LARGE = ("many", "many, duplicate", "many, far apart", "skew")
Receipts = list[PipelineReceipt]


def receipts(frame: Any) -> Receipts:
    return [n.receipt for n in frame.profile.nodes if n.receipt is not None]


def run(query: str, tables: Mapping[str, Any], **settings: Any) -> tuple[pa.Table, Receipts]:
    """Run a query cold and hot; return the answer, and what its pipelines did when it was hot."""
    with connected(tables, "gpu", **settings) as connection:
        cold = connection.sql(query).to_arrow()
        frame = connection.sql(query)
        hot = frame.to_arrow()
        assert_same(cold, hot)
        return hot, receipts(frame)


def assert_joined(query: str, tables: Mapping[str, Any]) -> Receipts:
    """All pipelines of the query ran as kernels, at least one of them with an index."""
    expected, none = run(query, tables, fuse="never")
    found, done = run(query, tables, fuse="always")
    assert none == []
    reasons = [receipt.reason for receipt in done]
    assert reasons, "no pipeline in the plan"
    assert not any(reasons), reasons
    assert any(receipt.builds for receipt in done)
    assert_same(expected, found)
    return done


def assert_answered(query: str, tables: Mapping[str, Any]) -> None:
    """The answer is right, whether kernels could give it or not."""
    expected, _ = run(query, tables, fuse="never")
    found, _ = run(query, tables, fuse="always")
    assert_same(expected, found)


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("kind", "shape"), list(product(KINDS, (s for s in SHAPES if s not in LARGE)))
)
def test_every_kind_of_join_over_every_shape_of_keys(kind: str, shape: str) -> None:
    if "scalar" in kind and "duplicate" in shape:
        return  # which raises, see below
    probe, build = SHAPES[shape]
    assert_answered(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build)})


@pytest.mark.parametrize("selected", ["", "where w > 3"])
@pytest.mark.parametrize("spaces", [1, 4, 40])
def test_keys_in_ascending_order(spaces: int, selected: str, limits: SetLimits) -> None:

    limits(CACHED_SLOTS=0)
    keys = np.arange(1003) * spaces + np.arange(1003) % spaces
    probe = [*np.tile(keys[::-1], 2).tolist(), 5, -1]
    tables = {"t": keyed("v", probe), "u": keyed("w", keys.tolist())}
    query = "select count(*), sum(v), sum(w), sum(u.k) from t join u on t.k = u.k"
    (done,) = assert_joined(f"{query} {selected}", tables)
    form = "placed" if spaces == 1 else "ranked"
    assert [build.form for build in done.builds] == [f"{form} behind bits" if selected else form]


@pytest.mark.parametrize("query", NEIGHBOURS)
def test_rows_of_a_key_that_lie_side_by_side(query: str) -> None:
    keys = np.repeat(np.arange(30_000) * 3, np.arange(30_000) % 7 + 1)
    given = tables(keys)
    expected, _ = run(NEIGHBOURS[query], given, fuse="never")
    found, done = run(NEIGHBOURS[query], given, fuse="always")
    assert not any(receipt.reason for receipt in done)
    assert not any(build.kernel.name.startswith("build_t_") for r in done for build in r.builds)
    assert_same(expected, found)


@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("kind", ["inner", "left", "in", "not in", "exists residual", "build keys"])
def test_more_rows_than_a_block_takes(kind: str, shape: str) -> None:
    probe, build = SHAPES[shape]
    assert_joined(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build)})


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", ["inner", "left", "in", "not in"])
def test_keys_of_every_type(kind: str, name: str) -> None:
    data_type, probe, build = TYPES[name]
    tables = {
        "t": keyed("v", pa.array(probe, data_type)),
        "u": keyed("w", pa.array(build, data_type)),
    }
    assert_joined(KINDS[kind], tables)


@pytest.mark.parametrize(
    ("condition", "less"),
    [
        ("n % 1000 = 3", True),  # 30 rows, where a twentieth of them is expected
        ("n * 0 = 0", False),  # all of them
    ],
)
@pytest.mark.parametrize("kind", ["join", "left join"])
def test_buckets_for_the_rows_of_the_last_run(
    kind: str, condition: str, less: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = pytest.importorskip("fuseline.operators.gpu.pipeline.regions")
    monkeypatch.setattr(buckets, "CACHED_SLOTS", 0)
    keys = np.random.default_rng(7).permutation(30_000) * 10**9
    tables = {
        "t": pa.table({"k": np.concatenate([keys[::2], keys[::2]])}),
        "u": pa.table({"k": keys, "n": np.arange(30_000)}),
    }
    query = f"select count(*), count(n), sum(n) from t {kind} (select * from u where {condition}) v using (k)"
    expected, _ = run(query, tables, fuse="never")
    sizes = []
    with connected(tables, "gpu", fuse="always") as connection:
        for _ in range(3):
            frame = connection.sql(query)
            assert_same(expected, frame.to_arrow())
            (done,) = receipts(frame)
            (build,) = done.builds
            assert build.form == "hashed"
            sizes.append(build.bytes)
    first, second, third = sizes
    assert second == third
    assert second < first if less else second > first


# Rows and groups that stay on the device


def _wide(rows: int = 30_000) -> dict[str, pa.Table]:
    random = np.random.default_rng(3)

    def some(values: Any) -> pa.Array:
        return pa.array(values, mask=random.random(len(values)) < 0.1)

    days = pa.array(random.integers(-300, 9000, rows).astype(np.int32)).cast(pa.date32())
    cents = pa.array(random.integers(-(10**6), 10**6, rows)).cast(pa.decimal128(19, 0))
    words = np.array(["a", "bb", "ccc", ""])[random.integers(0, 4, rows)]
    table = pa.table(
        {
            "id": np.arange(rows),
            "k": some(random.integers(0, 3000, rows)),
            "g": some(random.integers(-40_000, 60_000, rows)),
            "far": random.integers(0, rows // 3, rows) * 10**9,
            "large": random.integers(-(2**62), 2**62, rows),
            "price": cents.cast(pa.decimal128(15, 2), safe=False),
            "day": days,
            "moment": pa.array(random.integers(0, 10**15, rows)).cast(pa.timestamp("us")),
            "real": some(random.normal(size=rows)),
            "half": random.normal(size=rows).astype(np.float32),
            "flag": some(random.random(rows) < 0.5),
            "word": some(words),
            "text": [f"text {i} of many {i * i}" for i in range(rows)],
        }
    )
    sides = {
        "k": np.arange(3000),
        "name": [None if i % 9 == 0 else f"name {i} and {i * i}" for i in range(3000)],
        "word": some(np.array(["x", "y", "zz"])[random.integers(0, 3, 3000)]),
        "p": some(random.integers(0, 40, 3000)),
        "day": pa.array(random.integers(0, 99, 3000).astype(np.int32)).cast(pa.date32()),
        "n": random.integers(-(2**62), 2**62, 3000),
    }
    parents = {"p": np.arange(40), "title": [f"title {i % 7}" for i in range(40)]}
    return {"t": table, "u": pa.table(sides), "p": pa.table(parents)}


WIDE = _wide()
AGGREGATES = (
    "count(*), count(real), sum(price), avg(price), sum(large), avg(large), min(day), max(day), "
    "min(moment), max(real), min(half), max(word), min(flag), bool_or(flag), sum(real), "
    "bit_xor(large), count_if(flag), var_samp(k), min(price), max(large)"
)
ALL_COLUMNS = "id, t.k, g, far, large, price, t.day, moment, real, half, flag, t.word, text"


@pytest.mark.parametrize("query", [
    f"select g, {AGGREGATES} from t group by g",
    f"select far, {AGGREGATES} from t group by far",
    "select g, word, flag, sum(price), count(*) from t group by g, word, flag",
    "select far, word, day, sum(price) from t group by far, word, day",
    "select g from t group by g",
    "select g, sum(price) from t where id < 0 group by g",
    "select far, sum(price) from t where price < 0 and word = 'a' group by far",
])  # fmt: skip
def test_many_groups(query: str) -> None:
    expected, _ = run(query, WIDE, fuse="never")
    found, done = run(query, WIDE, fuse="always")
    assert [receipt.reason for receipt in done] == [None]
    assert_same(expected, found)


@pytest.mark.parametrize(
    "query",
    [
        "select u.k, u.name, u.n, sum(price), count(*), max(t.day) from t join u on t.k = u.k "
        "group by u.k, u.name, u.n",
        "select u.k, u.name, u.n, title, u.word, u.day, sum(price), avg(real) from t join u on t.k = u.k "
        "join p on u.p = p.p group by u.k, u.name, u.n, title, u.word, u.day",
        "select far, u.word, sum(price), count(name) from t left join u on t.k = u.k and u.p > 20 "
        "group by far, u.word",
        f"select {ALL_COLUMNS}, name, u.word, u.n, u.day from t join u on t.k = u.k where price > 5000",
        f"select {ALL_COLUMNS}, name, u.word, u.n, u.day from t left join u on t.k = u.k and u.p = 7",
        "select id, name, title from t left join u on t.k = u.k left join p on u.p = p.p and p.p < 20",
        "select id, name || '!', price * 2, title from t join u on t.k = u.k join p on u.p = p.p "
        "where real > 1",
        "select count(*), sum(id) from t join u on t.k = u.k where name like '%7%and%'",
        "select name, sum(price) as s from t join u on t.k = u.k group by u.k, name order by s desc, name limit 9",
    ],
)
def test_late_columns(query: str) -> None:
    assert_joined(query, WIDE)


def test_rows_of_a_scan() -> None:
    assert_answered(f"select {ALL_COLUMNS} from t where word = 'bb' and price < 100", WIDE)
    assert_answered(f"select {ALL_COLUMNS} from t where price > 10000000", WIDE)


# Results of operators as sides


@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(v) from t where v > (select avg(v) from t)",
        "select count(*), sum(v), sum(n) from t join (select k, count(*) as n from z group by k) g on j = g.k",
        "select count(*), sum(v) from t join (select k, q from z order by q, k limit 20) g on j = g.k",
        "select count(*), sum(v) from t join (select distinct q from z) g on d = g.q",
        "select count(*), sum(v) from t join (select name, max(w) as m from u group by name) g on i = m "
        "where name like '%3%'",
        "select name, sum(v) from t join (select k, name, x * 1.5 as more from u limit 300) g on i = k "
        "where more > 12 group by name",
    ],
)
def test_stored_sides(query: str) -> None:
    expected, _ = run(query, STAR, fuse="never")
    found, done = run(query, STAR, fuse="always")
    assert done
    assert not any(receipt.reason for receipt in done)
    assert_same(expected, found)


def test_stored_rows_that_change_between_runs() -> None:
    """The same plan over other rows: intervals, counts and dictionaries of what operators made are others."""
    query = (
        "select count(*), sum(n), max(s) from t join (select k, count(*) as n, min(s) as s "
        "from u group by k) g on t.k = g.k"
    )
    texts = pa.array(["a", "b"] * 50)
    for seed, low, high in ((1, 0, 10), (2, -5, 300), (3, 0, 2**40), (4, 7, 8)):
        random = np.random.default_rng(seed)
        tables = {
            "t": pa.table({"k": random.integers(low, high, 500)}),
            "u": pa.table({"k": random.integers(low, high, 100), "s": texts}),
        }
        assert_answered(query, tables)


# What a run finds out


@pytest.fixture
def small_guesses(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> None:
    """Memory for next to no groups and rows, so that the first run does not suffice."""
    from fuseline.operators.gpu.pipeline import compiled_pipeline

    original = compiled_pipeline.laid_out

    def laid_out(made: Any, relations: Any, learnt: Any, estimate: Any) -> Any:
        return original(made, relations, learnt, 2.0)

    limits(LEAST_SLOTS=8, LEAST_LISTED=4)
    monkeypatch.setattr("fuseline.operators.gpu.pipeline.pipeline.laid_out", laid_out)


@pytest.mark.usefixtures("small_guesses")
@pytest.mark.parametrize(
    "query",
    [
        "select far, count(*), sum(price) from t group by far",
        "select id, name from t join u on t.k = u.k where price > 0",
        "select a.id, b.id from t a join t b on a.far = b.far and a.id < b.id",
    ],
)
def test_a_result_larger_than_expected(query: str) -> None:
    expected, _ = run(query, WIDE, fuse="never")
    found, done = run(query, WIDE, fuse="always")
    assert not any(receipt.reason for receipt in done)
    assert_same(expected, found)


def test_keys_that_repeat_although_they_might_be_unique() -> None:
    for keys in ([1, 100, 5, 5], [10**12, -(10**12), 5, 5]):
        tables = {"t": keyed("v", [1, 5, 7, 7, None]), "u": keyed("w", keys)}
        for kind in ("inner", "left", "groups", "build keys", "residual", "left residual"):
            assert_joined(KINDS[kind], tables)


def test_two_rows_of_a_scalar_subquery_raise() -> None:
    tables = {"t": keyed("v", [1, 2, 3]), "u": keyed("w", [2, 2, 3])}
    for mode in ("always", "never"):
        with pytest.raises(ExecutionError, match="More than one row"):
            run("select sum((select w from u where u.k = t.k)) from t", tables, fuse=mode)


def test_too_little_memory_leaves_the_work_to_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.gpu.memory import buffers

    def full(*_: Any, **__: Any) -> None:
        raise MemoryError("std::bad_alloc: out_of_memory")

    monkeypatch.setattr(buffers, "working_memory", full)
    monkeypatch.setattr(
        "fuseline.operators.gpu.pipeline.compiled_pipeline.blank_of", lambda regions: None
    )
    tables = {"t": keyed("v", SOME), "u": keyed("w", [1, 2, 3])}
    found, done = run(KINDS["inner"], tables, fuse="always")
    assert [receipt.reason for receipt in done] == [
        "there is too little memory for its indexes and groups"
    ]
    monkeypatch.undo()
    assert_same(run(KINDS["inner"], tables, fuse="never")[0], found)


def test_an_aggregate_that_no_kernel_holds_is_fed_by_one() -> None:
    query = "select i, count(distinct name), sum(v) from t join u on i = u.k group by i"
    expected, _ = run(query, STAR, fuse="never")
    found, (done,) = run(query, STAR, fuse="always")
    assert done.reason is not None
    assert done.reason.endswith("1 of 1 parts below run in kernels")
    assert_same(expected, found)


def test_receipts_say_what_was_built() -> None:
    (done,) = assert_joined("select count(*), sum(w) from t join u on i = u.k", STAR)
    (build,) = done.builds
    assert build.rows == STAR["u"].num_rows
    assert build.bytes > 0
    assert done.rows == STAR["t"].num_rows
    assert done.bytes > build.bytes


def test_columns_that_left_the_cache_are_loaded_again() -> None:
    query = "select count(*), sum(w), max(name) from t join u on i = u.k"
    with connected(STAR, "gpu", fuse="always") as connection:
        before = connection.sql(query).to_arrow()
        connection.cache.clear()
        frame = connection.sql(query)
        assert_same(before, frame.to_arrow())
        assert not any(receipt.reason for receipt in receipts(frame))
