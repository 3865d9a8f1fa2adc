"""Conditions on groups: DuckDB's answers, and the kernel that tests them in device memory, run here as simulated CUDA."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fuseline.codegen.cuda import emit_cuda, emit_groups
from fuseline.codegen.groups.conditions import Condition, condition_of
from fuseline.codegen.program import Program
from fuseline.codegen.typed_values import NotFusable
from fuseline.operators.cpu.pipeline import pipeline as cpu
from fuseline.plan.physical import FilterRows, Pipeline
from tests.codegen import simulator
from tests.codegen.fused import BOTH, assert_fused_joins, notes
from tests.codegen.machine_code import assembly
from tests.compare import assert_same_as_duckdb, connected

ROWS, KEYS, THREADS = 600, 200, 32


def _tables() -> dict[str, pa.Table]:
    made = np.random.default_rng(18)

    def cents(most: int, places: int) -> pa.Array:
        digits = made.integers(-most, most, ROWS).tolist()
        return pa.array([Decimal(n).scaleb(-places) for n in digits], pa.decimal128(18, places))

    facts = {
        "k": pa.array(made.integers(0, KEYS, ROWS) * 3 - 50, pa.int32()),
        "far": made.integers(0, KEYS, ROWS) * 10**10,
        "n": pa.array(made.integers(-20, 100, ROWS), pa.int32(), mask=made.random(ROWS) < 0.6),
        "price": cents(10**6, 2),
        "large": cents(10**18, 2),
        "f": pa.array(made.normal(size=ROWS), mask=made.random(ROWS) < 0.5),
        "fine": pa.array(made.random(ROWS) < 0.5, mask=made.random(ROWS) < 0.5),
        "day": pa.array(made.integers(0, 9000, ROWS), pa.int32()).view(pa.date32()),
        "s": made.choice(["ab", "cd", "ef"], ROWS),
    }
    return {"g": pa.table(facts), "u": pa.table({"k": np.arange(0, 300, 3), "name": ["x"] * 100})}


TABLES = _tables()
# All that conditions read, so that one kernel makes the groups of all queries
ALL = ", ".join(
    [
        *("count(*)", "count(n)", "count(*) filter (where n > 3)", "sum(n)", "sum(price)"),
        *("sum(f)", "avg(n)", "avg(price)", "avg(f)", "min(n)", "max(f)", "min(f)", "min(day)"),
        *("bool_or(fine)", "min(fine)", "sum(large)", "avg(large)"),
    ]
)
TESTED = [
    "min(n) % 7 = 1", "min(n) // 3 < -4 or count(*) % 3 = 0", "year(min(day)) % 2 = 0",
    "date_trunc('month', min(day)) < date '1975-05-07'",
    "sqrt(min(n) + 1000) > 31 or isnan(max(f))",
    "count(*) > 3", "count(n) = 0", "count(*) in (2, 5)", "count(*) filter (where n > 3) <> count(n)",
    "count(*) * 2 - 1 > count(n) + 3", "sum(n) > 100", "sum(n) is null", "not (sum(n) > 10)",
    "sum(n) is not distinct from null or sum(n) < 0",
    "sum(price) > 3000", "sum(price) > -1e9", "sum(price) > 1e9", "sum(price) between -10.5 and 999.99",
    "sum(price) * 2 > abs(sum(n)) + 3.5", "sum(f) > 0.5", "avg(n) >= 50 and sum(price) < 0", "avg(price) > 50.5",
    "avg(f) < 0", "min(n) < 10 or max(f) > 1", "min(f) > -0.5", "max(f) is null", "min(day) < date '1975-03-01'",
    "max(fine) or bool_and(fine)", "not min(fine)", "coalesce(sum(n), -1) < 0",
    "case when count(*) > 3 then sum(price) else sum(n) end > 30",
    "sum(large) > 10000000000000",
    "sum(large) < -10000000000000 or sum(large) = 0",
    "sum(large) <> -1 and sum(large) >= sum(price)",
    "not (sum(large) <= 1e25::decimal(38, 2))", "sum(large) > -1e35::decimal(38, 2)", "k + count(*) > 300",
    "k > 400 or sum(n) > 100",
    "case when k < 100 then count(*) else k end > 3",
    "null",
]  # fmt: skip
# The operator tests them once the groups are there
LATER = {
    "sum(large) + 1 > 10000000000000": "more than 64 bits",
    "avg(large) > 10000000000000": "more than 64 bits",
    "sum(n) > 9223372036854775807 - sum(n)": "64 bits",
    "cbrt(min(n) + 1000) > 1": "no form in registers",
}
# No pipeline holds them
APART = ["min(s) = 'ab'", "stddev_samp(n) > 30", "count(distinct n) > 1"]
# Over several keys, with NULLs among them; those of the last two have too many combinations for anything but a hash table
KEYED = {
    "k < 100 or fine or count(*) > 3": "k, fine",
    "n is null and count(*) > 30 or n > 90 or sum(price) > 10000": "s, n",
    "coalesce(n, 7) > 8 * count(*) or fine is null": "fine, n, s",
    "n is null and k > 3 or count(*) > 1": "n, k, day",
    "far > 1000000000000 and count(*) = 1 or day > date '1980-01-01'": "day, far",
}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("having", [*TESTED, *LATER, *APART])
def test_groups_that_stay_are_those_of_duckdb(having: str) -> None:
    shown = "sum(n)" if having in APART else ALL
    query = f"select k, {shown} from g group by k having {having}"
    assert_same_as_duckdb(query, TABLES, fuse=BOTH)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        "select far from g group by far having sum(n) > 50",
        "select far, k from g group by far, k having count(*) > 1",
        "select sum(n) from g having count(*) > 100",
        "select sum(n) from g having count(*) > 100000",
        "select k, sum(price) p from g group by k having count(*) > 2 order by p desc, k limit 7",
        "select k from g group by k having sum(price) > (select avg(price) from g where n > 5)",
        "select k from g group by k having count(*) > (select count(*) from g where n > 1000)",
        "select k, name, sum(n) from g join u using (k) group by k, name having sum(n) > 40",
        "select count(*) from u where k in (select k from g group by k having sum(price) > 2000)",
        "select s, sum(n) from g group by s having sum(n) > 1000 and s < 'e'",
        "select k from g where n > 1000 group by k having count(*) > 0",
    ],
)
def test_other_groups_and_what_reads_them(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=BOTH)
    assert all("kernel " in note for note in notes(query, TABLES))


@pytest.mark.parametrize(
    "scalar",
    [
        "select avg(v) * 2 from t",
        "select sum(s) / 4000 from (select sum(v) as s from t group by k)",  # of the same groups
        "select max(v) from t where k < 0",  # none
        "select max(n) from one",
        "select min(n) from one where n < 0",
    ],
)
def test_a_value_that_is_there_before_groups_are_tested(scalar: str) -> None:
    """Both pipelines are kernels, since there are many groups; the second reads them and the value."""
    values = np.arange(6000)
    tables = {"t": pa.table({"k": values % 2000, "v": values % 7}), "one": pa.table({"n": [9]})}
    assert_fused_joins(f"select k, sum(v) from t group by k having sum(v) > ({scalar})", tables)


def ran(query: str, monkeypatch: pytest.MonkeyPatch) -> tuple[FilterRows, Program, Any, pa.Table]:
    """A pipeline's body and program, its accumulators before the condition, and the groups that stay."""
    found: list[tuple[Program, Any]] = []
    passing = cpu.passing

    def keep(made: Program, outcome: Any, *rest: Any) -> Any:
        found.append((made, outcome))
        return passing(made, outcome, *rest)

    monkeypatch.setattr(cpu, "passing", keep)
    with connected({"g": TABLES["g"]}, fuse="always") as connection:
        frame = connection.sql(query)
        plan = connection.physical(frame.plan)
        groups = frame.to_arrow()
        profile = frame.profile
    assert isinstance(plan, Pipeline)
    (node,) = [n.node for n in profile.nodes]
    assert isinstance(node, Pipeline)
    assert isinstance(node.body, FilterRows)
    ((program, outcome),) = found
    assert program.grouping is not None
    return node.body, program, outcome, groups


