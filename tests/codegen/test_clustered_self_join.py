"""Joins of a table with itself by a column in whose order its rows lie, whose rows are found around each other: no index is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numba import njit

import fuseline
from fuseline.codegen.cpu import functions_cpu as cpu
from fuseline.codegen.cuda import device_kernels
from fuseline.codegen.joins import chains
from fuseline.codegen.program import Program
from fuseline.plan.types import BIGINT
from fuseline.planner.pipelines import reduce_builds
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import MOST_ALIKE
from tests.codegen import simulator
from tests.codegen.fused import assert_fused_joins
from tests.codegen.simulated import Runs
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

LARGE, SMALL = 2**63 - 1, -(2**63)
# Keys in order, some of them in several rows
KEYS: dict[str, list[int]] = {
    "short runs": sorted([*range(0, 90, 2), *range(0, 90, 3), *range(0, 90, 6)]),
    "a long run": [3, *[5] * MOST_ALIKE, 7, 7],
    "all equal": [7] * 20,
    "two rows": [7, 7],
    "extremes": [SMALL, SMALL, -1, 0, 0, LARGE, LARGE],
    "ends of runs": [1] * 3 + [2] * 8 + [9] * 5,
}
# In which rows are found otherwise
OTHERS: dict[str, list[int | None]] = {
    "too long a run": [3, *[5] * (MOST_ALIKE + 1), 7, 7],
    "not in order": [1, 1, 3, 3, 2, 2], "falls at the end": [*[1] * 30, 2, 2, 1], "nulls": [1, 1, None, 2, 2],
    "nulls alone": [None, None], "none": [], "one row": [5], "no repeats": [1, 2, 3, 9],
}  # fmt: skip
EXISTS = (
    "select count(*), sum(v) from t a where {}exists (select * from t b where b.k = a.k and {})"
)
QUERIES = {
    "not exists filtered": EXISTS.format("a.v > 3 and not ", "b.n <> a.n and b.v > b.w"),
    "both": EXISTS.format("a.v > a.w and not ", "b.w <> a.w and b.v > b.w")
    + " and exists (select * from t c where c.k = a.k and c.w <> a.w)",
    "mark": "select exists (select * from t b where b.k = a.k and b.w < a.w and b.v <> 3) as m, "
    "count(*), sum(v) from t a group by m",
    "or": EXISTS.format("a.v > 7 or ", "b.w < a.w"),
    "inner filtered": "select count(*), sum(a.v), sum(b.w) from t a join t b on a.k = b.k and a.v < b.w "
    "where b.v + b.w > 6 and a.n > 1",
    "left": "select count(*), sum(a.v), sum(b.w), count(b.k) from t a left join t b on a.k = b.k",
    "left residual": "select count(*), sum(a.v), sum(b.w), count(b.k) from t a left join "
    "(select k, w + v as w from t where v > 2) b on a.k = b.k and a.v < b.w",
    "groups": "select a.v, count(*), sum(b.v) from t a join t b on a.k = b.k group by a.v",
    "groups of keys": "select k, count(*), sum(w) from t a where v > 1 and exists "
    "(select * from t b where b.k = a.k and b.w <> a.w) group by k",
    "rows": "select a.v, b.w from t a join t b on a.k = b.k and a.w < b.w",
    "above a join": "select count(*), sum(a.v), sum(c) from t a join d on a.w = d.w "
    "where exists (select * from t b where b.k = a.k and b.w <> a.w)",
    "in a build side": "select count(*), sum(c) from d where d.w in (select a.w from t a where exists "
    "(select * from t b where b.k = a.k and b.w > a.w))",
}
# By several keys, of which rows are in the order of one
SEVERAL = {
    "inner": "select count(*), sum(a.v), sum(b.w) from t a join t b on a.k = b.k and a.n = b.n and a.v < b.w",
    "the second one": "select a.v, count(*), sum(b.w) from t a join t b on a.v = b.v and a.k = b.k and a.w < b.w group by a.v",
    "equal nulls": "select count(*), sum(b.w) from t a join t b on a.n is not distinct from b.n and a.k = b.k and a.w <= b.w",
    "rows": "select a.v, b.w, a.n from t a join t b on a.k = b.k and a.n = b.n and a.v = b.v",
    "exists": EXISTS.format("", "b.n = a.n and b.w < a.w"),
    "not exists": EXISTS.format("not ", "b.v = a.v and b.w <> a.w"),
    "left": "select count(*), sum(a.v), sum(b.w), count(b.k) from t a left join t b on a.k = b.k and a.n = b.n",
    "three": "select count(*), sum(a.v) from t a join t b on a.w = b.w and a.k = b.k and a.v = b.v where b.n > 0 or b.w < 9",
}


def tables(keys: Any) -> dict[str, pa.Table]:
    rows, random = len(keys), np.random.default_rng(len(keys))
    made = {name: random.integers(0, 10, rows) for name in ("v", "w")}
    n = pa.array(random.integers(0, 5, rows), mask=random.random(rows) < 0.3)
    t = pa.table({"k": pa.array(keys, pa.int64()), **made, "n": n})
    return {"t": t, "d": pa.table({"w": [1, 2, 3, 5, 8], "c": [5, 6, 7, 8, 9]})}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each join that was made needs no index."""
    made: list[bool] = []
    real = chains.neighbours

    def noted(*args: Any) -> Any:
        join = real(*args)
        made.append(join is not None)
        return join

    monkeypatch.setattr(chains, "neighbours", noted)
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_found_around_each_other(query: str, found: list[bool]) -> None:
    assert_fused_joins(QUERIES[query], tables(KEYS["short runs"]))
    assert any(found)


