"""Groups whose rows are not counted, since a sum of values above 0 says that there are any: DuckDB's answers, and simulated CUDA."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.compile_pipeline import Limits, stages
from fuseline.codegen.groups.accumulate import Accumulator, Finish, Folded
from fuseline.codegen.groups.conditions import condition_of
from fuseline.codegen.groups.grouping import FoldSink, Grouping, without_count
from fuseline.codegen.loop import Apply, Machine, Name, Number
from fuseline.codegen.program import Program
from fuseline.codegen.ranges import I64_MAX
from fuseline.plan.expr import new_column
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.types import BIGINT
from tests.codegen.bodies import Tables, call, grouped
from tests.codegen.fused import assert_fused
from tests.codegen.machine_code import assembly_of
from tests.codegen.simulated import Runs
from tests.codegen.test_conditions import marked
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

ROWS = 400


def _table(rows: int) -> pa.Table:
    made = np.random.default_rng(31)

    def decimals(low: int, high: int) -> pa.Array:
        digits = [low, *made.integers(low, high, rows, endpoint=True).tolist()][:rows]
        return pa.array([Decimal(n).scaleb(-2) for n in digits], pa.decimal128(15, 2))

    least_one = made.integers(1, 50, rows)
    return pa.table(
        {
            "k": made.integers(0, 90, rows) * 2,
            "far": made.integers(0, 90, rows) * 10**12,
            "u": np.arange(rows) % 60,
            "p": decimals(1, 5000),
            "price": decimals(90000, 10**7),
            "cut": decimals(0, 10),
            "one": least_one,
            "null_one": pa.array(least_one, mask=made.random(rows) < 0.4),
            "zero": decimals(0, 3),
            "below": np.append(-1, least_one)[:rows],
            "large": least_one + 2**60,
            "f": least_one * 0.5,
            "fine": made.random(rows) < 0.5,
        }
    )


UNIQUE = pa.table({"u": np.arange(50), "name": [f"n{i % 7}" for i in range(50)], "w": [3] * 50})
MORE = pa.table({"name": [f"n{i}" for i in range(6)], "title": [f"t{i}" for i in range(6)]})
TWICE = pa.table({"u": np.arange(80) % 40})
TABLES = {"t": _table(ROWS), "d": UNIQUE, "more": MORE, "twice": TWICE}

GONE = [
    "select k, sum(p) from t group by k",
    "select k, sum(p), sum(price * (1 - cut)), min(below), max(f), bool_or(fine) from t group by k",
    "select k, sum(zero), sum(one), sum(f) from t where fine group by k",
    "select k, sum(p), sum(null_one), min(null_one), count(null_one), avg(null_one) from t group by k",
    "select k, sum(p), sum(p) filter (where fine), count(*) filter (where not fine) from t group by k",
    "select k, count_if(fine), sum(p), bit_xor(below) from t group by k",
    "select k, sum(1), min(p) from t group by k",
    "select far, sum(one), min(zero) from t group by far",
    "select k, sum(one) from t where one > 100 group by k",
    "select k, sum(p) from t group by k having sum(p) > 100",
    "select k, min(below), sum(p) from t group by k having sum(p) between 10 and 1000 and min(below) < 5",
    "select far from t group by far having sum(p) > 100",
    "select d.u, name, sum(price * (1 - cut)) from t join d using (u) group by d.u, name",
    "select d.u, d.name, title, sum(p), min(w) from t join d using (u) join more using (name) group by all",
    "select fine, sum(p), count(distinct one) from t group by fine",
]
KEPT = [
    "select k, sum(p), count(*) from t group by k",
    "select k, sum(p), count(one) from t group by k",
    "select k, sum(p), avg(p) from t group by k",
    "select k, sum(p), var_pop(one) from t group by k",
    "select k, sum(p) from t group by k having count(*) > 3",
    "select k, sum(null_one) from t group by k",
    "select k, sum(coalesce(null_one, 0)) from t group by k",
    "select k, sum(zero) from t group by k",
    "select k, sum(below) from t group by k",
    "select k, sum(-p) from t group by k",
    "select k, sum(one - 1), sum(case when fine then one else 0 end) from t group by k",
    "select k, sum(p) filter (where fine) from t group by k",
    "select k, sum(large) from t group by k",
    "select k, sum(f), min(p) from t group by k",
    "select fine, sum(w) from t left join d using (u) group by fine",
    "select fine, sum(p) from t join twice using (u) group by fine",
]


def counts_rows(program: Program) -> bool:
    """Whether an accumulator counts all rows."""
    count = Accumulator("add", Machine.I64, Number(1, Machine.I64))
    return count in program.accumulators


def grouping(program: Program) -> Grouping:
    assert program.grouping is not None
    return program.grouping


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", GONE)
def test_a_positive_sum_says_which_groups_there_are(query: str, runs: Runs) -> None:
    assert_fused(query, TABLES)
    main = runs.programs[-1]
    assert not counts_rows(main)
    assert main.accumulators[grouping(main).rows].positive


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", KEPT)
def test_rows_are_counted_where_no_sum_says_it_or_their_number_matters(
    query: str, runs: Runs
) -> None:
    assert_fused(query, TABLES)
    assert counts_rows(runs.programs[-1])


@pytest.mark.by_day
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("query", GONE)
def test_few_rows(query: str, rows: int) -> None:
    assert_same_as_duckdb(query, TABLES | {"t": _table(rows)}, fuse=("always",))


def test_build_sides_without_rows() -> None:
    for query in (q for q in GONE if "join" in q):
        assert_same_as_duckdb(query, TABLES | {"d": UNIQUE.slice(0, 0)}, fuse=("always",))


@pytest.mark.by_day
@pytest.mark.parametrize("order", ["ascending", "random"])
@pytest.mark.parametrize("domain", [50, 100_000, 100_000_000])
def test_ranges_of_rows_are_merged(domain: int, order: str, limits: SetLimits) -> None:
    limits(ROWS_A_RANGE=1000, hash_groups__SLOTS=64)
    keys = np.random.default_rng(4).integers(0, domain, 5000)
    keys = np.sort(keys) if order == "ascending" else keys
    table = pa.table({"k": keys, "v": keys % 7 + 1, "w": keys % 3})
    query = "select k, sum(w), sum(v), min(w) from t group by k"
    assert_fused(query, {"t": table})
    assert_fused(f"{query} having sum(v) > 6", {"t": table})


def test_extremes_of_what_is_added() -> None:
    """Sums that end at the largest integers, and one beyond that."""
    for value, rows in ((2**63 - 1, 1), (2**62 - 1, 2), (2**62, 2), (2**31, 3), (1, 3)):
        table = pa.table({"k": [5] * rows, "v": [value] * rows})
        assert_fused("select k, sum(v) from t group by k", {"t": table})


def aggregate(rows: int) -> Program:
    """The kernel of a sum by a key, over so many rows."""
    tables = Tables()
    below = tables.scan("t", rows, k=(0, 99), v=(1, 9))
    made = grouped(below, "k", "v")
    return stages(
        steps_of(replace(made, aggregates=made.aggregates[:1])), tables, Limits(1 << 14)
    ).main


@pytest.mark.parametrize(("name", "least"), [("gt", 300), ("lt", 40), ("ge", 0)])
def test_a_condition_on_the_sum_reads_nothing_else(name: str, least: int) -> None:
    """Slots without a group stay none, though what they begin with may fulfil it."""
    program = aggregate(1000)
    condition = condition_of(call(name, program.folded[0].column, least), program)
    assert condition.accumulators == (grouping(program).rows,)
    assert len(program.accumulators) == 1
    sums = np.arange(100) * 7
    compare = {"gt": np.greater, "lt": np.less, "ge": np.greater_equal}[name]
    expected = np.flatnonzero(compare(sums, least) & (sums > 0)).tolist()
    assert marked(condition, program, [sums], 1) == expected


@pytest.mark.parametrize("limits", [Limits(1 << 14), Limits(8, I64_MAX), Limits(8, 0, 1 << 30)])
def test_kernels_compile_for_a_gpu(limits: Limits) -> None:
    """Groups in shared memory, hashed ones, and many in device memory whose sums take 32 bits."""
    tables = Tables()
    below = tables.scan("t", 1000, k=(0, 1 << 21 if limits.group_limit == 8 else 99), v=(1, 9))
    made = grouped(below, "k", "v")
    program = stages(steps_of(replace(made, aggregates=made.aggregates[:1])), tables, limits).main
    assert not counts_rows(program)
    assembly_of(program)


def test_groups_that_may_have_too_many_rows_for_their_sums_are_counted() -> None:
    few, many = aggregate(2**31 - 1), aggregate(2**31)
    assert (counts_rows(few), few.counted) == (False, None)
    assert (counts_rows(many), many.counted) == (True, grouping(many).rows)


def _sink(*items: Accumulator, rows_of: tuple[tuple[int, int], ...] = ()) -> FoldSink:
    """A count, then these; the last is read by a sum."""
    count = Accumulator("add", Machine.I64, Number(1, Machine.I64), positive=True)
    numbers: Any = (len(items), 0)
    folded = Folded(new_column("total", BIGINT), numbers, lambda held: held[0])
    return FoldSink(
        Grouping((), Name("slot", Machine.I32), 10, 0, rows_of=rows_of), (count, *items), (folded,)
    )


def _sum(name: str, positive: bool, magnitude: int | None = None) -> Accumulator:
    term = Name(name, Machine.I64)
    return Accumulator("add", Machine.I64, term, None, magnitude, positive)


def test_accumulators_are_numbered_anew() -> None:
    put = Accumulator("put", Machine.I64, Name("row", Machine.I64))
    items = (put, _sum("x", True, 100), _sum("y", True, 9), _sum("z", False, 1))
    made = without_count(_sink(*items, rows_of=((2, 1),)))
    assert made.accumulators == items
    assert (made.grouping.rows, made.grouping.rows_of) == (2, ((2, 0),))  # y, of the least values
    assert made.folded[0].accumulators == (3, 2)


def test_the_count_stays_for_itself_and_under_conditions() -> None:
    for items in (
        (),
        (_sum("x", False),),
        (replace(_sum("x", True), condition=Name("c", Machine.BOOL)),),
    ):
        sink = _sink(*items)
        assert without_count(sink) is sink


def test_what_calls_read() -> None:
    """A mean divides by the count; others only look whether it is above 0."""
    column = new_column("made", BIGINT)

    def reads(*accumulators: int, finish: Finish = lambda held: held[0], **details: Any) -> bool:
        return Folded(column, accumulators, finish, **details).reads(0)

    assert reads(0, 1)
    assert reads(0, 0)
    assert not reads(1, 0)
    assert reads(1, 0, finish=lambda held: Apply("/", (held[0], held[1]), Machine.F64))
    assert not reads(0, distinct=0)
    assert not reads(1, 2)
