"""CUDA kernels that copy a sieve, or bits, into shared memory: they give what a join in Python gives, or the kernels of the CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.cuda import emit_cuda, warp_split
from fuseline.codegen.cuda.accumulator_layout import Place, layout
from fuseline.codegen.cuda.warp_split import Near
from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.groups.grouping import Grouping
from fuseline.codegen.indexes import choose
from fuseline.codegen.indexes.choose import SIEVE_BITS, sieve_bits
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Buffer, Direct, Identity, Index
from fuseline.codegen.loop import Apply, Guard, Let, Machine, Number, Probe
from fuseline.codegen.program import HOPPER, Program, SharedMemory
from tests.codegen import simulator
from tests.codegen.index_programs import (
    AMOUNT,
    BUILD_KEY,
    I32,
    I64,
    KEYS,
    Data,
    amount,
    build_program,
    code,
    codes,
    data,
    expected,
    expected_sums,
    index,
    main_program,
)
from tests.codegen.simulated import Simulate
from tests.codegen.test_warp_queue import TABLES
from tests.limits import SetLimits

ADA = SharedMemory(99 * 1024, 100 * 1024, 1536)
TURING = SharedMemory(64 * 1024, 64 * 1024, 1024)

BITS, SIEVED_BITS = index(Bitmap, False), index(Bitmap, False, sieve_bits=SIEVE_BITS)
BEHIND = index(Direct, False, guarded=True)
SIEVED_BEHIND = index(Direct, False, guarded=True, sieve_bits=SIEVE_BITS)


@pytest.fixture
def small(limits: SetLimits) -> None:
    """Copies for any number of rows, in blocks of four warps where others have two, and queues for any share."""
    limits(
        warp_split__LEAST_ROWS=0,
        LEAST_RESIDENT=0,
        warp_split__THREADS=(128,),
        cuda__BLOCK_THREADS=64,
        PRIVATE_THREADS=64,
        MOST_CHOSEN=1.0,
    )


def bits_of(made: Index) -> Buffer:
    """The bits that are asked first."""
    (bits,) = made.layers[0].buffers
    return bits


def run(program: Program, given: Data, made: Index, everything: bool = False) -> list[Any]:
    """Fill the index and run a program, both simulated; `everything`: the sieve lets all numbers through."""
    memory = simulator.memory(made.buffers)
    keys = codes(given.build_key, BUILD_KEY)
    simulator.run(build_program(made), keys, len(given.build_key), memory=memory)
    if everything:
        memory[bits_of(made).name][:] = 2**32 - 1
    facts = zip((given.fact_key, given.amount), program.inputs, strict=True)
    columns = [part for values, source in facts for part in codes(values, source)]
    columns += codes(given.price, program.elements[0].input) if program.elements else []
    arrays, doubt = simulator.run(program, columns, len(given.fact_key), 2, memory)
    assert not doubt
    return arrays


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("kind", "made"), [
    ("semi", BITS), ("anti", BITS), ("semi", SIEVED_BITS), ("anti", SIEVED_BITS), ("inner", BEHIND),
    ("inner", SIEVED_BEHIND),
])  # fmt: skip
@pytest.mark.usefixtures("small")
def test_a_join(
    kind: str, made: Index, alone: bool, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    limits(ENOUGH_THREADS=0 if alone else 1 << 30)
    # Statements that make the cut worth it where only bits are asked
    monkeypatch.setattr(warp_split, "_is_long", lambda *_: True)
    given, program = data(21, 301), main_program(kind, made)
    held = layout(program).near
    assert held is not None
    copy = bits_of(made)
    assert held.buffer == copy
    text = emit_cuda.source(program, "a plan")
    asked = [line for line in text.splitlines() if "alive0 &" in line or "row1 =" in line]
    assert f"({copy.name}_near, " in "".join(asked)
    assert f"({copy.name}, " not in text
    assert ("in_sieve" in text) == (alone and made.sieved and kind != "anti")
    wanted = expected_sums(kind, given, expected(kind, given, False))
    assert [int(a[0]) for a in run(program, given, made)] == wanted
    if made.sieved:
        assert [int(a[0]) for a in run(program, given, made, everything=True)] == wanted


@pytest.mark.parametrize("rows", [0, 1, 127, 1025])
@pytest.mark.usefixtures("small")
def test_numbers_of_rows(rows: int) -> None:
    given, program = data(22, rows), main_program("inner", SIEVED_BEHIND)
    assert layout(program).near is not None
    found = [int(a[0]) for a in run(program, given, SIEVED_BEHIND)]
    assert found == expected_sums("inner", given, expected("inner", given, False))


@pytest.mark.parametrize("key", [None, 7])
@pytest.mark.usefixtures("small")
def test_all_keys_alike(key: int | None) -> None:
    given = replace(data(23, 203), fact_key=[key] * 203)
    given = replace(given, build_key=[7, *(None for _ in given.build_key[1:])])
    found = [int(a[0]) for a in run(main_program("inner", SIEVED_BEHIND), given, SIEVED_BEHIND)]
    assert found == expected_sums("inner", given, expected("inner", given, False))
    assert found[0] == (0 if key is None else 203)


@pytest.mark.usefixtures("small")
def test_keys_that_are_row_numbers(limits: SetLimits) -> None:
    """Behind the sieve only bits say which are in."""
    limits(ENOUGH_THREADS=0)
    made = index(Direct, False, rows=KEYS, guarded=True, sieve_bits=SIEVE_BITS)
    program = main_program("inner", made)
    key, (let, *others) = program.body[0], program.body[1:]
    assert isinstance(let, Let)
    assert isinstance(let.value, Probe)
    *before, _ = made.layers
    found = replace(let.value, layers=(*before, Identity(made)))
    program = replace(program, body=(key, replace(let, value=found), *others))
    given = data(25, 301, build_rows=KEYS)
    given = replace(given, build_key=[None if k % 3 else k for k in range(KEYS)])
    assert "row1 = cuda.selp(in_sieve(" in emit_cuda.source(program, "a plan")
    wanted = expected_sums("inner", given, expected("inner", given, False))
    for everything in (False, True):
        assert [int(a[0]) for a in run(program, given, made, everything)] == wanted


def grouped() -> Program:
    """A count and two sums by eight groups, for few rows, so that blocks share cells."""
    slot = Apply("&", (code(AMOUNT), Number(7, I32)), I32)
    grouping = Grouping((), slot, 8, 0)
    sums = (
        Accumulator("add", I64, Number(1, I64)),
        Accumulator("add", I64, amount(), magnitude=100),
        Accumulator("add", I64, Apply("*", (amount(), Number(3, I64)), I64), magnitude=2**38),
    )
    program = main_program("inner", SIEVED_BEHIND, grouping, accumulators=sums)
    few = [replace(s, share=0.05) if isinstance(s, Guard) else s for s in program.body]
    return replace(program, body=tuple(few))


@pytest.mark.usefixtures("small")
def test_cells_lie_behind_the_copy() -> None:
    given, program = data(24, 301), grouped()
    where = layout(program)
    assert (where.place, where.near is not None) == (Place.BLOCK, True)
    wide = 8 * where.groups * where.copies
    assert where.start(Machine.I64) * 8 == where.near_bytes == where.start(Machine.I32) * 4 - wide
    pairs = expected("inner", given, False)
    wanted = np.zeros((2, 8), np.int64)
    for row, _ in pairs:
        value = given.amount[row]
        wanted[:, (value + 50) & 7] += (1, value)
    found = run(program, given, SIEVED_BEHIND)
    np.testing.assert_array_equal(found, [*wanted, 3 * wanted[1]])


def test_cells_hold_what_all_rows_of_larger_blocks_give(limits: SetLimits) -> None:
    program = grouped()
    plain = {cell.numbers: cell.machine for cell in layout(program).cells}
    limits(warp_split__LEAST_ROWS=0, warp_split__THREADS=(1024,))
    larger = layout(replace(program))
    large = {cell.numbers: cell.machine for cell in larger.cells}
    assert larger.threads == 1024
    assert [m[(1,)] for m in (plain, large)] == [Machine.I32, Machine.I64]
    assert [m[(0,)] for m in (plain, large)] == [Machine.I32, Machine.I32]


QUERIES = [
    "select g * 1000000000000 + v, u.b, sum(f) from t join u on t.k = u.k group by 1, 2",
    "select sum(v), min(y), count(w) from t join u on t.k = u.k join x on u.b = x.b where v > -200",
    "select v, w, b, s from t join u on t.k = u.k where s is not null",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("small")
def test_a_query(query: str, simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its kernels, those that fill indexes as well."""
    for name, bound in {"CACHED_SLOTS": 0, "BITS_A_SIEVE_BIT": 1e-12, "FEW_FOUND": 2.0}.items():
        monkeypatch.setattr(choose, name, bound)
    made = simulate(query, TABLES)
    assert any(layout(program).near is not None for program in made)


