"""CUDA kernels, simulated: their accumulators end with the same values as those of the CPU's kernels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cuda.accumulator_layout import Place, layout
from fuseline.errors import OutOfRange
from tests.codegen import simulator
from tests.codegen.simulated import Run, ran, recorded_runs
from tests.codegen.test_pipelines import FUSED, TABLES
from tests.limits import SetLimits


@pytest.fixture(autouse=True)
def small_blocks(limits: SetLimits) -> None:
    """Blocks of two warps, so that a test has hundreds of Python threads and not thousands."""
    limits(cuda__BLOCK_THREADS=64, PRIVATE_THREADS=64)


def simulate(runs: list[Run]) -> set[Place]:
    """Repeat a query's runs in the simulator; return where the accumulators were."""
    for run in runs:
        simulator.assert_accumulators(*run)
    return {layout(program).place for program, *_ in runs}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", FUSED)
def test_a_kernel_folds_as_the_cpu_does(query: str) -> None:
    simulate(ran(query, {"t": TABLES["t"].slice(0, 301)}))


@pytest.mark.by_day(2)
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 15, 16, 17, 64 * 16 * 2])
def test_the_rows_after_the_last_word(rows: int) -> None:
    values = np.arange(rows)
    table = pa.table({"v": values % 100, "w": pa.array(values % 7, mask=values % 3 == 0)})
    simulate(ran("select count(*), sum(v), sum(w), max(w) from t where v < 90", {"t": table}))


@pytest.mark.parametrize(("groups", "place"), [
    (3, Place.PRIVATE), (500, Place.BLOCK), (1500, Place.BLOCK), (40_000, Place.GLOBAL), (10**12, Place.GLOBAL),
])  # fmt: skip
def test_groups_in_each_place(groups: int, place: Place) -> None:
    random = np.random.default_rng(groups)
    keys = np.concatenate([random.integers(0, groups, 200), [0, groups - 1]])
    table = pa.table(
        {"k": keys, "v": random.integers(-(10**6), 10**6, 202), "f": random.random(202)}
    )
    query = "select k, count(*), sum(v), min(v), max(v), sum(f), bit_xor(v) from t where v > -900000 group by k"
    assert simulate(ran(query, {"t": table})) == {place}


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
def test_a_sum_beyond_64_bits_is_one_cell_until_it_ends(keys: str) -> None:
    """A column's bounds and the number of rows leave no proof, though no block's own sum passes 64 bits."""
    from fuseline.codegen.groups import accumulate

    table = pa.table({"k": np.arange(200) % 3, "v": np.arange(200) * 10**9 - 10**10})
    query = f"select sum(v), avg(v), count(*) from t{keys}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accumulate, "sum_fits_i64", lambda interval, rows: False)
        runs = ran(query, {"t": table})
        simulate(runs)
    for program, *_ in runs:
        cells = layout(program).cells
        assert [c.numbers for c in cells if len(c.numbers) > 1]
        assert len(cells) == len(program.accumulators) - 1


def test_a_value_beyond_its_type_has_no_group() -> None:
    """Its number would lie outside of the accumulators; the kernel doubts and folds nothing more."""
    table = pa.table({"v": pa.array([127, *range(40)], pa.int8())})
    with recorded_runs() as runs, pytest.raises(OutOfRange):
        ran("select v + 1::tinyint as k, count(*) from t group by k", {"t": table})
    program, columns, rows, outcome = runs[-1]
    assert outcome.doubt
    assert simulator.run(program, columns, rows)[1]
