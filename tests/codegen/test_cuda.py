"""CUDA kernels, simulated: their accumulators end with the same values as those of the CPU's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu import host_kernels
from fuseline.codegen.cuda.accumulator_layout import Place, layout
from fuseline.codegen.program import Program
from fuseline.errors import OutOfRange
from tests.codegen import simulator
from tests.codegen.test_pipelines import FUSED, TABLES
from tests.compare import connected
from tests.limits import SetLimits

Runs = list[tuple[Program, list[Any], int, host_kernels.Outcome]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> Runs:
    """Every run of a CPU kernel: program, columns, rows and outcome."""
    kept: Runs = []
    original = host_kernels.run

    def run(kernel: Any, program: Program, columns: Any, rows: int, *rest: Any, **more: Any) -> Any:
        outcome = original(kernel, program, columns, rows, *rest, **more)
        kept.append((program, list(columns), rows, outcome))
        return outcome

    monkeypatch.setattr(host_kernels, "run", run)
    # Blocks of two warps, so that a test has hundreds of Python threads and not thousands
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64)
    return kept


def simulate(query: str, tables: Mapping[str, Any], runs: Runs) -> set[Place]:
    """Run a query on the CPU and its kernels in the simulator; return where the accumulators were."""
    with connected(tables, fuse="always") as connection:
        connection.sql(query).to_arrow()
    assert runs, "no kernel ran"
    found = set()
    for program, columns, rows, outcome in runs:
        simulator.assert_accumulators(program, columns, rows, outcome)
        found.add(layout(program).place)
    return found


@pytest.mark.parametrize("query", FUSED)
def test_a_kernel_folds_as_the_cpu_does(query: str, runs: Runs) -> None:
    simulate(query, {"t": TABLES["t"].slice(0, 301)}, runs)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 15, 16, 17, 64 * 16 * 2])
def test_the_rows_after_the_last_word(rows: int, runs: Runs) -> None:
    values = np.arange(rows)
    table = pa.table({"v": values % 100, "w": pa.array(values % 7, mask=values % 3 == 0)})
    simulate("select count(*), sum(v), sum(w), max(w) from t where v < 90", {"t": table}, runs)


@pytest.mark.parametrize(
    ("groups", "place"),
    [
        (3, Place.PRIVATE),
        (500, Place.BLOCK),
        (1500, Place.BLOCK),
        (40_000, Place.GLOBAL),
        (10**12, Place.GLOBAL),
    ],
)
def test_groups_in_each_place(groups: int, place: Place, runs: Runs) -> None:
    random = np.random.default_rng(groups)
    keys = np.concatenate([random.integers(0, groups, 200), [0, groups - 1]])
    table = pa.table(
        {"k": keys, "v": random.integers(-(10**6), 10**6, 202), "f": random.random(202)}
    )
    query = "select k, count(*), sum(v), min(v), max(v), sum(f), bit_xor(v) from t where v > -900000 group by k"
    assert simulate(query, {"t": table}, runs) == {place}


def test_small_values_take_32_bits() -> None:
    from fuseline.codegen.cuda.accumulator_layout import ROWS_A_THREAD, cell_machine
    from fuseline.codegen.groups.accumulate import Accumulator
    from fuseline.codegen.loop import Machine, Name

    term = Name("v", Machine.I64)
    limit = (2**31 - 2) // ROWS_A_THREAD
    for magnitude, machine in ((limit, Machine.I32), (limit + 1, Machine.I64)):
        accumulator = Accumulator("add", Machine.I64, term, magnitude=magnitude)
        assert cell_machine(accumulator, ROWS_A_THREAD) is machine
    for magnitude, machine in ((2**31 - 2, Machine.I32), (2**31 - 1, Machine.I64)):
        accumulator = Accumulator("min", Machine.I64, term, magnitude=magnitude)
        assert cell_machine(accumulator, ROWS_A_THREAD) is machine


@pytest.mark.parametrize("keys", ["", " group by k"])
def test_a_sum_beyond_64_bits_is_one_cell_until_it_ends(keys: str, runs: Runs) -> None:
    """A column's bounds and the number of rows leave no proof, though no block's own sum passes 64 bits."""
    from fuseline.codegen.groups import accumulate

    table = pa.table({"k": np.arange(200) % 3, "v": np.arange(200) * 10**9 - 10**10})
    query = f"select sum(v), avg(v), count(*) from t{keys}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulate, "sum_fits_i64", lambda interval, rows: False)
        simulate(query, {"t": table}, runs)
    for program, *_ in runs:
        cells = layout(program).cells
        assert [c.numbers for c in cells if len(c.numbers) > 1]
        assert len(cells) == len(program.accumulators) - 1


def test_a_value_beyond_its_type_has_no_group(runs: Runs) -> None:
    """Its number would lie outside of the accumulators; the kernel doubts and folds nothing more."""
    table = pa.table({"v": pa.array([127, *range(40)], pa.int8())})
    with pytest.raises(OutOfRange):
        simulate("select v + 1::tinyint as k, count(*) from t group by k", {"t": table}, runs)
    program, columns, rows, outcome = runs[-1]
    assert outcome.doubt
    assert simulator.run(program, columns, rows)[1]
