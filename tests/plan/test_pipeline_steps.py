"""A pipeline's body as a source, steps and a sink."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from fuseline.plan.physical import ComputeColumns, FilterRows, HashJoin, Physical
from fuseline.plan.pipeline_steps import (
    LEAST_SHARE,
    HashProbe,
    PipelineSteps,
    equal_keys,
    payload,
    reads_build,
    steps_of,
)
from fuseline.plan.types import BIGINT
from tests.codegen.bodies import Tables, call, column, compute, grouped, join, where


def shop() -> PipelineSteps:
    """Lines of orders that some customers gave, by customer; another join asks for the same orders."""
    tables = Tables()
    line = tables.scan("line", 100, l_order=(0, 9), l_other=(0, 9))
    orders = tables.scan("orders", 10, o_key=(0, 9), o_customer=(0, 4), o_day=(0, 30))
    customer = tables.scan("customer", 5, c_key=(0, 4), c_kind=(0, 2))
    some = join(orders, where(customer, "eq", "c_kind", 1), "o_customer = c_key")
    body = join(join(line, some, "l_order = o_key"), some, "l_other = o_key", "semi")
    return steps_of(where(grouped(body, "o_customer", "l_other"), "gt", "rows", 1))


def names(steps: PipelineSteps) -> list[str]:
    def name(node: Physical) -> str:
        table = getattr(node, "table", None)
        return type(node).__name__ if table is None else table.name

    return [
        f"{'  ' * depth}{name(node)}{again * ' again'}" for depth, node, again in steps.listed()
    ]


LISTED = [
    "line",
    "HashJoin",
    "  orders",
    "  HashJoin",
    "    customer",
    "    FilterRows",
    "HashJoin",
    "  HashJoin again",
    "HashAggregate",
    "FilterRows",
]


def test_rows_meet_a_source_steps_and_a_sink() -> None:
    steps = shop()
    assert names(steps) == LISTED
    assert steps.groups is not None
    assert isinstance(steps.condition, FilterRows)
    assert steps.joins
    assert not steps.is_selection


@pytest.mark.parametrize("sent", [False, True])
def test_what_two_joins_probe_is_one_chain(sent: bool) -> None:
    steps = pickle.loads(pickle.dumps(shop())) if sent else shop()
    first, second = steps.chain.steps
    assert isinstance(first, HashProbe)
    assert isinstance(second, HashProbe)
    assert first.build is second.build
    assert second.below.steps == (first,)
    assert steps.chains.count(first.build) == 1
    assert len(steps.chains) == 3
    assert first.node.build_side is first.build.node


def test_each_step_knows_what_is_read_of_it() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_order=(0, 9), l_price=(0, 9), l_other=(0, 9))
    orders = tables.scan("orders", 10, o_key=(0, 9), o_day=(0, 30), o_other=(0, 4))
    body = where(join(where(line, "gt", "l_price", 3), orders, "l_order = o_key"), "eq", "o_day", 7)
    steps = steps_of(grouped(body, "l_price"))
    assert steps.groups is not None
    read = steps.chain.read_by(frozenset(steps.groups.keys))
    assert [{column.name for column in own} for _, own in read] == [
        {"l_order", "l_price"},
        {"l_price", "o_day"},
        {"l_price"},
    ]
    assert {c.name for c in steps.columns_read} == {"l_order", "l_price", "o_key", "o_day"}


def test_another_source_keeps_what_is_probed() -> None:
    steps, tables = shop(), Tables()
    other = tables.scan("other", 7, l_order=(0, 9), l_other=(0, 9))
    made = steps.over(other)
    assert names(made) == ["other", *LISTED[1:]]
    assert made.source is other
    assert [c.source for c in made.chains[1:]] == [c.source for c in steps.chains[1:]]
    assert isinstance(made.chain.node, HashJoin)


def test_what_a_step_makes_is_not_read_below_it() -> None:
    line = Tables().scan("line", 100, l_price=(0, 9), l_count=(0, 9), l_other=(0, 9))
    value = call("mul", column(line, "l_price"), column(line, "l_count"), type=BIGINT)
    computed = compute(line, value=value)
    kept = where(computed, "gt", "value", 3)
    made, dropped = steps_of(kept).chain.steps
    assert isinstance(made.node, ComputeColumns)
    wanted = frozenset({column(kept, "value")})
    assert {c.name for c in made.reads(wanted)} == {"l_price", "l_count"}
    assert {c.name for c in made.reads(frozenset({column(kept, "l_other")}))} == {"l_other"}
    # A column of elsewhere is none of the rows below
    elsewhere = column(Tables().scan("other", 1, o_key=(0, 9)), "o_key")
    assert dropped.reads(frozenset({elsewhere})) == wanted


@pytest.mark.parametrize(
    ("below", "made", "share"),
    [(100.0, 25.0, 0.25), (100.0, 300.0, 1.0), (1e9, 1.0, LEAST_SHARE), (0.0, 5.0, None), (100.0, None, None), (None, 5.0, None)],
)  # fmt: skip
def test_the_share_that_passes_is_one_of_the_rows_below(
    below: float | None, made: float | None, share: float | None
) -> None:
    line = replace(Tables().scan("line", 100, l_price=(0, 9)), estimate=below)
    (step,) = steps_of(replace(where(line, "gt", "l_price", 3), estimate=made)).chain.steps
    assert step.share == share


def test_rows_of_a_scan_less_some_are_a_selection() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_price=(0, 9))
    kept = where(where(line, "gt", "l_price", 3), "lt", "l_price", 7)
    assert steps_of(kept).is_selection
    assert not steps_of(compute(kept)).is_selection
    assert not steps_of(grouped(kept, "l_price")).is_selection
    assert not steps_of(where(tables.stored(0, 9, x=(0, 9)), "gt", "x", 3)).is_selection


def test_keys_are_read_of_the_probe_side_where_the_build_side_has_the_same() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_key=(0, 9), l_rate=float, l_price=(0, 9))
    rates = tables.scan("rates", 10, r_key=(0, 9), r_rate=float, r_day=(0, 9))
    on = "l_key = r_key, l_rate = r_rate"
    inner = join(line, rates, on)
    assert {b.name: p.name for b, p in equal_keys(inner).items()} == {"r_key": "l_key"}
    assert equal_keys(join(line, rates, on, "left")) == {}

    def read(node: HashJoin, *wanted: str) -> set[str]:
        return {c.name for c in payload(node, frozenset(column(inner, name) for name in wanted))}

    assert read(inner, "r_key", "r_rate", "l_price") == {"r_rate"}
    assert read(join(line, rates, on, "left"), "r_key", "l_price") == {"r_key"}
    later = replace(inner, residual=call("lt", column(rates, "r_day"), column(line, "l_price")))
    assert read(later, "l_price") == {"r_day"}


def test_rows_of_a_build_side_are_looked_at_for_a_condition_or_its_columns() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_key=(0, 9), l_price=(0, 9))
    orders = tables.scan("orders", 10, o_key=(0, 9), o_day=(0, 9))
    inner = join(line, orders, "l_key = o_key")
    assert reads_build(inner)
    assert not reads_build(inner, frozenset(line.columns))
    assert reads_build(inner, frozenset({column(orders, "o_day")}))
    semi = join(line, orders, "l_key = o_key", "semi")
    assert not reads_build(semi)
    condition = call("lt", column(line, "l_price"), column(line, "l_key"))
    assert reads_build(replace(semi, residual=condition))