@pytest.mark.by_day
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("query", ["both", "left residual", "rows"])
def test_keys_in_order(query: str, keys: str, found: list[bool]) -> None:
    assert_fused_joins(QUERIES[query], tables(KEYS[keys]))
    assert any(found)


@pytest.mark.parametrize(
    ("query", "keys"),
    [*((query, "short runs") for query in SEVERAL), ("left", "a long run"), ("inner", "extremes")],
)
def test_several_keys(query: str, keys: str, found: list[bool], limits: SetLimits) -> None:
    limits(NUMBERS_A_ROW=0)
    assert_fused_joins(SEVERAL[query], tables(KEYS[keys]))
    assert any(found)


def test_dense_keys_of_which_the_first_match_counts(found: list[bool]) -> None:
    assert_fused_joins(SEVERAL["exists"], tables(KEYS["short runs"]))
    assert not any(found)


@pytest.mark.by_day
@pytest.mark.parametrize("query", ["equal nulls", "not exists"])
@pytest.mark.parametrize("keys", ["not in order", "nulls", "none"])
def test_several_keys_in_no_order(query: str, keys: str, found: list[bool]) -> None:
    assert_same_as_duckdb(SEVERAL[query], tables(OTHERS[keys]), fuse=("always", "never"))
    assert not any(found)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("keys", OTHERS)
@pytest.mark.parametrize("query", ["both", "left residual"])
def test_other_keys(query: str, keys: str, found: list[bool]) -> None:
    assert_same_as_duckdb(QUERIES[query], tables(OTHERS[keys]), fuse=("always",))
    assert not any(found)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_on_cuda(query: str, runs: Runs) -> None:
    """The simulator gives what the CPU gives."""
    programs = kernels(QUERIES[query], KEYS["short runs"], runs)
    assert any("first_alike" in repr(p.body) for p in programs)
    if "build" not in query and "above" not in query:
        assert [p.index for p in programs] == [None]


@pytest.mark.parametrize("keys", [k for k in KEYS if k != "short runs"])
def test_keys_in_order_on_cuda(keys: str, runs: Runs) -> None:
    assert kernels(QUERIES["both"], KEYS[keys], runs)
    assert kernels(QUERIES["rows"], KEYS[keys], runs)


def kernels(query: str, keys: list[int], runs: Runs) -> list[Program]:
    with connected(tables(keys), fuse="always") as connection:
        connection.sql(query).to_arrow()
    return runs.programs


def test_kernels_for_hopper(runs: Runs, tmp_path: Path) -> None:
    pytest.importorskip(
        "numba_cuda", reason="numba-cuda is not installed: pip install 'fuseline[dev]'"
    )
    for keys in ("short runs", "extremes"):
        for program in kernels(QUERIES["both"], KEYS[keys], runs):
            code, _ = device_kernels.kernel_file(
                program, lambda: "a plan", tmp_path, (9, 0)
            ).machine_code()
            assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "query",
    [
        # another table, another key, a second key that is another column, a bit for each key, a table of which rows are left out by a join
        "select count(*) from t a join d on a.k = d.w",
        "select count(*) from t a where exists (select * from t b where b.k = a.w and b.v <> a.v)",
        "select count(*), sum(b.v) from t a join t b on a.k = b.k and a.v = b.w",
        "select count(*) from t a where a.k in (select k from t where v > 4)",
        "select count(*), sum(b.w) from t a left join (select t.k, t.w from t join d on t.v = d.w) b on a.k = b.k",
    ],
)
def test_other_joins(query: str, found: list[bool]) -> None:
    assert_same_as_duckdb(query, tables(KEYS["short runs"]), fuse=("always",))
    assert found
    assert not any(found)


def test_few_rows_of_many_are_in(found: list[bool]) -> None:
    """To look around each row takes longer than to ask for one of few keys."""
    query = "select count(*), sum(b.w) from t a join t b on a.k = b.k where b.v = 3 and b.w = 4"
    assert_same_as_duckdb(query, tables(KEYS["short runs"]), fuse=("always",))
    assert not any(found)


