"""A pipeline's body as a source, steps and a sink."""

from __future__ import annotations

import pickle

import pytest

from fuseline.plan.physical import FilterRows, HashJoin, Physical
from fuseline.plan.pipeline_steps import HashProbe, PipelineSteps, steps_of
from tests.codegen.bodies import Tables, grouped, join, where


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
