"""CUDA kernels that gather rows of one group, or bits of one word, before they change device memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cuda import accumulator_layout, emit_cuda
from fuseline.codegen.cuda.accumulator_layout import Place, layout
from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.groups.grouping import Grouping
from fuseline.codegen.indexes.layers import Bitmap, Direct
from fuseline.codegen.loop import Apply, Convert, Guard, Machine, Number
from fuseline.codegen.program import Program, SharedMemory
from fuseline.errors import OutOfRange
from tests.codegen import simulator
from tests.codegen.index_programs import (
    AMOUNT,
    BUILD_KEY,
    FACT_KEY,
    KEYS,
    build_program,
    code,
    codes,
    index,
    main_program,
)
from tests.codegen.machine_code import assembly_of
from tests.codegen.simulated import ran, recorded_runs
from tests.compare import connected
from tests.limits import SetLimits

ROWS = 203  # words of 8 or 4 rows, and some after the last
FOLDS = (
    "select k, count(*), count(v), sum(v), min(v), max(v), bit_or(v), bit_and(v), bit_xor(v), sum(f), min(f), "
    "sum(v) filter (where f > 0.5), max(w), min(w) filter (where v is null), avg(w) from t"
)
RANDOM = np.random.default_rng(7)
NARROW = (
    "select k, count(*), count(v), sum(v), min(v), max(v) filter (where v < 0), bit_xor(v) from t"
)
KEYS_OF: dict[str, Any] = {
    "no two neighbours alike": np.arange(ROWS) * 7 % 50,
    "all equal": np.full(ROWS, 3),
    "alternating": np.arange(ROWS) % 2,
    "runs within words": np.arange(ROWS) // 3,
    "runs across words": np.arange(ROWS) // 11,
    "runs that come again": np.arange(ROWS) // 5 % 3,
    "at random": RANDOM.integers(0, 4, ROWS),
}


@pytest.fixture
def atomics(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> list[str]:
    """The names of the atomic operations that simulated kernels did, of small blocks whose groups are in device memory."""
    done: list[str] = []
    made = simulator.Cuda._atomic

    def counted(cuda: Any, fold: Callable[..., Any]) -> Callable[..., Any]:
        change = made(cuda, fold)
        name = next(n for n, f in simulator.FOLDS.items() if f is fold)

        def change_and_count(*arguments: Any) -> Any:
            done.append(name)
            return change(*arguments)

        return change_and_count

    monkeypatch.setattr(simulator.Cuda, "_atomic", counted)
    limits(cuda__BLOCK_THREADS=64, PRIVATE_BYTES=0, TABLE_BYTES=0)
    return done


def simulated(query: str, table: pa.Table) -> Program:
    """Simulate a query's kernel, whose accumulators must be those of the CPU's; return the program."""
    for made in ran(query, {"t": table}):
        assert layout(made[0]).place is Place.GLOBAL
        simulator.assert_accumulators(*made)
    return made[0]


def table(keys: Any) -> pa.Table:
    """Values that are NULL in many rows, in all rows of group 2, and everywhere (w, but for one row)."""
    rows = len(keys)
    values = RANDOM.integers(-(10**5), 10**5, rows)
    missing = (RANDOM.random(rows) < 0.4) | (keys == 2)
    return pa.table(
        {
            "k": pa.array(keys, mask=RANDOM.random(rows) < 0.05),
            "v": pa.array(values, mask=missing),
            "w": pa.array(values * 10**10, mask=np.arange(rows) != 5),
            "f": pa.array(RANDOM.integers(-8, 8, rows) / 4, mask=RANDOM.random(rows) < 0.3),
        }
    )


@pytest.mark.by_day
@pytest.mark.parametrize("keys", KEYS_OF)
@pytest.mark.parametrize(
    "query", [FOLDS, f"{FOLDS} where f > 1", f"{NARROW} where v > -90000 or v is null"]
)
def test_runs_of_groups(keys: str, query: str, atomics: list[str]) -> None:
    program = simulated(f"{query} group by k", table(KEYS_OF[keys]))
    assert emit_cuda.rows_a_thread(program) == (8 if query.startswith(NARROW) else 4)


@pytest.mark.parametrize("keys", ["alternating", "runs across words", "at random"])
def test_runs_of_hashed_groups(keys: str, atomics: list[str]) -> None:
    given = table(KEYS_OF[keys])
    far = [None if k is None else k * 10**12 for k in given["k"].to_pylist()]
    last = max(i for i, k in enumerate(far) if k is not None)
    far[last] += 1  # so that they have no step but 1
    program = simulated(f"{FOLDS} where f > -1 group by k", given.set_column(0, "k", pa.array(far)))
    assert program.grouping is not None
    assert program.grouping.hashed


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 64])
def test_rows_of_some_words(rows: int, atomics: list[str]) -> None:
    keys = np.arange(rows) // 3
    if rows:
        simulated("select k, count(*), max(v) from t group by k", table(keys))
    else:
        empty = pa.table({"k": pa.array([], pa.int64())})
        assert not [a for a in ran("select k, count(*) from t group by k", {"t": empty}) if a[2]]


def test_a_run_is_one_atomic_operation_for_each_accumulator(atomics: list[str]) -> None:
    keys = np.repeat(np.arange(10), 16)
    program = simulated(
        "select k, count(*), sum(v) from t group by k", pa.table({"k": keys, "v": keys})
    )
    words = len(keys) // emit_cuda.rows_a_thread(program)
    assert len(atomics) == words * len(program.accumulators) < len(keys)


def test_a_run_without_values_is_blank(atomics: list[str]) -> None:
    """A register of 32 bits becomes the identity of 64 bits, not its own."""
    given = pa.table(
        {"k": np.arange(40) // 8, "v": pa.array(np.arange(40), mask=np.arange(40) < 17)}
    )
    simulated("select k, min(v), max(v), sum(v) from t group by k", given)


def test_extremes_of_runs(atomics: list[str]) -> None:
    """Sums that 32 bits hold in one row but not in a run of them."""
    for value in (2**31 - 1, -(2**31), 2**28, 2**40):
        given = pa.table({"k": np.arange(64) // 8, "v": np.full(64, value)})
        simulated("select k, sum(v), min(v), max(v) from t group by k", given)


def test_a_value_beyond_its_type_ends_no_run(atomics: list[str]) -> None:
    given = pa.table({"v": pa.array([*[5] * 7, 127, *range(40)], pa.int8())})
    with recorded_runs() as kept, connected({"t": given}, fuse="always") as connection:
        query = connection.sql("select v + 1::tinyint as k, count(*) from t group by k")
        with pytest.raises(OutOfRange):
            query.to_arrow()
    program, columns, rows, *_ = kept[-1]
    assert layout(program).place is Place.GLOBAL
    assert simulator.run(program, columns, rows)[1]


BUILD_KEYS: dict[str, list[int | None]] = {
    "ascending": [i // 2 for i in range(299)],
    "all equal": [40] * 100,
    "alternating words": [(i % 2) * 100 for i in range(77)],
    "at random": RANDOM.integers(0, KEYS, 120).tolist(),
    "with holes": [None if i % 3 == 1 else i // 3 for i in range(150)],
    "no keys": [None] * 20,
    "one row": [149],
}


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("keys", BUILD_KEYS)
def test_runs_of_bits(keys: str, guarded: bool, atomics: list[str]) -> None:
    """Bits alone, and before row numbers, where keys that were there before count."""
    given = BUILD_KEYS[keys]
    form = Direct if guarded else Bitmap
    program = build_program(index(form, linked=False, rows=len(given), guarded=guarded))
    assert program.index is not None
    memory = simulator.memory(program.index.buffers)
    found, doubt = simulator.run(program, codes(given, BUILD_KEY), len(given), memory=memory)
    bits = np.unpackbits(memory["build1_members"].view(np.uint8), bitorder="little")
    there = {k for k in given if k is not None}
    assert set(np.flatnonzero(bits).tolist()) == there
    count = len(given) - given.count(None)
    repeated = count - len(there) if guarded else 0
    assert [int(a[0]) for a in found] == [count, given.count(None), repeated]
    assert not doubt
    if guarded:
        assert all(given[memory["build1_heads"][k]] == k for k in there)


def test_bits_of_one_word_are_set_together(atomics: list[str]) -> None:
    given = list(range(64)) * 2
    program = build_program(index(Bitmap, linked=False, rows=len(given)))
    assert program.index is not None
    memory = simulator.memory(program.index.buffers)
    simulator.run(program, codes(given, BUILD_KEY), len(given), 1, memory=memory)
    assert 8 <= atomics.count("or_") <= 16


@pytest.mark.parametrize(
    ("groups", "share", "place", "bytes_at_most"),
    [
        (5, None, Place.PRIVATE, accumulator_layout.PRIVATE_BYTES),
        (5, 0.2, Place.PRIVATE, accumulator_layout.PRIVATE_BYTES),
        (5, 0.12, Place.BLOCK, accumulator_layout.FEW_COPIES_BYTES),
        (175, 0.1, Place.BLOCK, accumulator_layout.FEW_COPIES_BYTES),
        (1500, None, Place.BLOCK, accumulator_layout.TABLE_BYTES),
        (2000, 0.1, Place.BLOCK, accumulator_layout.TABLE_BYTES),
        (2000, 0.001, Place.GLOBAL, 0),
        (100_000, 0.001, Place.GLOBAL, 0),
    ],
)
def test_few_rows_that_arrive_leave_room_for_threads(
    groups: int, share: float | None, place: Place, bytes_at_most: int
) -> None:
    """A program of a filter, whose share of rows the planner estimates, and of a count and a sum for each group."""
    made = guarded_program(groups, share)
    where = layout(made)
    assert where.place is place
    assert where.cell_bytes <= bytes_at_most
    if place is Place.BLOCK:
        assert where.threads == accumulator_layout.BLOCK_THREADS
        assert where.copies <= accumulator_layout.WARP
    repeated = layout(replace(made, repeats=True))
    assert repeated.place is layout(replace(guarded_program(groups, None), repeats=True)).place


@pytest.mark.parametrize(("groups", "place"), [(2700, Place.BLOCK), (4000, Place.GLOBAL)])
def test_less_shared_memory_holds_smaller_tables(groups: int, place: Place) -> None:
    small = SharedMemory(64 * 1024, 64 * 1024, 1024)
    made = guarded_program(groups, None)
    where = layout(replace(made, shared_memory=small))
    assert where.place is place
    assert where.shared_bytes <= small.block
    assert layout(made).place is Place.BLOCK


@pytest.mark.parametrize("share", [None, 0.1, 0.001])
@pytest.mark.parametrize("groups", [5, 150, 1700])
def test_the_share_of_rows_changes_no_result(
    groups: int, share: float | None, limits: SetLimits
) -> None:
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64)
    keys, amounts = RANDOM.integers(0, min(groups, 150), 300), RANDOM.integers(-50, 950, 300)
    columns = [*codes(keys.tolist(), FACT_KEY), *codes(amounts.tolist(), AMOUNT)]
    (counts, sums), _ = simulator.run(guarded_program(groups, share), columns, 300)
    for key in range(groups):
        taken = amounts[(keys == key) & (amounts < 500)]
        assert (counts[key], sums[key]) == (len(taken), taken.sum())


@pytest.mark.parametrize("keys", ["runs across words", "at random"])
def test_counts_of_many_groups_take_32_bits(
    keys: str, atomics: list[str], limits: SetLimits
) -> None:
    limits(SHORT_GROUPS=1)
    program = simulated(f"{NARROW} where v < 90000 group by k", table(KEYS_OF[keys]))
    shorts = [c.accumulator for c in layout(program).cells if c.short]
    assert len(shorts) >= 3
    assert {a.fold for a in shorts} == {"add"}
    assert ("out_n", "[int32]") in emit_cuda.signature(program)


def test_what_32_bits_may_not_hold_takes_64() -> None:
    """By the largest value times the rows; one row may come any number of times where `repeats`."""
    groups, most = accumulator_layout.SHORT_GROUPS + 1, (2**31 - 1) // 1000

    def shorts(program: Program) -> list[bool]:
        cells = sorted(layout(program).cells, key=lambda c: c.numbers)
        return [c.short for c in cells]

    made = guarded_program(groups, None)
    for rows, expected in (
        (most, [True, True]),
        (most + 1, [True, False]),
        (2**31 - 1, [False, False]),
    ):
        first, *others = made.relations
        assert shorts(replace(made, relations=(replace(first, rows=rows), *others))) == expected
    assert shorts(replace(made, repeats=True)) == [False, False]
    assert shorts(guarded_program(accumulator_layout.SHORT_GROUPS, None)) == [False, False]


def guarded_program(groups: int, share: float | None) -> Program:
    """Count and sum of the amounts below 500, by a key."""
    low = Apply("<", (code(AMOUNT), Number(550, Machine.I32)), Machine.BOOL)
    amount = Apply("+", (Convert(code(AMOUNT), Machine.I64), Number(-50, Machine.I64)), Machine.I64)
    accumulators = (
        Accumulator("add", Machine.I64, Number(1, Machine.I64)),
        Accumulator("add", Machine.I64, amount, magnitude=1000),
    )
    return replace(
        main_program("inner", index(Direct, linked=False), accumulators=accumulators),
        body=(Guard(low, "", share),),
        elements=(),
        buffers=(),
        grouping=Grouping((), code(FACT_KEY), groups, 0),
    )


@pytest.mark.by_day(2)
@pytest.mark.parametrize("group", ["k", "k * 1000000000000"])
def test_a_kernel_with_runs_keeps_to_registers(group: str, atomics: list[str]) -> None:
    query = f"{FOLDS} group by {group}".replace("select k", f"select {group}")
    made, *_ = ran(query, {"t": table(KEYS_OF["at random"])})
    assembly_of(made[0])