def test_a_build_side_that_was_reduced(monkeypatch: pytest.MonkeyPatch, found: list[bool]) -> None:
    """The planner could not know that no index is needed; the set of keys that reduces it is not made then."""
    monkeypatch.setattr(reduce_builds._Costs, "spared", lambda *_: (1.0, 0.5))
    monkeypatch.setattr(reduce_builds._Costs, "source", lambda *_: 0.0)
    query, given = QUERIES["both"], tables(KEYS["short runs"])
    assert_same_as_duckdb(query, given, fuse=("always",))
    assert all(found)
    with connected({"t": given["t"]}, fuse="always") as connection:
        frame = connection.sql(query)
        assert "HashJoin semi  k#2 = k" in frame.explain()
        frame.to_arrow()
        (receipt,) = [n.receipt for n in frame.profile.nodes if n.receipt is not None]
    assert receipt.builds == ()


def test_a_file_that_changes(tmp_path: Path, found: list[bool]) -> None:
    """Row groups in order say nothing of the rows in them; and other rows need other kernels."""
    path = tmp_path / "t.parquet"
    with fuseline.connect(device="cpu", fuse="always") as connection:
        for keys in (KEYS["short runs"], KEYS["short runs"][::-1], [1, 1, 2, 2, 4, 3, 8, 8, 9, 9]):
            table = tables(keys)["t"]
            pq.write_table(table, path, row_group_size=max(len(keys) // 3, 1))
            view = {"t": table}
            query = QUERIES["both"].replace("from t ", f"from '{path}' ")
            result = connection.sql(query).to_arrow()
            assert_same_as_duckdb(QUERIES["both"], view)
            with connected({"t": table}, fuse="never") as other:
                assert result.to_pylist() == other.sql(QUERIES["both"]).to_arrow().to_pylist()
    assert any(found)
    assert not all(found)


def test_row_groups_that_are_left_out(tmp_path: Path) -> None:
    """Where a filter leaves out row groups of the rows that look, rows have other numbers."""
    keys = KEYS["short runs"] * 1 + [200, 200, 201, 201]
    table = tables(keys)["t"]
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    query = "select count(*), sum(v) from t a where a.k > 40 and exists (select * from t b where b.k = a.k and b.w <> a.w and b.k < 201)"
    with connected({"t": str(tmp_path / "t.parquet")}, fuse="always") as connection:
        first = connection.sql(query).to_arrow().to_pylist()
        connection.sql(
            "select sum(k), sum(v), sum(w) from t"
        ).to_arrow()  # all row groups are there
        again = connection.sql(query).to_arrow().to_pylist()
    with connected({"t": table}, fuse="never") as connection:
        assert first == again == connection.sql(query).to_arrow().to_pylist()


# Functions


@njit
def rows_alike(codes, row):  # type: ignore[no-untyped-def]
    found = [cpu.first_alike(codes, row)]
    while found[-1] >= 0:
        found.append(cpu.next_alike(codes, found[-1], np.int32(len(codes))))
    return found[:-1]


def simulated_rows(codes: Any, row: Any) -> list[int]:
    cuda = simulator.Cuda(1, 32, 0)
    cuda.here.thread = 0
    call = SimpleNamespace(**simulator.functions(cuda))
    found = [call.first_alike(codes, row)]
    while found[-1] >= 0:
        found.append(call.next_alike(codes, found[-1], np.int32(len(codes))))
    return found[:-1]


@pytest.mark.parametrize("rows_of", [rows_alike, simulated_rows])
@pytest.mark.parametrize("width", ["uint8", "uint16", "uint32", "int64"])
def test_rows_with_one_code(rows_of: Callable[..., list[int]], width: str) -> None:
    codes = np.array([0, 0, 1, 5, 5, 5, 9, 9], width)
    for row in range(len(codes)):
        expected = np.flatnonzero(codes == codes[row]).tolist()
        assert rows_of(codes, np.uint64(row)) == expected


# What is measured


@pytest.mark.parametrize(
    ("values", "clustered"),
    [
        *((keys, True) for keys in KEYS.values()),
        *((keys, name in ("one row", "no repeats")) for name, keys in OTHERS.items()),
        ([0] * MOST_ALIKE + [1] * MOST_ALIKE, True),
        ([i // 3 for i in range(100_000)], True),
        ([*(i // 3 for i in range(100_000)), 5], False),
        ([*(i // 64 for i in range(1 << 16)), 1023], False),
        ([*(i // 64 for i in range(32_700)), *[511] * 65, *range(512, 40_000)], False),
        ([*range(32_760), *[40_000] * 64, *range(40_001, 50_000)], True),
    ],
)
def test_whether_values_are_clustered(values: list[int | None], clustered: bool) -> None:
    made = encode(pa.array(values, pa.int64()), BIGINT, 2)
    assert made is not None
    measured = with_order(made, 2)
    assert measured.clustered == clustered
    assert measured.ascending == (clustered and len(set(values)) == len(values))