def test_small_tables_and_other_kernels_copy_nothing(limits: SetLimits) -> None:
    program = main_program("inner", SIEVED_BEHIND)

    def with_rows(rows: int) -> Program:
        first, *others = program.relations
        return replace(program, relations=(replace(first, rows=rows), *others))

    assert layout(with_rows(warp_split.LEAST_ROWS - 1)).near is None
    held = layout(with_rows(warp_split.LEAST_ROWS)).near
    assert held is not None
    assert "LAUNCH_BOUNDS = (512, 3)" in emit_cuda.source(with_rows(1 << 24), "a plan")
    assert "LAUNCH_BOUNDS" not in emit_cuda.source(program, "a plan")
    # Bits that no sieve is before, and are too many
    limits(warp_split__MOST_BYTES=0)
    assert layout(replace(with_rows(1 << 24), buffers=SIEVED_BEHIND.buffers)).near is not None
    behind = replace(main_program("inner", BEHIND), relations=with_rows(1 << 24).relations)
    assert layout(behind).near is None
    limits(warp_split__MOST_BYTES=32)
    assert layout(replace(behind)).near is not None
    limits(LEAST_RESIDENT=1 << 20)
    assert layout(with_rows(1 << 24)).near is None


@pytest.mark.parametrize(
    ("memory", "bits", "cells", "waiting", "threads", "blocks"),
    [
        (HOPPER, 1 << 18, 0, 40, 512, 4),
        (HOPPER, 1 << 19, 0, 40, 1024, 2),
        (HOPPER, 1 << 20, 0, 40, 1024, 1),
        (HOPPER, 1 << 20, 4096, 80, 1024, 1),
        (HOPPER, 1 << 18, 0, 60, 512, 3),
        (HOPPER, 1 << 20, 64 * 1024, 80, None, None),
        (ADA, 1 << 18, 0, 40, 1024, 1),
        (ADA, 1 << 20, 0, 40, None, None),
        (TURING, 1 << 19, 0, 40, None, None),
    ],
)
def test_threads_of_a_block(
    memory: SharedMemory,
    bits: int,
    cells: int,
    waiting: int,
    threads: int | None,
    blocks: int | None,
) -> None:
    """As many resident as shared memory allows, in blocks as small as that allows."""
    made = index(Bitmap, False, sieve_bits=bits)
    program = main_program("semi", made)
    first, *others = program.relations
    relations = (replace(first, rows=warp_split.LEAST_ROWS), *others)
    program = replace(program, relations=relations, shared_memory=memory)
    choosing: Any = program.body
    cut = warp_split.Cut(choosing, program.body, (), (), I32)
    held = warp_split.near(program, cut, cells, waiting)
    wanted = None if threads is None or blocks is None else Near(bits_of(made), threads, blocks)
    assert held == wanted


