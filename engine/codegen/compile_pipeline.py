"""A pipeline's body -> the kernels that run it: one for each build side, in the order in which they run, then the main one.

Rows of which an order keeps the first few: a kernel leaves out those that are beyond a bound, an argument that a sample tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from weakref import proxy

from ..plan.all_values import never_raises
from ..plan.expr import AggregateCall, ColumnRef, Expr, columns_of
from ..plan.functions import AGGREGATE
from ..plan.physical import HashAggregate, Order
from ..plan.pipeline_steps import Chain, PipelineSteps
from ..plan.text.concealed_text import concealed_name
from ..records import dataclass
from .expressions.translate import translate
from .groups.accumulate import Accumulator, Accumulators, fold_call
from .groups.grouping import FoldSink, Grouping, grouping_of, row_groups, without_count
from .indexes.layers import Index
from .joins.builds import ONE, Builds, kernel_program
from .joins.chains import ChainStatements
from .loop import Apply, Machine, Term, negated
from .program import LateColumn, Program, SharedMemory
from .program_builder import ROW_LIMIT, ProgramBuilder, Scope, over
from .ranges import I32_MAX, I64_MAX
from .row_sources import LeafColumns
from .typed_values import NotFusable, Value


@dataclass(frozen=True, slots=True)
class Limits:
    """What a target can hold.

    `group_limit`: groups that are addressed directly, whatever the number of rows, and whose accumulators travel to the host;
    `dense_limit`: groups that are addressed directly and stay where they are (0: none); `hash_limit`: group numbers that may be keys of hash
    tables (0: none).
    """

    group_limit: int
    hash_limit: int = 0
    dense_limit: int = 0


@dataclass(frozen=True)
class Stages:
    """The kernels of a pipeline: `programs[i]` fills `indexes[i]`, the last one has the result."""

    programs: tuple[Program, ...]
    indexes: tuple[Index, ...]

    @cached_property
    def main(self) -> Program:
        return self.programs[-1]

    @cached_property
    def index_values(self) -> int:
        """How many values the arrays of all indexes have."""
        return sum(buffer.length for index in self.indexes for buffer in index.buffers)

    def made_for(self, memory: SharedMemory) -> Stages:
        """Return the same kernels for a CUDA device with so much shared memory."""
        if self.main.shared_memory == memory:
            return self
        programs = (replace(program, shared_memory=memory) for program in self.programs)
        return replace(self, programs=tuple(programs))


def stages(
    steps: PipelineSteps, source: LeafColumns, limits: Limits, order: Order | None = None
) -> Stages:
    """Return the kernels of a chain whose rows are aggregated, or come out; raises `NotFusable`.

    They make all groups, whatever condition there is on these (`groups.conditions`).  `order`: of rows that come out only the first are
    read, so that the last kernel has a bound (`joins.row_bounds`).
    """
    # What states a chain refers to itself: columns would be in memory until Python looks for cycles
    builds, groups = Builds(proxy(source)), steps.groups
    main = (
        _listed(steps.chain, builds, order)
        if groups is None
        else _aggregated(steps.chain, groups, builds, limits)
    )
    return Stages((*builds.programs, main), tuple(builds.indexes))


def selected(chain: Chain, source: LeafColumns) -> Program:
    """Return filters above a scan as a program that says of each row whether it is in; raises `NotFusable`."""
    builds = Builds(proxy(source))
    kernel = ProgramBuilder(builds.source)
    ChainStatements(kernel, builds).state(chain, frozenset())
    return kernel_program("scan_filter", kernel)


def _listed(chain: Chain, builds: Builds, order: Order | None = None) -> Program:
    """A chain whose rows come out as row numbers of the relations that its columns are read from."""
    kernel = ProgramBuilder(builds.source)
    stating, columns = ChainStatements(kernel, builds), chain.node.columns
    scope = stating.state(chain, frozenset(columns))
    late = [LateColumn(column, kernel.afterwards(scope[column])) for column in columns]
    rows_out = {0: None} if not late else {}
    for made in late:
        for column in columns_of(made.expr):
            origin = kernel.origin(column)
            assert origin is not None
            rows_out[kernel.found(origin)] = None
    if kernel.relations[0].rows >= ROW_LIMIT:
        raise NotFusable("a table of 2**31 rows or more has no row numbers of 32 bits")
    bound = None if order is None else bounded(order, late, scope, stating)
    kernel.settle()
    rows = tuple(sorted(rows_out or {0: None}))
    return kernel_program(
        _name(stating, "rows"), kernel, late=tuple(late), rows_out=rows, bound=bound
    )


def _aggregated(chain: Chain, root: HashAggregate, builds: Builds, limits: Limits) -> Program:
    kernel = ProgramBuilder(builds.source)
    stating = ChainStatements(kernel, builds)
    read = frozenset(c for _, call in root.aggregates for c in columns_of(call))
    scope = stating.state(chain, read | frozenset(root.keys))
    calls = [(column, _over(call, scope)) for column, call in root.aggregates]
    distinct = distinct_arguments([call for _, call in calls])
    accumulators = Accumulators()
    # Without a limit of rows, sums are exact for as many as `Program.repeats` says
    rows = ROW_LIMIT if kernel.repeats else kernel.relations[0].rows
    counted: int | None = None
    grouping: Grouping | None = None
    late: tuple[LateColumn, ...] = ()
    if root.keys or distinct or kernel.repeats:
        counted = accumulators.add(Accumulator("add", Machine.I64, ONE))
    if root.keys or distinct:
        assert counted is not None
        grouping, late = _grouped(root, scope, distinct, kernel, limits, accumulators, counted)
    folded = tuple(
        fold_call(column, call, kernel, accumulators, rows, distinct) for column, call in calls
    )
    kernel.settle()
    items, made = tuple(accumulators.items), tuple(call for _, call in calls)
    # No group has too many rows for its sums; counts and extremes are exact for any number
    if rows < ROW_LIMIT or not any(AGGREGATE[call.function].adds_values for call in made):
        counted = None
    if grouping is not None and rows < ROW_LIMIT:
        sink = without_count(FoldSink(grouping, items, folded))
        grouping, items, folded = sink.grouping, sink.accumulators, sink.folded
    return kernel_program(
        _name(stating, "group" if root.keys else "aggregate"),
        kernel,
        grouping=grouping,
        accumulators=items,
        folded=folded,
        calls=made,
        late=late,
        counted=counted,
    )


def _grouped(
    root: HashAggregate,
    scope: Scope,
    distinct: tuple[Expr, ...],
    kernel: ProgramBuilder,
    limits: Limits,
    accumulators: Accumulators,
    counted: int,
) -> tuple[Grouping, tuple[LateColumn, ...]]:
    """Find groups by number where these are few, else by a row that decides the keys, else by number again."""
    keys = [scope[key] for key in root.keys]
    before = kernel.saved()
    refused: NotFusable | None = None
    grouping = None
    most = limits.dense_limit if limits.dense_limit and not distinct else limits.group_limit
    try:
        grouping = grouping_of(
            root.keys,
            keys,
            distinct,
            kernel,
            max(most, limits.group_limit),
            counted,
            limits.hash_limit,
        )
    except NotFusable as reason:
        refused = reason
    if grouping is not None and grouping.groups <= limits.group_limit:
        return grouping, ()
    after = kernel.saved()
    kernel.restore(before)
    by_row = None if distinct else row_groups(keys, kernel, accumulators, counted)
    if by_row is not None:
        late = [LateColumn(key, expr) for key, expr in zip(root.keys, by_row.keys, strict=True)]
        return by_row.grouping, tuple(late)
    if refused is not None:
        raise refused
    assert grouping is not None
    kernel.restore(after)
    return grouping, ()


def distinct_arguments(calls: list[AggregateCall]) -> tuple[Expr, ...]:
    """What the aggregates count each value of once, without repetition."""
    return tuple(dict.fromkeys(c.args[0] for c in calls if c.distinct and c.function == "count"))


def _over(call: AggregateCall, scope: Scope) -> AggregateCall:
    made = over(call, scope)
    assert isinstance(made, AggregateCall)
    return made


def _name(chain: ChainStatements, sink: str) -> str:
    steps = ["filter"] if chain.filtered else []
    steps += ["probe"] if chain.probed else []
    return "_".join(["scan", *steps, sink])


def bounded(
    order: Order, late: Sequence[LateColumn], scope: Scope, stating: ChainStatements
) -> str:
    """Have a kernel list only rows up to a bound in an order, and return the bound's parameter, which leaves all rows in.

    NULLs stay in wherever they stand.  Raises `NotFusable` where the order is not by whole numbers, of which operators compute the same
    ones, and where a column beside it may be an error in a row that is left out: of the 1.2 M dearest orders of SF1 with the length of
    each comment % 7 operators computed that for all rows, which took 58 ms of CPU time and not 3.
    """
    kernel, column = stating.kernel, order.column
    others = [scope[made.column] for made in late if made.column != column]
    if not all(never_raises(expr) or kernel.proves(expr, translate) for expr in others):
        raise NotFusable("a column may raise in a row that the order leaves out")
    value = translate(scope[column], kernel)
    if not _is_ordered(value, isinstance(scope[column], ColumnRef)):
        raise NotFusable(f'"{column.name}" ({column.type}) is no whole number')
    machine = value.term.type
    meaning = f"{concealed_name(column.name)} of the last row that is kept"
    bound = kernel.parameter(_unbounded(machine, order.descending), machine, meaning)
    # NaN, which stands above all numbers, is in
    comparison = "<" if order.descending else ">"
    beyond: Term = Apply(comparison, (value.term, bound), Machine.BOOL)
    if value.valid is not None:
        beyond = Apply("&", (beyond, value.valid), Machine.BOOL)
    stating.require(negated(beyond), f"not beyond the last by {concealed_name(column.name)}", None)
    kernel.guard()
    return bound.text


def _unbounded(machine: Machine, descending: bool) -> int | float:
    if machine in (Machine.F32, Machine.F64):
        return float("-inf" if descending else "inf")
    last = I32_MAX if machine is Machine.I32 else I64_MAX
    return -last - 1 if descending else last


def _is_ordered(value: Value, is_stored: bool) -> bool:
    """Whether a term has the order of its values, and operators the very same ones."""
    if value.term.type in (Machine.F32, Machine.F64):
        return is_stored
    return value.interval is not None and value.values is None
