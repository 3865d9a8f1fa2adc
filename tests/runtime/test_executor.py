"""The executor over a backend whose tables are lists of numbers."""

import weakref
from types import SimpleNamespace

import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError, MemoryLimitError, OutOfRange, Unsupported
from fuseline.operators.context import Context
from fuseline.operators.run_unfused import Operators, run_operators
from fuseline.plan.expr import TRUE, new_column
from fuseline.plan.physical import (
    ConcatRows,
    FilterRows,
    LimitRows,
    Pipeline,
    RangeScan,
    Stored,
    Transfer,
)
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.types import BIGINT
from fuseline.runtime.executor import execute
from fuseline.runtime.memory import readable
from fuseline.runtime.run import RunOptions
from fuseline.runtime.schedule import schedule_of
from fuseline.storage.columns.cache import ColumnCache

BYTES_A_ROW = 8


class Rows(list):
    """A table of the backend; unlike plain lists it can be watched until it is let go of."""

    @property
    def num_rows(self):
        return len(self)


class FakeBackend(SimpleNamespace):
    """Counts what ran, in order, and lives as long as it is told to."""

    def __init__(self, name):
        super().__init__(name=name, ran=[], live=0, most_live=0, synchronized=0, failing=None)
        self.OPERATORS = {
            RangeScan: self.scan,
            FilterRows: self.keep,
            ConcatRows: self.concat,
            Pipeline: self.pipeline,
        }

    def arrow_bytes(self, table, columns):
        return 8 * len(table)

    def settled(self, table):
        return table

    def scan(self, node, inputs, context):
        return self.made(node, list(range(node.start, node.stop)))

    def keep(self, node, inputs, context):
        if self.failing is not None:
            raise self.failing
        return self.made(node, list(inputs[0]))

    def concat(self, node, inputs, context):
        return self.made(node, [row for rows in inputs for row in rows])

    def pipeline(self, node, inputs, context):
        operators = Operators(self.OPERATORS, self.num_bytes)
        return self.made(node, run_operators(node.body, inputs, context, operators))

    def made(self, node, rows):
        self.ran.append(type(node).__name__)
        return Rows(rows)

    def num_bytes(self, table):
        return len(table) * BYTES_A_ROW

    def to_arrow(self, table, columns):
        return pa.table([table], names=[c.name for c in columns])

    def from_arrow(self, table, columns):
        self.ran.append("from_arrow")
        return Rows(table.column(0).to_pylist())

    def synchronize(self):
        self.synchronized += 1

    def wait_for(self, table):
        self.synchronized += self.name == "gpu"


@pytest.fixture
def backends():
    return {"cpu": FakeBackend("cpu"), "gpu": FakeBackend("gpu")}


def scan(rows, device="cpu"):
    return RangeScan(new_column("x", BIGINT), 0, rows, 1, device=device)


def keep(node, device="cpu", reason=None):
    return FilterRows(node, TRUE, device=device, reason=reason)


def context(check=lambda: None):
    return Context(ColumnCache(0), check, 1)


def run(plan, backends, **options):
    return execute(plan, backends, context(), RunOptions(**options))


def test_the_result_has_the_rows_and_the_receipt(backends):
    result = run(keep(scan(3), reason="a reason"), backends)
    assert result.to_arrow().to_pydict() == {"x": [0, 1, 2]}
    assert (result.num_rows, result.names, result.device) == (3, ["x"], "cpu")
    nodes = [(n.name, n.depth, n.device, n.reason, n.rows, n.bytes) for n in result.profile.nodes]
    assert nodes == [
        ("FilterRows", 0, "cpu", "a reason", 3, 24),
        ("RangeScan", 1, "cpu", None, 3, 24),
    ]
    assert result.profile.run_seconds >= sum(n.seconds for n in result.profile.nodes) >= 0


def test_an_object_that_two_nodes_read_runs_once(backends):
    shared = scan(3)
    plan = ConcatRows((shared, keep(shared)), (new_column("x", BIGINT),))
    assert run(plan, backends).num_rows == 6
    assert backends["cpu"].ran.count("RangeScan") == 1


def test_a_schedule_serves_every_run_of_its_plan(backends):
    shared = scan(3)
    schedule = schedule_of(ConcatRows((shared, keep(shared)), (new_column("x", BIGINT),)))
    first, second = (run(schedule, backends) for _ in range(2))
    assert first.to_arrow() == second.to_arrow()
    assert backends["cpu"].ran == 2 * ["RangeScan", "FilterRows", "ConcatRows"]
    assert [n.rows for n in second.profile.nodes] == [6, 3, 3]


def test_a_profile_keeps_no_table(backends):
    result = run(keep(scan(3)), backends)
    table, profile = weakref.ref(result.table), result.profile
    del result
    assert table() is None
    assert [n.rows for n in profile.nodes] == [3, 3]


def test_equal_nodes_that_are_two_objects_run_twice(backends):
    made = new_column("x", BIGINT)
    parts = (RangeScan(made, 0, 2, 1), RangeScan(made, 0, 2, 1))
    assert run(ConcatRows(parts, (made,)), backends).num_rows == 4
    assert backends["cpu"].ran.count("RangeScan") == 2