def groups_of(
    having: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[FilterRows, Program, list[Any], list[int]]:
    """The same of groups by `k`, with all that conditions read, and the slots of those that stay."""
    query = f"select k, {ALL} from g group by k having {having}"
    body, program, outcome, groups = ran(query, monkeypatch)
    (key,) = program.grouping.keys  # type: ignore[union-attr]
    slots = sorted((k - key.low) // key.step for k in groups["k"].to_pylist())
    return body, program, outcome.arrays, slots


def marked(
    condition: Condition, program: Program, arrays: list[Any], least: int, numbers: Any = None
) -> list[int]:
    """The slots that the simulated kernel marks; `numbers` are those of a hash table's groups."""
    assert program.grouping is not None
    slots = len(arrays[0])
    words = -(-slots // (32 * emit_groups.LOADS)) * emit_groups.LOADS
    given: dict[str, Any] = {
        "slots": np.int64(slots),
        "flags": arrays[program.grouping.rows] if numbers is None else numbers,
        "least": np.int64(least),
        "bits": np.full(words, 77, np.int32),
    }
    given |= {f"all_a{n}": arrays[n] for n in condition.accumulators}
    given |= {p.name: getattr(np, p.machine.value)(p.value) for p in condition.parameters}
    cuda = simulator.Cuda(2, THREADS, 0)
    cuda.jit = lambda **options: lambda function: function  # type: ignore[attr-defined]
    text = emit_groups.source(condition, program, "a plan")
    space: dict[str, Any] = {"cuda": cuda, **simulator.functions(cuda), **simulator.FUNCTIONS}
    for line in emit_cuda.IMPORTS[1:]:
        text = text.replace(f"{line}\n", "") if line else text
    exec(compile(text, "group_test", "exec"), space)
    names = [name for name, _ in emit_groups.signature(condition, program)]
    cuda.launch(space[emit_groups.NAME], [given[name] for name in names])
    bits = np.unpackbits(given["bits"].view(np.uint8), bitorder="little")
    assert not bits[slots:].any()
    return np.flatnonzero(bits[:slots]).tolist()


@pytest.mark.parametrize("having", TESTED)
def test_the_kernel_marks_groups_that_stay(having: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if having == "null":
        return  # of which the optimizer leaves no group
    body, program, arrays, expected = groups_of(having, monkeypatch)
    condition = condition_of(body.predicate, program)
    assert marked(condition, program, arrays, 1) == expected


@pytest.mark.parametrize("having", KEYED)
def test_the_kernel_reads_keys(having: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = f"select {KEYED[having]}, count(*) from g group by all having {having}"
    assert_same_as_duckdb(query, TABLES, fuse=BOTH)
    body, program, outcome, groups = ran(query, monkeypatch)
    grouping = program.grouping
    assert grouping is not None
    assert grouping.hashed == (having in [*KEYED][-2:])
    expected = np.zeros(groups.num_rows, np.int64)
    for key in grouping.keys:
        values = groups[key.column.name].combine_chunks()
        if pa.types.is_date32(values.type):
            values = values.view(pa.int32())
        if key.values is not None:
            values = pc.index_in(values, key.values)
        shifted = [
            key.size - 1 if v is None else (int(v) - key.low) // key.step
            for v in values.to_pylist()
        ]
        expected += np.array(shifted) * key.stride
    condition = condition_of(body.predicate, program)
    assert condition.numbered
    numbers = outcome.numbers
    stay = marked(condition, program, outcome.arrays, 1 if numbers is None else 0, numbers)
    assert sorted(stay if numbers is None else numbers[stay]) == sorted(expected)
    made = np.count_nonzero(outcome.arrays[0]) if numbers is None else len(numbers)
    # Of the last, rows of groups that cannot stay never came
    assert 0 < len(expected) <= made
    assert len(expected) < made or having == [*KEYED][-1]


@pytest.mark.parametrize("having", LATER)
def test_conditions_that_accumulators_do_not_show(
    having: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, program, _, _ = groups_of(having, monkeypatch)
    with pytest.raises(NotFusable, match=LATER[having]):
        condition_of(body.predicate, program)


def test_constants_are_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = set()
    for having in ("sum(price) > 300", "sum(price) > 4000.5"):
        body, program, _, _ = groups_of(having, monkeypatch)
        condition = condition_of(body.predicate, program)
        sources.add(emit_groups.source(condition, program, "a plan"))
        assert len(condition.accumulators) == 1  # what counts rows is read by way of `flags`
    assert len(sources) == 1


def test_a_sum_that_may_have_overflowed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows repeat, the host looks whether a group has too many rows, which must not be dropped before."""
    from dataclasses import replace

    body, program, arrays, _ = groups_of("sum(price) > 1e9", monkeypatch)
    repeating = replace(program, repeats=True, counted=program.grouping.rows)  # type: ignore[union-attr]
    condition = condition_of(body.predicate, repeating)
    assert marked(condition, repeating, arrays, 1) == []
    counts = arrays[program.grouping.rows].copy()  # type: ignore[union-attr]
    counts[[5, 190]] = 2**31
    held = [counts if a is arrays[program.grouping.rows] else a for a in arrays]  # type: ignore[union-attr]
    assert marked(condition, repeating, held, 1) == [5, 190]


CUBINS = ("sum(price) > 3000", "avg(price) > 50.5 and count(n) > 2", "min(f) > -0.5 or max(fine)")
CUBINS = (*CUBINS, "sum(large) > 10000000000000 or k * 2 < 30")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("having", CUBINS)
def test_the_kernel_compiles_for_a_gpu(having: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, program, _, _ = groups_of(having, monkeypatch)
    condition = condition_of(body.predicate, program)
    text = emit_groups.source(condition, program, "a plan")
    signature = emit_groups.signature(condition, program)
    assembly(text, emit_groups.NAME, signature)
