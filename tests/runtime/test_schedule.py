"""The turns of a plan's nodes: which tables each reads, and after which one nobody reads a table any more."""

from __future__ import annotations

from fuseline.plan.expr import new_column
from fuseline.plan.physical import ConcatRows, LimitRows, RangeScan
from fuseline.plan.types import BIGINT
from fuseline.runtime.schedule import schedule_of


def test_a_table_is_let_go_after_its_last_reader_and_once() -> None:
    scan = RangeScan(new_column("n", BIGINT), 0, 10, 1, device="cpu")
    head = LimitRows(scan, 3, device="cpu")
    both = ConcatRows((head, scan, scan), (new_column("n", BIGINT),), device="cpu")
    turns = schedule_of(both).turns
    assert [turn.node for turn in turns] == [scan, head, both]
    assert [turn.reads for turn in turns] == [(), (id(scan),), (id(head), id(scan), id(scan))]
    done = (id(head), "cpu"), (id(scan), "cpu")
    assert [turn.done_with for turn in turns] == [(), (), done]