def test_a_transfer_takes_the_table_over_arrow(backends):
    plan = keep(Transfer(scan(3, "gpu"), device="cpu"))
    assert run(plan, backends).to_arrow().num_rows == 3
    assert backends["gpu"].ran == ["RangeScan"]
    assert backends["cpu"].ran == ["from_arrow", "FilterRows"]


def test_a_transfer_to_the_same_device_passes_the_table_on(backends):
    assert run(Transfer(scan(3)), backends).num_rows == 3
    assert backends["cpu"].ran == ["RangeScan"]


def test_the_device_is_waited_for_once_or_when_timed_after_each_node(backends):
    plan = keep(scan(3, "gpu"), "gpu")
    run(plan, backends)
    assert backends["gpu"].synchronized == 1
    assert run(plan, backends, timed=True).profile.timed
    assert backends["gpu"].synchronized == 4


def test_inputs_count_until_their_last_reader_has_run(backends):
    chain = keep(keep(keep(scan(10))))  # one table at a time
    assert run(chain, backends, memory_limit=10 * BYTES_A_ROW).num_rows == 10
    shared = scan(10)
    both = ConcatRows((keep(shared), keep(shared)), (new_column("x", BIGINT),))
    with pytest.raises(MemoryLimitError):
        run(both, backends, memory_limit=10 * BYTES_A_ROW)


def stored(number):
    return Stored(number, (new_column("x", BIGINT),))


def test_a_pipeline_reads_its_inputs_which_run_first(backends):
    body = ConcatRows((stored(1), keep(stored(0)), scan(2)), (new_column("x", BIGINT),))
    shared = scan(3)
    pipeline = Pipeline(steps_of(body), (shared, keep(scan(1))))
    plan = ConcatRows((pipeline, shared), (new_column("x", BIGINT),))
    result = run(plan, backends)
    assert result.to_arrow().column(0).to_pylist() == [0, 0, 1, 2, 0, 1, 0, 1, 2]
    assert backends["cpu"].ran.count("RangeScan") == 3
    assert backends["cpu"].ran[-2:] == ["Pipeline", "ConcatRows"]
    names = [(n.name, n.depth) for n in result.profile.nodes]
    assert names[:3] == [("ConcatRows", 0), ("Pipeline", 1), ("RangeScan", 2)]


def test_inputs_of_a_pipeline_and_what_its_operators_make_count(backends):
    """Three tables of 80 bytes at most: the input, what the first operator makes of it, and the second one's."""
    pipeline = Pipeline(steps_of(keep(keep(stored(0)))), (scan(10),))
    assert run(pipeline, backends, memory_limit=3 * 10 * BYTES_A_ROW).num_rows == 10
    with pytest.raises(MemoryLimitError, match=r"made 80 bytes"):
        run(pipeline, backends, memory_limit=10 * BYTES_A_ROW - 1)
    # Tables of which not three fit come in pieces
    assert run(pipeline, backends, memory_limit=2 * 10 * BYTES_A_ROW - 1).num_rows == 10


def test_too_much_memory_names_the_node_the_bytes_and_the_setting(backends):
    with pytest.raises(
        MemoryLimitError, match=r"RangeScan made 8\.0 KiB .*memory_limit = 100 bytes"
    ):
        run(scan(1024), backends, memory_limit=100)


def test_a_device_without_memory_names_node_and_remedy(backends):
    backends["gpu"].failing = MemoryError("std::bad_alloc: out_of_memory\nstack")
    with pytest.raises(
        MemoryLimitError, match=r"FilterRows ran out of GPU memory .*bad_alloc.*device = 'cpu'"
    ):
        run(keep(scan(3, "gpu"), "gpu"), backends)


def test_an_error_of_the_query_passes_as_it_is(backends):
    backends["cpu"].failing = OutOfRange("too large")
    with pytest.raises(OutOfRange, match=r"^too large$"):
        run(keep(scan(1)), backends)


def test_a_column_that_is_too_large_for_arrow_names_the_node(backends):
    backends["cpu"].failing = pa.lib.ArrowCapacityError("array cannot contain more\nwith a stack")
    message = r"^FilterRows made a larger column than Arrow takes on the cpu: array cannot contain more\.$"
    with pytest.raises(ExecutionError, match=message):
        run(keep(scan(1)), backends)


@pytest.mark.parametrize("fault", [ZeroDivisionError("a bug"), pa.ArrowInvalid("a bug")])
def test_an_error_of_the_program_keeps_its_class_and_names_the_node(fault, backends):
    backends["cpu"].failing = fault
    with pytest.raises(type(fault)) as error:
        run(keep(scan(1)), backends)
    assert error.value.__notes__ == ["while FilterRows ran on the cpu"]


def test_a_node_without_an_operator_is_named(backends):
    with pytest.raises(Unsupported, match="The cpu backend has no operator LimitRows"):
        run(LimitRows(scan(1), 1), backends)


def test_a_stop_comes_between_nodes(backends):
    calls = []

    def check():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(keep(scan(1)), backends, context(check))
    assert backends["cpu"].ran == ["RangeScan"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")],
)
def test_bytes_are_shown_in_the_unit_that_suits_them(count, text):
    assert readable(count) == text
