"""How pipelines run, over a backend of which each launch does what a test says: outcomes, what is kept of them, and their ends."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fuseline.codegen.compile.compile_pool import CompilerEnded
from fuseline.codegen.compile.compiler import NotCompiled
from fuseline.codegen.typed_values import Multiplied, NotFusable
from fuseline.errors import Interrupted, MemoryLimitError
from fuseline.operators import run_pipeline
from fuseline.operators.context import Context, Feedback
from fuseline.operators.pipeline_backend import SHORT, Retry, Void
from fuseline.operators.run_pipeline import ATTEMPTS, COMPILING, REMARK, UNSETTLED, run_fused
from fuseline.operators.run_unfused import Operators
from fuseline.operators.streaming import TooLarge
from fuseline.plan import physical as p
from fuseline.plan.expr import TRUE, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.types import BIGINT
from fuseline.stopping import Stop, Stoppable
from fuseline.storage.tables.memory_table import MemoryTable
from tests.operators.scripted import DONE, FACTS, Attempt, Fake, Rows, raised


def stored() -> p.Stored:
    return p.Stored(0, (new_column("x", BIGINT),))


@pytest.fixture
def node() -> p.Pipeline:
    return p.Pipeline(steps_of(p.FilterRows(stored(), TRUE)), (p.Stored(0, ()),))


def grouped_join() -> p.Pipeline:
    left, right = stored(), stored()
    keys = left.columns, right.columns
    join = p.HashJoin(left, right, JoinKind.INNER, *keys, (False,))
    return p.Pipeline(steps_of(p.HashAggregate(join, (), ())), (p.Stored(0, ()),))


# Answers


def test_an_answer_keeps_its_kernels_and_leaves_a_receipt(node: p.Pipeline) -> None:
    fake = Fake()
    assert fake.run(node).made == "kernels"
    first = fake.receipt(node)
    assert (first.fused, first.origin, first.rows, first.bytes) == (True, "compiler", 10, 80)
    assert first.seconds > 0
    fake.run(node)
    assert fake.receipt(node).origin == "memory"
    assert fake.counts == {"compiled": 1, "loaded": 1, "launches": 2}


def test_columns_that_changed_need_other_kernels(node: p.Pipeline) -> None:
    fake = Fake(fits=False)
    fake.run(node)
    fake.run(node)
    assert fake.counts["compiled"] == 2
    assert fake.receipt(node).origin == "compiler"


def test_an_answer_may_teach_later_runs(node: p.Pipeline) -> None:
    fake = Fake([replace(DONE, feedback=Feedback(built={1: 5}))])
    fake.run(node)
    assert fake.memory(node).feedback.built == {1: 5}
    assert fake.memory(node).kernels is not None


# Retries


@pytest.mark.parametrize(("other", "compiled"), [(True, 2), (False, 1)])
def test_a_retry_starts_with_what_was_found_out(
    node: p.Pipeline, other: bool, compiled: int
) -> None:
    seen = []

    def launch(attempt: Attempt) -> Any:
        seen.append(attempt.feedback.slots)
        return Retry(Feedback(slots=64), other) if len(seen) == 1 else DONE

    fake = Fake([launch])
    assert fake.run(node).made == "kernels"
    assert seen == [None, 64]
    assert fake.counts["compiled"] == compiled
    fake.run(node)
    assert (seen[2], fake.counts["compiled"]) == (64, compiled)


def test_retries_end(node: p.Pipeline) -> None:
    fake = Fake([lambda attempt: Retry(replace(attempt.feedback, slots=1))])
    assert fake.run(node).made == "FilterRows(input)"
    assert fake.counts["launches"] == ATTEMPTS
    assert fake.receipt(node).reason == UNSETTLED


def test_a_stop_is_heard_between_attempts(node: p.Pipeline) -> None:
    fake = Fake([Retry(Feedback())])

    def check() -> None:
        if fake.counts["launches"] == 2:
            raise Interrupted("stopped")

    fake.context.check = check
    with pytest.raises(Interrupted):
        fake.run(node)
    assert fake.counts["launches"] == 2


# No answer this time


def test_operators_answer_what_is_in_doubt_and_the_receipt_says_both(node: p.Pipeline) -> None:
    fake = Fake([Void("in doubt", lambda: FACTS), DONE])
    assert fake.run(node).made == "FilterRows(input)"
    receipt = fake.receipt(node)
    assert (receipt.reason, receipt.rows, receipt.origin) == ("in doubt", 10, "compiler")
    assert receipt.seconds > 0
    assert fake.run(node).made == "kernels"
    assert fake.receipt(node).fused


def test_operators_answer_while_a_thread_compiles(node: p.Pipeline) -> None:
    go_on = threading.Event()

    def slowly() -> Any:
        go_on.wait(60)
        return None, "compiler"

    fake = Fake(background=True, compile=slowly)
    for _ in range(2):
        assert fake.run(node).made == "FilterRows(input)"
        assert fake.receipt(node).reason == COMPILING
    go_on.set()
    made = fake.memory(node).kernels
    assert made is not None
    made.codes.result(60)
    assert fake.run(node).made == "kernels"
    assert fake.counts["compiled"] == 1


def test_a_compiler_is_waited_for_where_operators_would_run_in_chunks(
    node: p.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pipeline, "unfused_chunks", lambda *_: [()])
    go_on = threading.Event()

    def slowly() -> Any:
        go_on.wait(60)
        return None, "compiler"

    fake = Fake(background=True, compile=slowly)
    threading.Timer(0.05, go_on.set).start()
    assert fake.run(node).made == "kernels"
    assert fake.receipt(node).origin == "compiler"


def test_a_stop_is_heard_while_a_compiler_is_waited_for(
    node: p.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pipeline, "unfused_chunks", lambda *_: [()])
    go_on = threading.Event()
    fake = Fake(background=True, compile=lambda: (go_on.wait(60), "compiler"))
    stop = Stop(None)
    threading.Timer(0.05, stop.ask).start()
    try:
        with Stoppable(stop), pytest.raises(Interrupted):
            fake.run(node)
    finally:
        go_on.set()


@pytest.mark.parametrize("background", [False, True])
def test_a_compiler_that_ended_is_asked_again_by_the_next_run(
    node: p.Pipeline, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pipeline, "unfused_chunks", lambda *_: [()])  # so that it is waited for
    fake = Fake(compile=raised(CompilerEnded("gone"), (None, "disk")), background=background)
    monkeypatch.setattr(run_pipeline, "check_room", lambda *_: None)
    assert fake.run(node).made == "FilterRows(input)"
    assert fake.receipt(node).reason == "a kernel could not be compiled: gone"
    assert fake.run(node).made == "kernels"
    assert fake.receipt(node).origin == "disk"


def test_a_kernel_that_the_compiler_refuses_is_warned_of(node: p.Pipeline) -> None:
    fake = Fake(compile=raised(NotCompiled("no such function")))
    with pytest.warns(RuntimeWarning, match="please report"):
        assert fake.run(node).made == "FilterRows(input)"


def test_other_errors_of_compiling_are_errors_of_the_query(node: p.Pipeline) -> None:
    fake = Fake(compile=raised(OSError("disk full"), (None, "compiler")))
    with pytest.raises(OSError, match="disk full"):
        fake.run(node)
    assert fake.run(node).made == "kernels"


# Memory


def test_short_of_memory_once_the_backend_makes_room_and_twice_operators_run(
    node: p.Pipeline,
) -> None:
    fake = Fake([MemoryError("no room"), MemoryError("no room"), MemoryError("no room"), DONE])
    with pytest.raises(MemoryError):
        fake.run(node)
    for _ in range(2):
        assert fake.run(node).made == "FilterRows(input)"
        assert fake.receipt(node).reason == SHORT
    assert fake.run(node).made == "kernels"
    assert not fake.memory(node).short_of_memory


def test_what_a_run_allocated_is_gone_when_operators_run(node: p.Pipeline) -> None:
    class Buffer:
        pass

    alive: weakref.WeakSet[Buffer] = weakref.WeakSet()

    def launch(attempt: Attempt) -> Any:
        buffer = Buffer()
        alive.add(buffer)
        raise MemoryError("no room")

    fake = Fake([launch])
    fake.memory(node).short_of_memory = True
    seen = []

    def operator(node: Any, inputs: Any, context: Context) -> Rows:
        seen.append(len(alive))
        return Rows("operators")

    by_node: Any = {p.FilterRows: operator}
    fake.backend = replace(fake.backend, operators=Operators(by_node, lambda table: 8))
    fake.run(node)
    assert seen == [0]


def test_errors_that_are_not_about_memory_pass(node: p.Pipeline) -> None:
    fake = Fake([RuntimeError("an illegal address")])
    with pytest.raises(RuntimeError, match="illegal"):
        fake.run(node)


# Refusals


def test_a_refusal_is_remembered_for_inputs_of_as_many_rows(node: p.Pipeline) -> None:
    fake = Fake([NotFusable("too wide")])
    for rows, launches in ((3, 1), (3, 1), (4, 2), (4, 2)):
        assert fake.run(node, rows).made == "FilterRows(input)"
        assert fake.receipt(node).reason == "too wide"
        assert fake.counts["launches"] == launches


def test_a_refusal_over_a_table_that_is_read_anew_is_not_remembered() -> None:
    import pyarrow as pa

    table = MemoryTable("t", pa.table({"x": [1]}))
    scan = p.MemoryScan(table, (new_column("x", BIGINT),), ("x",))
    for identity, launches in ((("memory", 1), 1), (None, 2)):
        table.identity = identity
        node, fake = p.Pipeline(steps_of(p.FilterRows(scan, TRUE))), Fake([NotFusable("too wide")])
        fake.run(node)
        fake.run(node)
        assert fake.counts["launches"] == launches


def test_a_refused_operator_runs_over_pipelines_below_it() -> None:
    node = grouped_join()
    fake = Fake([NotFusable("no kernel groups so"), DONE])
    held: list[int] = []
    fake.context.hold = lambda node, nbytes: held.append(nbytes)
    for _ in range(2):
        assert fake.run(node).made == "HashAggregate(kernels)"
        assert fake.receipt(node).reason == "no kernel groups so; 1 of 1 parts below run in kernels"
        assert [*fake.context.receipts] == [id(node)]
    assert fake.counts["compiled"] == 2  # the whole once, the part once
    assert sum(held) == 0
    assert held.count(8) == 2


@pytest.mark.parametrize(("rows", "parts"), [(10, 1), (11, 0), (None, 0)])
def test_a_filter_of_few_rows_below_a_refused_operator_is_such_a_pipeline(
    rows: int | None, parts: int
) -> None:
    few = p.FilterRows(replace(stored(), estimate=100), TRUE, estimate=rows)
    node = p.Pipeline(steps_of(p.HashAggregate(few, (), ())), (p.Stored(0, ()),))
    fake = Fake([NotFusable("no kernel groups so"), DONE])
    assert fake.run(node).made == f"HashAggregate({'kernels' if parts else 'FilterRows(input)'})"


def test_tables_between_parts_count_towards_the_limit() -> None:
    node = grouped_join()
    fake = Fake([NotFusable("no kernel groups so"), DONE])
    held: list[int] = []

    def hold(node: p.Physical, nbytes: int) -> None:
        held.append(nbytes)
        if nbytes > 0:
            raise MemoryLimitError("too much")

    fake.context.hold = hold
    with pytest.raises(MemoryLimitError):
        fake.run(node)
    assert held == [8, -8]


def test_a_part_that_is_refused_too_runs_by_operators() -> None:
    node, fake = grouped_join(), Fake([NotFusable("nothing fits")])
    assert fake.run(node).made == "HashAggregate(HashJoin(input, input))"
    assert fake.receipt(node).reason == "nothing fits; 0 of 1 parts below run in kernels"


def test_a_part_that_has_to_come_in_chunks_is_left_to_operators() -> None:
    """Its chunks are those of another scan than the whole's."""
    node, fake = grouped_join(), Fake([NotFusable("no kernel groups so"), TooLarge([])])
    assert fake.run(node).made == "HashAggregate(HashJoin(input, input))"
    assert fake.receipt(node).reason == "no kernel groups so"
    assert [*fake.context.receipts] == [id(node)]