def test_bits_of_a_sieve() -> None:
    """Eight for each row that is expected, in steps; none where bits are few, keys many or most probes find one."""
    slots, found = 20_000_000, 0.01
    sizes = {
        rows: sieve_bits(Direct, slots, rows, found) for rows in (0, 1, 32768, 32769, 65537, 131072)
    }
    assert list(sizes.values()) == [1 << 18, 1 << 18, 1 << 18, 1 << 19, 1 << 20, 1 << 20]
    assert sieve_bits(Direct, slots, 131073, found) == 0
    assert sieve_bits(Direct, (1 << 20) - 1, 1, found) == 0
    assert sieve_bits(Direct, 1 << 20, 1, found) == 1 << 18
    assert sieve_bits(Direct, 1 << 20, 40_000, found) == 0
    assert sieve_bits(Direct, slots, 1, 0.6) == 0


def test_bits_of_a_sieve_before_buckets() -> None:
    """Where looking into buckets leaves the cache, and as long as the sieve itself does not."""
    sizes = {rows: sieve_bits(Buckets, 64, rows, 0.01) for rows in (4095, 4096, 1 << 24)}
    assert list(sizes.values()) == [0, 1 << 18, 1 << 27]
    assert sieve_bits(Buckets, 64, (1 << 24) + 1, 0.01) == 0
    assert sieve_bits(Buckets, 64, 4096, 0.6) == 0
