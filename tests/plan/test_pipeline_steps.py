"""A pipeline's body as a source, steps and a sink."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.physical import (
    ComputeColumns,
    DistinctOn,
    FilterRows,
    HashJoin,
    Order,
    Physical,
    SortRows,
    TopK,
    UnnestRows,
)
from fuseline.plan.pipeline_steps import (
    LEAST_SHARE,
    HashProbe,
    PipelineSteps,
    columns_read,
    equal_keys,
    leaf_of,
    payload,
    probed,
    reads_build,
    self_key,
    spine,
    steps_of,
    unreduced,
)
from fuseline.plan.types import BIGINT
from fuseline.plan.window.window_call import WindowCall
from fuseline.plan.window.window_operator import WindowRows
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


def test_each_operator_names_the_columns_that_it_reads_itself() -> None:
    line = Tables().scan("line", 100, a=(0, 9), b=(0, 9), c=(0, 9), d=(0, 9))
    a, b, c = (column(line, name) for name in "abc")
    order = (Order(b, False, False),)
    made = new_column("made", BIGINT)
    called = WindowCall("sum", (ColumnRef(c),), BIGINT)
    assert columns_read(DistinctOn(line, (a,))) == {a}
    assert columns_read(UnnestRows(line, ((made, b),), (a,))) == {a, b}
    assert columns_read(SortRows(line, order)) == {b}
    assert columns_read(TopK(line, order, 3)) == {b}
    window = WindowRows(line, (a,), order, ((made, called),), (column(line, "d"),))
    assert columns_read(window) == set(line.columns)
    assert columns_read(replace(window, passed=())) == {a, b, c}
    assert columns_read(line) == set()


def test_rows_come_from_the_side_that_is_probed() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_key=(0, 9))
    orders = tables.scan("orders", 10, o_key=(0, 9))
    inner = join(line, orders, "l_key = o_key")
    kept = where(inner, "gt", "l_key", 3)
    assert [probed(node) for node in (line, kept, inner)] == [None, 0, 0]
    assert leaf_of(kept) is line
    assert list(spine(kept)) == [kept, inner, line]
    turned = replace(inner, build="left")
    assert leaf_of(turned) is orders
    assert [c.source for c in steps_of(turned).chains] == [orders, line]
    both = join(line, orders, "l_key = o_key", "full")
    assert probed(both) is None
    assert leaf_of(both) is both


def alike(rows: float | None, looking: float | None, there: float | None) -> HashProbe:
    """Rows of a table that look for those of the same key among some of its rows."""
    tables = Tables()
    first = tables.scan("line", 100, l_key=(0, 9), l_price=(0, 9))
    made = tuple(new_column(f"m_{c.name}", c.type) for c in first.columns)
    second = replace(first, made=made, estimate=rows)
    some = replace(where(second, "gt", "m_l_price", 3), estimate=there)
    body = join(replace(first, estimate=looking), some, "l_key = m_l_key", "semi")
    (step,) = steps_of(body).chain.steps
    assert isinstance(step, HashProbe)
    return step


@pytest.mark.parametrize(
    ("rows", "looking", "there", "known"),
    [
        (100, 50, 1, True), (100, 51, 25, True), (100, 51, 24, False), (100, 100, 100, True),
        (None, 100, 1, True), (100, None, 1, True), (100, 100, None, True),
    ],
)  # fmt: skip
def test_rows_look_among_those_of_their_key_unless_few_are_there(
    rows: float | None, looking: float | None, there: float | None, known: bool
) -> None:
    step = alike(rows, looking, there)
    key = column(step.below.node, "l_key")
    assert self_key(step) == (key if known else None)


def test_a_join_is_of_a_table_with_itself_where_both_keys_are_one_stored_column() -> None:
    step = alike(100, 50, 1)
    node = step.node
    assert self_key(replace(step, node=replace(node, null_aware=True))) is None
    price = (column(node.left, "l_price"),)
    assert self_key(replace(step, node=replace(node, left_keys=price))) is None
    two = replace(node, left_keys=node.left_keys + price, right_keys=node.right_keys * 2)
    assert self_key(replace(step, node=two)) is None
    other = Tables().scan("other", 100, l_key=(0, 9))
    (apart,) = steps_of(join(other, node.right, "l_key = m_l_key", "semi")).chain.steps
    assert isinstance(apart, HashProbe)
    assert self_key(apart) is None
    doubled = call("mul", column(other, "l_key"), 2, type=BIGINT)
    computed = compute(other, twice=doubled)
    *_, made = steps_of(join(computed, other, "twice = l_key", "semi")).chain.steps
    assert isinstance(made, HashProbe)
    assert self_key(made) is None
    passed = compute(other, twice=ColumnRef(column(other, "l_key")))
    *_, named = steps_of(join(passed, other, "twice = l_key", "semi")).chain.steps
    assert isinstance(named, HashProbe)
    assert self_key(named) == column(other, "l_key")


def test_a_build_side_has_the_rows_again_that_joins_had_left_out() -> None:
    tables = Tables()
    line = tables.scan("line", 100, l_key=(0, 9))
    orders = tables.scan("orders", 10, o_key=(0, 9))
    few = tables.scan("few", 3, f_key=(0, 9))
    reduced = join(orders, few, "o_key = f_key", "semi", reduces=True)
    (step,) = steps_of(join(line, reduced, "l_key = o_key")).chain.steps
    assert isinstance(step, HashProbe)
    whole = unreduced(step)
    assert whole.build.node is orders
    assert whole.node.build_side is orders
    plain = join(orders, few, "o_key = f_key", "semi")
    (kept,) = steps_of(join(line, plain, "l_key = o_key")).chain.steps
    assert isinstance(kept, HashProbe)
    assert unreduced(kept) is kept