def multiplied() -> tuple[p.Pipeline, Multiplied]:
    """A pipeline, and why it is to be split."""
    left, side, last = stored(), stored(), stored()
    inner = p.HashJoin(side, last, JoinKind.INNER, side.columns, last.columns, (False,))
    join = p.HashJoin(left, inner, JoinKind.INNER, left.columns, side.columns, (False,))
    return p.Pipeline(steps_of(join), (p.Stored(0, ()),)), Multiplied(inner)


def test_a_build_side_that_joins_multiply_is_split_off_for_good() -> None:
    node, reason = multiplied()
    fake = Fake([reason, DONE])
    for launches in (3, 5):  # the whole asks once, its two parts in each run
        assert fake.run(node).made == "kernels"
        assert fake.context.remarks[id(node)] == REMARK
        assert [*fake.context.receipts] == [id(node)]
        assert fake.receipt(node).bytes == 160
        assert fake.counts["launches"] == launches


def test_a_build_side_that_has_to_come_in_chunks_is_left_to_operators() -> None:
    node, reason = multiplied()
    fake = Fake([reason, TooLarge([])])
    assert fake.run(node).made == "HashJoin(input, HashJoin(input, input))"
    assert fake.receipt(node).reason == "a build side has to be read in chunks"


# Threads


def test_two_threads_on_one_plan(node: p.Pipeline) -> None:
    together = threading.Barrier(2)

    def launch(attempt: Attempt) -> Any:
        if attempt.feedback.slots is None:
            together.wait(60)  # both have kernels that are too small
            return Retry(replace(attempt.feedback, slots=8))
        return DONE

    fake = Fake([launch])
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(fake.run, [node] * 2))
    assert [each.made for each in found] == ["kernels"] * 2
    assert fake.memory(node).feedback.slots == 8
    fake.run(node)
    kernels = fake.memory(node).kernels
    assert kernels is not None
    assert kernels.feedback.slots == 8


def test_threads_that_are_refused_at_once_agree() -> None:
    node, together = grouped_join(), threading.Barrier(2)

    def launch(attempt: Attempt) -> Any:
        if attempt.node is node:
            together.wait(60)
            return NotFusable("no kernel groups so")
        return DONE

    fake = Fake([launch])
    contexts = [replace(fake.context, receipts={}) for _ in range(2)]

    def run(context: Context) -> str:
        return run_fused(node, (Rows("input"),), context, fake.backend).made

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, contexts)) == ["HashAggregate(kernels)"] * 2
    assert [set(context.receipts) for context in contexts] == [{id(node)}] * 2
