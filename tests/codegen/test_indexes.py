"""Kernels that fill indexes and probe them: on the CPU and as simulated CUDA they give what a join in Python gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.cpu import host_functions, host_indexes, host_kernels
from fuseline.codegen.cuda import accumulator_layout
from fuseline.codegen.cuda.emit_fold import register
from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.groups.grouping import Grouping
from fuseline.codegen.indexes.choose import SIEVE_BITS
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Direct, Index, Layer
from fuseline.codegen.loop import Apply, Convert, Machine, Name, Number
from fuseline.codegen.program import Program
from tests.codegen import simulator
from tests.codegen.index_programs import (
    AMOUNT,
    BUILD_KEY,
    FACT_KEY,
    I32,
    I64,
    PRICE,
    ROW_1,
    Data,
    amount,
    build_program,
    codes,
    data,
    expected,
    expected_sums,
    filter_program,
    index,
    main_program,
    sums,
)
from tests.limits import SetLimits

FORMS = [(Direct, False), (Direct, True), (Buckets, False), (Buckets, True)]
JOINS = [(kind, form, linked) for kind in ("inner", "left") for form, linked in FORMS]
JOINS += [(k, f, linked) for k in ("semi", "anti") for f, linked in [(Bitmap, False), *FORMS]]
JOINS_BEHIND = [
    (kind, index(form, False, guarded=form is Direct, sieve_bits=SIEVE_BITS * sieved))
    for kind in ("inner", "left", "semi", "anti")
    for form in (Direct, Bitmap, Buckets)
    for sieved in (False, True)
    if (form is Direct or sieved) and (form is not Bitmap or kind in ("semi", "anti"))
]


def filled(given: Data, made: Index, directory: Path, threads: int = 1) -> dict[str, Any]:
    """The index, filled on the CPU."""
    program = build_program(made)
    kernel, _ = host_functions.compiled(program, lambda: "a plan", directory)
    memory: dict[str, Any] = {}
    columns = codes(given.build_key, BUILD_KEY)
    rows = len(given.build_key)
    assert not host_indexes.build(kernel, program, columns, rows, memory, threads)
    return memory


def fact_columns(given: Data, program: Program) -> list[Any]:
    columns = [*codes(given.fact_key, FACT_KEY), *codes(given.amount, AMOUNT)]
    return [*columns, *codes(given.price, PRICE)] if program.elements else columns


def run(
    given: Data, program: Program, memory: dict[str, Any], directory: Path
) -> host_kernels.Outcome:
    kernel, _ = host_functions.compiled(program, lambda: "a plan", directory)
    columns = fact_columns(given, program)
    return host_kernels.run(kernel, program, columns, len(given.fact_key), 1, memory=memory)


@pytest.fixture
def small_blocks(limits: SetLimits) -> None:
    """Blocks of two warps, so that a test has hundreds of Python threads and not thousands."""
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("kind", "form", "linked"), JOINS)
def test_a_join_on_the_cpu(kind: str, form: type[Layer], linked: bool, tmp_path: Path) -> None:
    given, made = data(1, repeated=linked), index(form, linked)
    memory = filled(given, made, tmp_path)
    outcome = run(given, main_program(kind, made), memory, tmp_path)
    pairs = expected(kind, given, residual=form is not Bitmap)
    assert [int(a[0]) for a in outcome.arrays] == expected_sums(kind, given, pairs)


@pytest.mark.parametrize(("kind", "form", "linked"), JOINS)
@pytest.mark.usefixtures("small_blocks")
def test_a_join_on_cuda(kind: str, form: type[Layer], linked: bool) -> None:
    given, made = data(2, rows=301, repeated=linked), index(form, linked)
    memory = simulator.memory(made.buffers)
    built, _ = simulator.run(
        build_program(made), codes(given.build_key, BUILD_KEY), 100, memory=memory
    )
    known = [k for k in given.build_key if k is not None]
    repeats = len(known) - len(set(known)) if form is Direct else 0
    assert [int(a[0]) for a in built] == [len(known), 100 - len(known), repeats]
    program = main_program(kind, made)
    arrays, _ = simulator.run(program, fact_columns(given, program), 301, memory=memory)
    pairs = expected(kind, given, residual=form is not Bitmap)
    assert [int(a[0]) for a in arrays] == expected_sums(kind, given, pairs)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("kind", "made"), JOINS_BEHIND)
def test_a_join_behind_bits_on_the_cpu(
    kind: str, made: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row numbers that are not filled may be anything."""
    monkeypatch.setattr(host_indexes, "_allocated", lambda b: simulator.memory([b])[b.name])
    given = data(11)
    memory = filled(given, made, tmp_path)
    outcome = run(given, main_program(kind, made), memory, tmp_path)
    pairs = expected(kind, given, residual=made.form is not Bitmap)
    assert [int(a[0]) for a in outcome.arrays] == expected_sums(kind, given, pairs)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(("kind", "made"), JOINS_BEHIND)
