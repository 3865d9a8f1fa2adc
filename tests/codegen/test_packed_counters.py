"""Counts of many groups that share words while a CUDA kernel runs: exact, or found to have outgrown their bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.cuda import packed_counters
from fuseline.codegen.cuda.accumulator_layout import Place, layout
from fuseline.codegen.cuda.packed_counters import count_bits, counts, packed_words
from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.groups.grouping import Grouping
from fuseline.codegen.handwritten import group_kernels as kernels
from fuseline.codegen.indexes.layers import Direct
from fuseline.codegen.loop import Apply, Machine, Number, Select
from fuseline.codegen.program import WHOLE_COUNT, Program
from tests.codegen import simulator
from tests.codegen.index_programs import AMOUNT, FACT_KEY, code, codes, index, main_program
from tests.codegen.machine_code import assembly_of
from tests.codegen.test_group_kernels import run
from tests.limits import SetLimits

GROUPS = 131  # the last word has room for more
ONE, NONE = Number(1, Machine.I64), Number(0, Machine.I64)
HIGH = Apply(">=", (code(AMOUNT), Number(100, Machine.I32)), Machine.BOOL)
RANDOM = np.random.default_rng(11)
KEYS: dict[str, Any] = {
    "no two neighbours alike": np.arange(700) * 7 % GROUPS,
    "all in one group": np.full(255, 2), "runs": np.arange(900) // 11, "at random": RANDOM.integers(0, GROUPS, 500),
    "the last group": np.full(33, GROUPS - 1), "one row": np.array([7]), "no rows": np.array([], np.int64),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(limits: SetLimits) -> None:
    """Tables of any size are in device memory, and of many groups."""
    limits(cuda__BLOCK_THREADS=64, PRIVATE_BYTES=0, TABLE_BYTES=0, SHORT_GROUPS=1)


def program(bits: int) -> Program:
    """Counts of rows and of high amounts, in two ways, beside a sum, by a key."""
    accumulators = (
        Accumulator("add", Machine.I64, Select(HIGH, ONE, NONE, Machine.I64)),
        Accumulator("add", Machine.I64, Number(3, Machine.I64), magnitude=3),
        Accumulator("add", Machine.I64, ONE),
        Accumulator("add", Machine.I64, ONE, HIGH),
    )
    made = main_program("inner", index(Direct, linked=False), accumulators=accumulators)
    return replace(
        made,
        body=(),
        elements=(),
        buffers=(),
        grouping=Grouping((), code(FACT_KEY), GROUPS, 2),
        count_bits=bits,
    )


def counted(keys: Any, bits: int) -> tuple[list[Any], bool]:
    """Run the program over keys and amounts; it returns counts, and whether any may be wrong."""
    amounts = np.where(np.arange(len(keys)) % 3, 100, 0)
    columns = [*codes(keys.tolist(), FACT_KEY), *codes(amounts.tolist(), AMOUNT)]
    return simulator.run(program(bits), columns, len(keys))


@pytest.mark.parametrize("bits", [8, 16, WHOLE_COUNT])
@pytest.mark.parametrize("keys", KEYS)
def test_counts_are_exact(keys: str, bits: int) -> None:
    given = KEYS[keys]
    (chosen, threes, rows, high), lost = counted(given, bits)
    assert not lost
    expected = np.bincount(given, minlength=GROUPS)
    few = np.bincount(given[np.arange(len(given)) % 3 > 0], minlength=GROUPS)
    assert rows.tolist() == expected.tolist()
    assert threes.tolist() == (3 * expected).tolist()
    assert chosen.tolist() == high.tolist() == few.tolist()


@pytest.mark.parametrize(
    ("rows", "lost"), [(255, False), (256, True), (257, True), (511, True), (512, True)]
)
@pytest.mark.parametrize("group", [0, 3, 64, GROUPS - 1])
def test_a_count_that_outgrows_its_bits_is_found_out(rows: int, lost: bool, group: int) -> None:
    """Whether it carries into a neighbour that has rows, out of its word, or into one that is no group."""
    keys = np.concatenate([np.full(rows, group), np.arange(GROUPS - 1)])
    keys = keys[1:] if group < GROUPS - 1 else keys
    assert counted(keys, 8)[1] == lost
    (*_, high), never = counted(keys, 16)
    assert not never
    assert high.max() == high[group] > rows // 2


def packed_by(added: Any, bits: int) -> tuple[Any, int]:
    """The words after these rows have been added to each group, and how many rows that were."""
    words = np.zeros(packed_words(len(added), bits), np.int64)
    a_word = WHOLE_COUNT // bits
    for slot, rows in enumerate(added.tolist()):
        words[slot // a_word] += rows << slot % a_word * bits
    return words.astype(np.uint32).view(np.int32), int(added.sum())


def unpacked(words: Any, added: int, slots: int, bits: int) -> tuple[Any, int]:
    """What the kernel makes of words: counts, and what is lost."""
    found, lost = np.full(slots, -7, np.int32), np.array([added])
    given = {"slots": slots, "width": bits, "packed": words, "counts": found, "lost": lost}
    run(kernels.UNPACK, given)
    return found, int(lost[0])


def missing(added: Any, bits: int) -> int:
    """How many rows more were added than there are in all counts."""
    words, total = packed_by(added, bits)
    return total - int(words.view(f"u{bits // 8}")[: len(added)].sum(dtype=np.int64))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("slots", [1, 3, 4, 127, 129, 1000])
def test_unpacked_counts(slots: int, bits: int) -> None:
    added = RANDOM.integers(0, 1 << bits, slots)
    added[RANDOM.integers(0, slots)] = (1 << bits) - 1
    found, lost = unpacked(*packed_by(added, bits), slots, bits)
    assert found.tolist() == added.tolist()
    assert lost == 0
    added *= RANDOM.integers(1, 4, slots)
    assert unpacked(*packed_by(added, bits), slots, bits)[1] == missing(added, bits)


@pytest.mark.parametrize(("bits", "most"), [(8, 255), (16, 65535)])
@pytest.mark.parametrize("beyond", [1, 2, 256, 65536, 10**6])
def test_nothing_makes_up_for_a_carry(bits: int, most: int, beyond: int) -> None:
    """One count, every other one, or all of them: each carry takes away at least `most`."""
    for slots in (1, 2, 4, 5, 131):
        for chosen in ([0], [slots - 1], range(0, slots, 2), range(slots)):
            added = np.full(slots, most)
            added[list(chosen)] += beyond
            assert missing(added, bits) >= most


def test_random_counts_are_exact_or_some_are_missing() -> None:
    for _ in range(500):
        added = RANDOM.integers(0, RANDOM.choice([200, 258, 300, 2000]), RANDOM.integers(1, 40))
        assert (missing(added, 8) == 0) == (added.max() < 256)


def with_rows(rows: int, slots: int) -> Program:
    made = program(WHOLE_COUNT)
    first, *others = made.relations
    assert made.grouping is not None
    grouping = replace(made.grouping, groups=slots)
    return replace(made, relations=(replace(first, rows=rows), *others), grouping=grouping)


def test_bits_are_chosen_by_the_rows_of_a_group() -> None:
    slots = packed_counters.CACHED_BYTES // 4 + 1
    for rows, bits in ((2 * slots, 8), (31 * slots, 8), (32 * slots, 16), (9000 * slots, 32)):
        assert count_bits(with_rows(rows, slots), slots, 0) == bits
        assert count_bits(with_rows(rows, slots), slots, 16) == max(bits, 16)
        assert count_bits(with_rows(rows, slots), slots, 32) == WHOLE_COUNT
    assert count_bits(with_rows(10 * slots, slots), slots / 4, 0) == 16
    assert count_bits(with_rows(10 * slots, slots), 0.0, 0) == WHOLE_COUNT
    assert count_bits(with_rows(10 * slots, slots), 100.0 * slots, 0) == 8


def test_what_shares_no_words() -> None:
    """Tables that the cache holds or few rows reach, those that are no plain arrays, and groups of any number of rows."""
    slots = packed_counters.CACHED_BYTES // 4 + 1
    made = with_rows(10 * slots, slots)
    assert made.grouping is not None
    few = with_rows(2 * slots - 1, slots)
    cached = with_rows(10 * slots, slots - 1)
    hashed = replace(made, grouping=replace(made.grouping, hashed=True))
    by_row = replace(made, grouping=replace(made.grouping, row=1))
    alone = replace(made, grouping=None)
    for other in (few, cached, hashed, by_row, alone, replace(made, repeats=True)):
        assert count_bits(other, slots, 0) == WHOLE_COUNT


def test_what_counts() -> None:
    chosen = [counts(a) for a in program(8).accumulators]
    assert chosen == [True, False, True, True]
    assert not counts(Accumulator("max", Machine.I64, ONE))
    assert not counts(Accumulator("add", Machine.I64, code(AMOUNT)))


def test_packed_cells_come_first_among_those_of_32_bits() -> None:
    where = layout(program(8))
    assert where.place is Place.GLOBAL
    assert [c.outs[0] for c in where.packed] == [0, 1, 2]
    assert [c.numbers for c in where.packed] == [(0,), (2,), (3,)]
    assert not layout(program(WHOLE_COUNT)).packed


@pytest.mark.parametrize("bits", [8, 16])
def test_kernels_compile_for_a_gpu(bits: int) -> None:
    assembly_of(program(bits))
