"""CUDA kernels whose surviving rows wait in queues: they give what a join in Python gives, or the kernels of the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cuda import emit_cuda
from fuseline.codegen.cuda.accumulator_layout import layout
from fuseline.codegen.indexes.choose import SIEVE_BITS
from fuseline.codegen.indexes.layers import Buckets, Direct, Index
from fuseline.codegen.loop import (
    Apply,
    Convert,
    Doubt,
    Guard,
    Let,
    Lookup,
    Number,
    Statement,
)
from fuseline.codegen.program import Program
from fuseline.codegen.typed_values import TableParameter
from tests.codegen import simulator
from tests.codegen.index_programs import (
    AMOUNT,
    BOOL,
    BUILD_KEY,
    FACT_KEY,
    I32,
    KEYS,
    PRICE,
    Data,
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
from tests.limits import SetLimits

DIRECT = index(Direct, linked=False)


@pytest.fixture(autouse=True)
def small_blocks(limits: SetLimits) -> None:
    """Blocks of two warps, and queues whatever the share of rows that survive."""
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64, MOST_CHOSEN=1.0)


def run(program: Program, given: Data, made: Index = DIRECT, blocks: int = 2) -> tuple[Any, bool]:
    """Fill the index and run a program, both simulated."""
    memory = simulator.memory(made.buffers)
    keys = codes(given.build_key, BUILD_KEY)
    simulator.run(build_program(made), keys, len(given.build_key), memory=memory)
    facts = zip((given.fact_key, given.amount), program.inputs, strict=True)
    columns = [part for values, source in facts for part in codes(values, source)]
    columns += codes(given.price, PRICE) if program.elements else []
    rows = len(given.fact_key)
    if program.rows_out:
        lists, count = simulator.list_rows(program, columns, rows, 10 * rows + 1, memory)
        return sorted(zip(*([int(r) for r in a[:count]] for a in lists), strict=True)), False
    arrays, doubt = simulator.run(program, columns, rows, blocks, memory)
    return [int(a[0]) for a in arrays], doubt


@pytest.mark.parametrize(
    ("rows", "blocks"), [(0, 1), (1, 1), (3, 2), (127, 1), (129, 2), (512, 1), (1101, 2)]
)
def test_a_number_of_rows(rows: int, blocks: int) -> None:
    """Fewer than a warp has lanes, words and warps that are not full, and several turns of the loop."""
    given, program = data(rows, rows), main_program("inner", DIRECT)
    assert layout(program).cut is not None
    found, _ = run(program, given, blocks=blocks)
    assert found == expected_sums("inner", given, expected("inner", given, False))


@pytest.mark.parametrize("keys", [[None], [KEYS - 1], [3]])
def test_no_row_survives_or_all_do(keys: list[int | None]) -> None:
    given = replace(data(1, 331), fact_key=keys * 331, build_key=[3, None, 4], price=[7, 8, None])
    found, _ = run(main_program("inner", DIRECT), given)
    assert found == expected_sums("inner", given, expected("inner", given, False))
    assert found[0] == (331 if keys == [3] else 0)


@pytest.mark.parametrize("made", [DIRECT, index(Buckets, False), index(Buckets, True)])
@pytest.mark.parametrize("rows_out", [(0,), (0, 1)])
def test_rows_that_come_out(made: Index, rows_out: tuple[int, ...]) -> None:
    """A program that begins with a loop over rows of one key has no cut."""
    given = data(3, 301, repeated=made.linked)
    program = main_program("inner", made, rows_out=rows_out)
    assert (layout(program).cut is None) == made.linked
    pairs = expected("inner", given, False)
    found, _ = run(program, given, made)
    assert found == sorted(tuple(pair[: len(rows_out)]) for pair in pairs)


def with_statements(program: Program, *statements: Statement) -> Program:
    """Put statements before the probe."""
    number, *others = program.body
    return replace(program, body=(number, *statements, *others))


def below(limit: int) -> Apply:
    return Apply("<", (code(AMOUNT), Number(limit, I32)), BOOL)


def test_a_doubt_counts_for_rows_that_are_in() -> None:
    """Codes behind the last row are not in, nor are rows that a filter has dropped."""
    given, program = data(4, 203), main_program("inner", DIRECT)
    amounts = [a + 50 for a in given.amount]
    for limit, doubt in ((max(amounts) + 1, False), (max(amounts), True)):
        doubtful = Doubt(Apply(">=", (code(AMOUNT), Number(limit, I32)), BOOL))
        assert run(with_statements(program, doubtful), given)[1] == doubt
        assert not run(with_statements(program, Guard(below(limit)), doubtful), given)[1]
        late = replace(program, body=(*program.body, doubtful))
        pairs = expected("inner", given, False)
        assert run(late, given)[1] == any(amounts[row] >= limit for row, _ in pairs)


def test_no_table_is_read_behind_the_last_row() -> None:
    given, program = data(5, 203), main_program("inner", DIRECT)
    table = TableParameter("table0", BOOL, np.arange(KEYS) % 3 == 0)
    program = replace(program, tables=(table,))
    looked_up = Guard(Lookup("table0", code(FACT_KEY), BOOL))
    found, _ = run(with_statements(program, looked_up), given)
    pairs = [p for p in expected("inner", given, False) if given.fact_key[p[0]] % 3 == 0]  # type: ignore[operator]
    assert found == expected_sums("inner", given, pairs)


def test_no_index_is_read_behind_the_last_row() -> None:
    given, program = data(7, 203), main_program("inner", DIRECT)
    given = replace(given, fact_key=[KEYS - 1 if k is None else k for k in given.fact_key])
    number, *others = program.body
    assert isinstance(number, Let)
    number = replace(number, value=Convert(code(FACT_KEY), number.name.type))
    inputs = (replace(FACT_KEY, nullable=False), AMOUNT)
    found, _ = run(replace(program, body=(number, *others), inputs=inputs), given)
    assert found == expected_sums("inner", given, expected("inner", given, False))


@pytest.mark.parametrize("sieved", [False, True])
def test_row_numbers_behind_bits_are_read_for_survivors(sieved: bool) -> None:
    made = index(Direct, False, guarded=True, sieve_bits=SIEVE_BITS * sieved)
    given, program = data(8, 203), main_program("inner", made)
    cut = layout(program).cut
    assert cut is not None
    assert "find_guarded" not in emit_cuda.source(program, "a plan")
    found, _ = run(program, given, made)
    assert found == expected_sums("inner", given, expected("inner", given, False))


def test_buckets_behind_a_sieve_are_looked_into_for_survivors() -> None:
    made = index(Buckets, False, sieve_bits=SIEVE_BITS)
    given, program = data(9, 203), main_program("inner", made)
    source = emit_cuda.source(program, "a plan")
    assert source.index("in_sieve") < source.index("ballot") < source.index("find_hashed(build1")
    assert "pass_sieve" not in source
    found, _ = run(program, given, made)
    assert found == expected_sums("inner", given, expected("inner", given, False))


def test_filters_that_leave_few_rows_are_the_cut() -> None:
    """Then not even the first probe is made for all rows, and its key is loaded row by row."""
    given, program = data(6, 301), main_program("inner", DIRECT)
    filtered = replace(program, body=(Guard(below(60), share=0.01), *program.body))
    cut = layout(filtered).cut
    assert cut is not None
    assert cut.words == (AMOUNT,)
    kinds = dict(emit_cuda.signature(filtered))
    assert kinds["fact_key"] == "*uint8"
    found, _ = run(filtered, given)
    pairs = [p for p in expected("inner", given, False) if given.amount[p[0]] < 10]
    assert found == expected_sums("inner", given, pairs)


def test_most_rows_survive_without_a_queue(
    monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    monkeypatch.undo()
    program = main_program("inner", DIRECT)
    *before, there, price, known = program.body
    assert isinstance(there, Guard)

    def with_share(share: float | None) -> Program:
        return replace(program, body=(*before, replace(there, share=share), price, known))

    assert layout(with_share(0.9)).cut is None
    assert layout(with_share(0.4)).cut is not None
    assert layout(with_share(None)).cut is not None
    limits(QUEUES=False)
    assert layout(with_share(0.4)).cut is None
    assert "ballot" not in emit_cuda.source(with_share(0.4), "a plan")


RANDOM = np.random.default_rng(11)
ROWS = 300


def nullable(values: Sequence[Any], share: float) -> pa.Array:
    return pa.array(values, mask=RANDOM.random(len(values)) < share)


TABLES = {
    "t": pa.table(
        {
            "k": nullable(RANDOM.integers(0, 150, ROWS), 0.1),
            "g": RANDOM.integers(0, 9, ROWS),
            "v": RANDOM.integers(-300, 300, ROWS),
            "w": nullable(RANDOM.integers(0, 90, ROWS), 0.3),
            "s": nullable(RANDOM.choice(["a", "b", "c", "d"], ROWS), 0.2),
            "f": nullable(RANDOM.random(ROWS), 0.2),
        }
    ),
    "u": pa.table({"k": RANDOM.permutation(150)[:60], "b": RANDOM.integers(0, 20, 60)}),
    "x": pa.table({"b": RANDOM.integers(0, 12, 40), "y": RANDOM.integers(0, 90, 40)}),
    "z": pa.table({"b": np.arange(5, 15), "q": np.arange(10) * 3}),
}
QUERIES = [
    "select u.b, sum(v), sum(w), max(f) from t join u on t.k = u.k group by u.b",
    "select s, sum(v), min(q) from t join u on t.k = u.k join z on u.b = z.b where s in ('a', 'c') and g < 7 group by s",
    "select sum(v), min(y), count(w) from t join u on t.k = u.k join x on u.b = x.b where v > -200",
    "select g, count(*) from t join u on t.k = u.k where exists (select 1 from x where x.b = u.b and y > w) group by g",
    "select g * 1000000000000 + v, u.b, sum(f) from t join u on t.k = u.k group by 1, 2",
    "select v, w, b, s from t join u on t.k = u.k where s is not null",
    "select sum(v * g) from t join u on t.k = u.k and v < b * 20 where v in (select b from z) or g > 4",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query(query: str, simulate: Simulate) -> None:
    """All its kernels, of which at least one has a queue."""
    made = simulate(query, TABLES)
    assert any(layout(program).cut is not None for program in made)