@pytest.mark.usefixtures("small_blocks")
def test_a_join_behind_bits_on_cuda(kind: str, made: Index) -> None:
    given, memory = data(12, rows=301), simulator.memory(made.buffers)
    built, _ = simulator.run(
        build_program(made), codes(given.build_key, BUILD_KEY), 100, memory=memory
    )
    known = sum(k is not None for k in given.build_key)
    assert [int(a[0]) for a in built] == [known, 100 - known, 0]
    program = main_program(kind, made)
    arrays, _ = simulator.run(program, fact_columns(given, program), 301, memory=memory)
    pairs = expected(kind, given, residual=made.form is not Bitmap)
    assert [int(a[0]) for a in arrays] == expected_sums(kind, given, pairs)


@pytest.mark.parametrize("cuda", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_a_build_behind_bits_sees_repeated_keys(cuda: bool, tmp_path: Path) -> None:
    given, made = data(13, repeated=True), index(Direct, False, guarded=True, sieve_bits=SIEVE_BITS)
    if cuda:
        columns, memory = codes(given.build_key, BUILD_KEY), simulator.memory(made.buffers)
        arrays, _ = simulator.run(build_program(made), columns, 100, memory=memory)
        state = np.concatenate(arrays)
    else:
        state = filled(given, made, tmp_path)["build1_state"]
    known = [k for k in given.build_key if k is not None]
    assert state.tolist() == [len(known), 100 - len(known), len(known) - len(set(known))]


@pytest.mark.parametrize("form", [Direct, Buckets])
@pytest.mark.parametrize("repeated", [False, True])
def test_a_build_sees_repeated_keys(form: type[Layer], repeated: bool, tmp_path: Path) -> None:
    given, made = data(3, repeated=repeated), index(form, linked=False)
    rows, nulls, repeats = filled(given, made, tmp_path)["build1_state"]
    known = [k for k in given.build_key if k is not None]
    assert (rows, nulls) == (len(known), 100 - len(known))
    assert (repeats > 0) == repeated
    if form is Direct:
        assert repeats == len(known) - len(set(known))


@pytest.mark.parametrize(("form", "linked"), [(Bitmap, False), *FORMS])
def test_threads_fill_one_index(
    form: type[Layer], linked: bool, tmp_path: Path, limits: SetLimits
) -> None:
    limits(ROWS_A_RANGE=1000)
    given, made = data(4, rows=200, repeated=linked), index(form, linked, 100_000)
    many = Data(given.fact_key, given.amount, given.build_key * 1000, given.price * 1000)
    one, four = (filled(many, made, tmp_path, threads) for threads in (1, 4))
    state = one["build1_state"]
    assert state.tolist() == four["build1_state"].tolist()
    if form is Bitmap:
        assert one["build1_members"].tolist() == four["build1_members"].tolist()
    elif linked:
        program = main_program("inner", made)
        sums_of = [run(many, program, memory, tmp_path).arrays for memory in (one, four)]
        assert [a.tolist() for a in sums_of[0]] == [a.tolist() for a in sums_of[1]]


@pytest.mark.parametrize("linked", [False, True])
def test_rows_out_on_the_cpu(linked: bool, tmp_path: Path, limits: SetLimits) -> None:
    """Where rows become more than there is room for, a range runs again."""
    limits(host_kernels__ROOM=1)
    given, made = data(5, repeated=linked), index(Direct, linked)
    program = main_program("left", made, rows_out=(0, 1))
    kernel, _ = host_functions.compiled(program, lambda: "a plan", tmp_path)
    memory = filled(given, made, tmp_path)
    columns, ranges = fact_columns(given, program), host_kernels.ranges_of(1000, 2)
    found = host_kernels.list_rows(kernel, program, columns, ranges, memory)
    assert found is not None
    assert pairs_of(found) == sorted(no_row(expected("left", given, False)))


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_rows_out_on_cuda(linked: bool, tmp_path: Path) -> None:
    """The counter says how many rows there are, also those without room."""
    given, made = data(6, rows=299, repeated=linked), index(Buckets, linked)
    program = main_program("inner", made, rows_out=(0, 1))
    memory = filled(given, made, tmp_path)
    pairs = sorted(no_row(expected("inner", given, False)))
    for capacity in (len(pairs) - 5, len(pairs)):
        columns = fact_columns(given, program)
        found, count = simulator.list_rows(program, columns, 299, capacity, memory)
        assert count == len(pairs)
        assert len(set(pairs_of(found)) & set(pairs)) == capacity
    assert pairs_of(found) == pairs


@pytest.mark.parametrize("rows", [0, 1, 31, 64 * 16 + 5])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_rows_of_a_chain_on_cuda(rows: int, wide: bool) -> None:
    """Without joins, the rows of a whole word take their places together."""
    source = AMOUNT if wide else FACT_KEY
    given = data(10, rows)
    program = filter_program(source)
    values = given.amount if wide else given.fact_key
    kept = [(r,) for r, v in enumerate(values) if v is not None and v - source.base < 75]
    found, count = simulator.list_rows(program, codes(values, source), rows, rows, {})
    assert count == len(kept)
    assert pairs_of([found[0][:count]]) == kept


def pairs_of(found: list[Any]) -> list[tuple[int, int]]:
    return sorted(zip(*(array.tolist() for array in found), strict=True))


def no_row(pairs: list[tuple[int, int | None]]) -> list[tuple[int, int]]:
    return [(f, -1 if b is None else b) for f, b in pairs]


def by_amount(hashed: bool) -> Grouping:
    """Groups of one amount each, numbered far apart."""
    far = Apply("*", (Convert(Name("amount_code", I32), I64), Number(2**40, I64)), I64)
    return Grouping((), far, 2**50, 0, hashed=hashed)


def grouped(given: Data, pairs: list[tuple[int, int | None]], key: Any) -> dict[int, list[int]]:
    groups: dict[int, list[tuple[int, int | None]]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return {k: expected_sums("inner", given, members) for k, members in groups.items()}


def test_hashed_groups_on_the_cpu(tmp_path: Path, limits: SetLimits) -> None:
    """A table that fills up amid the rows of one row starts again."""
    limits(hash_groups__SLOTS=4)
    given, made = data(7, repeated=True), index(Direct, linked=True)
    program = main_program("inner", made, by_amount(hashed=True))
    outcome = run(given, program, filled(given, made, tmp_path), tmp_path)
    found = {
        int(n) >> 40: [int(a[i]) for a in outcome.arrays] for i, n in enumerate(outcome.numbers)
    }
    pairs = expected("inner", given, False)
    assert found == grouped(given, pairs, lambda pair: given.amount[pair[0]] + 50)


@pytest.mark.usefixtures("small_blocks")
def test_hashed_groups_on_cuda(tmp_path: Path) -> None:
    """A table without room says so; its answer is void."""
    given, made = data(8, rows=203, repeated=True), index(Direct, linked=True)
    program = main_program("inner", made, by_amount(hashed=True))
    memory = filled(given, made, tmp_path)
    pairs = expected("inner", given, False)
    groups = grouped(given, pairs, lambda pair: given.amount[pair[0]] + 50)
    for slots, full in ((8, True), (512, False)):
        tables = {"keys": np.full(slots, -1), "state": np.zeros(1, np.int64)}
        columns = fact_columns(given, program)
        arrays, _ = simulator.run(program, columns, 203, 1, memory | tables, slots)
        assert bool(tables["state"][0]) == full
    used = np.flatnonzero(tables["keys"] != -1)
    assert {int(tables["keys"][u]) >> 40: [int(a[u]) for a in arrays] for u in used} == groups


def by_build_row() -> tuple[Grouping, tuple[Accumulator, ...]]:
    """Groups by the row of the build side; the last accumulator keeps that row's number."""
    put = Accumulator("put", I64, Convert(ROW_1, I64))
    return Grouping((), ROW_1, 100, 0, row=1), (*sums("inner"), put)


@pytest.mark.parametrize("cuda", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_groups_by_a_build_row(cuda: bool, tmp_path: Path) -> None:
    given, made = data(9, rows=301), index(Direct, linked=False)
    grouping, accumulators = by_build_row()
    program = main_program("inner", made, grouping, accumulators=accumulators)
    memory = filled(given, made, tmp_path)
    if cuda:
        arrays, _ = simulator.run(program, fact_columns(given, program), 301, 2, memory, 100)
    else:
        arrays = run(given, program, memory, tmp_path).arrays
    *folds, rows = ([int(v) for v in a] for a in arrays)
    pairs = expected("inner", given, False)
    groups = grouped(given, pairs, lambda pair: pair[1])
    assert {r: [f[r] for f in folds] for r in range(100) if folds[0][r]} == groups
    assert [r for r in rows if r >= 0] == sorted(groups)


@pytest.mark.usefixtures("small_blocks")
def test_repeated_rows_have_no_32_bit_sums() -> None:
    """One row may become so many that no thread's count fits."""
    program = main_program("inner", index(Direct, linked=True))
    where = accumulator_layout.layout(program)
    adding = [c for c in where.cells if c.accumulator.fold == "add"]
    assert {register(c, where)[0] for c in adding} == {Machine.I64}
    assert amount().type is I64
