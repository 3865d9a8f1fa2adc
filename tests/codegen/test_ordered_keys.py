"""Build sides whose keys are stored in ascending order: their rows are known by rank, or are the keys' numbers themselves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit

from fuseline.codegen.cpu import functions_cpu as cpu
from fuseline.codegen.indexes import choose
from fuseline.codegen.indexes.choose import ordered_form
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Direct, Identity, Index, Ranks
from fuseline.plan import device_costs
from fuseline.plan.device_costs import CPU
from fuseline.plan.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, DataType
from fuseline.storage.columns.encode import encode, with_order
from fuseline.storage.columns.encodings import EncodedColumn
from tests.codegen import simulator
from tests.codegen.machine_code import assembly_of
from tests.codegen.simulated import Simulate
from tests.codegen.test_joins import KINDS, SOME, assert_fused_joins, keyed
from tests.limits import SetLimits

ROWS = [1, 7, 8, 9, 64, 67, 300]
FULL, GAPS = "full", "gaps"
# Keys of a build side, ascending, of which probes look for some and others
ORDERED: dict[str, list[int]] = {
    FULL: list(range(1, 8)),
    GAPS: [-40, 1, 2, 3, 5, 31, 32, 33, 64, 95, 96, 127, 128, 500],
    "one row": [5],
    "extremes": [-(2**63), 0, 5, 2**63 - 1],
}
SELECTED = {
    "some": "select count(*), sum(w), min(u.k) from t join u on t.k = u.k where w > 4",
    "none": "select count(*), sum(w) from t left join (select * from u where w > 100) u on t.k = u.k",
    "all": "select count(*), sum(w) from t left join (select * from u where w < 100) u on t.k = u.k",
    "full": "select count(*), sum(v), sum(w), count(t.k) from t full join u on t.k = u.k",
    "twice": "select count(*), sum(a.w), sum(b.w) from t join u a on t.k = a.k left join u b on t.v = b.k",
    "shared": "select count(*), sum(w) from t join u on t.k = u.k where t.k not in (select k from u where w > 5)",
    "nested": "select count(*), sum(u.w) from t join u on t.k = u.k join u x on u.w = x.k where x.w > 2",
    "rows": "select v, w from t join u on t.k = u.k where v <> 3",
}
QUERIES = KINDS | SELECTED


def ordered_rows(rows: int, step: int, width: int) -> Any:
    random = np.random.default_rng(rows)
    most = min(3 * rows, 256 if width == 1 else 1 << 20)
    picked = random.choice(max(most, rows), rows, replace=False)
    return np.sort(picked).astype(f"uint{8 * width}")


@njit
def find_all(ranks, numbers):  # type: ignore[no-untyped-def]
    return np.array([cpu.find_rank(ranks, n) for n in numbers])


@pytest.mark.parametrize("cuda", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("step", [1, 7, 40])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_ranks(cuda: bool, rows: int, step: int, width: int) -> None:
    """Ranges of rows, and threads, share words."""
    if width == 1 and rows > 255:
        pytest.skip("a byte has fewer values")
    codes = ordered_rows(rows, step, width)
    numbers = codes.astype(np.int64) * step
    ranks = np.zeros(int(numbers[-1]) // 32 + 1, np.uint64)
    if cuda:
        call = simulated()
        for thread in range(8):
            at = np.uint64(thread), np.uint64(8)
            call.rank_rows(codes, ranks, np.int64(rows), np.int32(step), *at)
    else:
        for start in range(0, rows, 20):
            cpu.rank_rows(codes, ranks, start, min(start + 20, rows), np.int32(step))
    expected = np.full(len(ranks) * 32, -1)
    expected[numbers] = np.arange(rows)
    asked = np.arange(-1, len(expected), dtype=np.int32)
    find = simulated().find_rank
    found = [find(ranks, n) for n in asked] if cuda else find_all(ranks, asked)
    np.testing.assert_array_equal(found, np.append(-1, expected))


def simulated() -> Any:
    cuda = simulator.Cuda(1, 32, 0)
    cuda.here.thread = 0
    return SimpleNamespace(**simulator.functions(cuda))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> set[str]:
    """What the indexes that are made are made of; small ones are ranked too, however few of their rows are in."""
    made: set[str] = set()

    def noted(*args: Any) -> Index:
        index = Index(*args)
        made.add(index.shown)
        return index

    limits(CACHED_SLOTS=0)
    for costs in ("CPU", "H200"):
        ranking = replace(getattr(device_costs, costs), ranked_share=0.0)
        monkeypatch.setattr(device_costs, costs, ranking)
    monkeypatch.setattr(choose, "Index", noted)
    return made


def tables(keys: list[int]) -> dict[str, pa.Table]:
    probe = [*SOME, *range(-2, 130, 7), 31, 32, 33, 64, 127, 128, 501, 10**12, -(2**63), 2**63 - 1]
    return {"t": keyed("v", probe), "u": keyed("w", keys)}


@pytest.mark.by_day
@pytest.mark.parametrize(
    ("query", "keys"),
    [
        *((query, keys) for query in QUERIES for keys in (FULL, GAPS)),
        *(
            (query, keys)
            for query in ("left", "not in", "some")
            for keys in ("one row", "extremes")
        ),
    ],
)
@pytest.mark.usefixtures("shown")
def test_a_join_with_ordered_keys(query: str, keys: str) -> None:
    assert_fused_joins(QUERIES[query], tables(ORDERED[keys]))


@pytest.mark.parametrize("keys", [FULL, GAPS])
@pytest.mark.parametrize(
    "query", ["left", "exists residual", "mark", "not in", "build keys", *SELECTED]
)
def test_a_join_with_ordered_keys_on_cuda(
    query: str, keys: str, simulate: Simulate, shown: set[str]
) -> None:
    simulate(QUERIES[query], tables(ORDERED[keys]))
    form = "placed" if keys == FULL else "ranked"
    expected = {"left": form, "none": f"{form} behind bits", "all": f"{form} behind bits"}
    assert query not in expected or shown == {expected[query]}


@pytest.mark.usefixtures("shown")
def test_kernels_for_hopper(simulate: Simulate) -> None:
    """Ranking waits for nothing that it writes: no atomic operation gives back what was there."""
    programs = simulate(SELECTED["nested"], tables(ORDERED[GAPS]))
    assert any(p.ranking is not None for p in programs)
    for program in programs:
        text = assembly_of(program)
        if program.ranking is not None:
            assert text.count("red.global.or.b64") >= 8
            assert "atom.global.or.b64" not in text


@pytest.mark.parametrize("keys", [[3, 1, 2], [1, 1, 2], [1, None, 2], [2, 1, None]])
def test_other_keys_are_not_ordered(keys: list[int | None], shown: set[str]) -> None:
    given = tables([]) | {"u": pa.table({"k": keys, "w": [1, 2, 3]})}
    assert_fused_joins(KINDS["left"], given)
    assert shown
    assert not any(s.startswith(("placed", "ranked")) for s in shown)


def test_ordered_keys_of_rows_that_come_several_times(shown: set[str]) -> None:
    """The build side of a semi join is a join that finds rows several times: a bit each."""
    query = "select count(*), sum(v) from t where k in (select u.k from u join x on u.w = x.k)"
    given = tables(ORDERED[GAPS]) | {"x": keyed("y", [1, 1, 2, 3, 3, 5, 6, 7, 7])}
    assert_fused_joins(query, given)
    assert not any(s.startswith("ranked") for s in shown)


def test_the_choice_of_a_form() -> None:
    """Large domains with gaps are ranked where enough rows are in; small ones are not; full ones are row numbers."""
    many = 10 * choose.CACHED_SLOTS
    assert ordered_form(Direct, many, many // 4, many // 4, True, CPU) is Ranks
    assert ordered_form(Direct, many, many // 4, many // 16, False, CPU) is Ranks
    assert ordered_form(Direct, many, many // 4, many // 64, False, CPU) is Direct
    assert ordered_form(Direct, 1000, 250, 250, True, CPU) is Direct
    assert ordered_form(Direct, 25, 25, 1, False, CPU) is Identity
    assert ordered_form(Bitmap, many, many, many, True, CPU) is Identity
    assert ordered_form(Bitmap, many, many, many, False, CPU) is Bitmap
    beyond = choose.MOST_SLOTS + 1  # which row numbers of 32 bits are not
    assert ordered_form(Bitmap, beyond, beyond, beyond, True, CPU) is Bitmap
    assert ordered_form(Buckets, 1 << 40, 1000, 1000, True, CPU) is Buckets


def encoded(values: list[Any], arrow: pa.DataType, data_type: DataType) -> EncodedColumn:
    made = encode(pa.array(values, arrow), data_type, 2)
    assert made is not None
    return made


@pytest.mark.parametrize(("values", "ascending"), [
    ([], False), ([7], True), ([None], False), ([1, 2, 3], True), ([1, 2, 2], False), ([2, 1], False),
    ([1, None, 3], False),
    ([-(2**63), 0, 2**63 - 1], True),
    (list(range(-5, 100_000 * 10, 10)), True),
    ([*range(70_000), 69_999], False),
    ([*range(32_768), 32_767, *range(32_769, 70_000)], False),
])  # fmt: skip
def test_whether_values_ascend(values: list[int | None], ascending: bool) -> None:
    assert with_order(encoded(values, pa.int64(), BIGINT), 2).ascending == ascending


def test_other_types_do_not_ascend() -> None:
    assert with_order(encoded([False, True], pa.bool_(), BOOLEAN)).ascending
    assert not with_order(encoded(["a", "b"], pa.string(), VARCHAR)).ascending
    assert not with_order(encoded([1.0, 2.0], pa.float64(), DOUBLE)).ascending
