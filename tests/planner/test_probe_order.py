"""The order of probes where there are too many for all sets to be looked at."""

from __future__ import annotations

from fuseline.plan.device_costs import costs_of
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.physical import ValuesScan
from fuseline.plan.types import BIGINT
from fuseline.planner.estimates.relation_estimate import RelationEstimate
from fuseline.planner.estimates.selectivity import ColumnEstimate
from fuseline.planner.pipelines.arrange_probes import _Parts
from fuseline.planner.pipelines.probe_order import (
    Equal,
    Extra,
    Group,
    Key,
    ProbeCondition,
    Unit,
    best_order,
)
from tests.limits import SetLimits

ROWS = (10_000_000.0, 1_000_000.0, 100.0)
MATCH = ColumnRef(new_column("match", BIGINT))


def group(extras: list[Extra], conditions: list[ProbeCondition]) -> Group:
    """Three relations in a row, of which the smallest filters the next one."""
    units = [Unit(RelationEstimate(rows, {}), rows, payload=False) for rows in ROWS]

    def key(unit: int, distinct: float) -> Key:
        known = ColumnEstimate(distinct, distinct, distinct == ROWS[unit], 1.0, distinct)
        return Key(unit, new_column("k", BIGINT), known)

    classes = [
        Equal([key(0, ROWS[1]), key(1, ROWS[1])], 0b011),
        Equal([key(1, 100_000.0), key(2, 100_000.0)], 0b110),
    ]
    return Group(units, extras, classes, conditions, costs_of("cpu"))


def test_what_only_adds_columns_comes_last(limits: SetLimits) -> None:
    limits(probe_order__MAX_UNITS=4)
    found = best_order(group([Extra(0b001, 1.0, 4e6), Extra(0b001, 0.5, 4e6)], []))
    assert found.extra == 0
    assert found.members == 0b11111
    assert found.probe is not None
    limits(
        probe_order__MAX_UNITS=3
    )  # a filter is among those that are ordered, so that they are too many
    assert best_order(group([Extra(0b001, 0.5, 4e6)], [])).members == 0b1111


def test_what_is_read_elsewhere_does_not(limits: SetLimits) -> None:
    """The mark of a join decides which rows another join is asked for."""
    limits(probe_order__MAX_UNITS=4)
    test = ProbeCondition(0b01000, MATCH, 0.001)
    found = best_order(group([Extra(0b001, 1.0, 4e3), Extra(0b001, 1.0, 4e8)], [test]))
    assert found.extra == 1
    assert found.probe is not None
    assert found.probe.rows < 100


def test_relations_with_the_same_columns_are_not_arranged() -> None:
    """Both sides of a join may read one shared part, and an order could not tell the two apart."""
    shared, other = (ValuesScan((new_column("k", BIGINT),), ()) for _ in range(2))
    assert _Parts([shared, other]).are_free()
    assert not _Parts([shared, shared]).are_free()
