"""Programs: what a kernel does to each row of its relation 0, and what becomes of the row.  `compile_pipeline` makes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from math import prod
from typing import TypeVar

from ..plan.expr import AggregateCall, Column, Expr
from ..plan.physical import Physical
from ..records import dataclass
from ..storage.columns.encodings import Array
from .groups.accumulate import Accumulator, Folded
from .groups.grouping import Grouping
from .indexes.layers import Buffer, Index, KeptKey
from .loop import Doubt, Guard, Machine, Name, Search, Statement
from .row_sources import RowSource
from .typed_values import Element, Input, Parameter, TableParameter
from .udf.function_text import DeviceFunction

WHOLE_COUNT = 32  # bits of a count that shares its word with no other

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """What the threads of a CUDA multiprocessor share: bytes of one block at most, bytes of all blocks, resident threads."""

    block: int
    processor: int
    threads: int


HOPPER = SharedMemory(227 * 1024, 228 * 1024, 2048)


@dataclass(frozen=True, slots=True)
class LateColumn:
    """A result column that is computed after the kernel, on columns of relations gathered at row numbers.

    `expr` reads aliases (values of `RowSource.aliases`); where a row number is -1 they are NULL.
    """

    column: Column
    expr: Expr


@dataclass(frozen=True, slots=True)
class Ranking:
    """That a kernel ranks all rows of its relation 0 before it goes through them: the arguments of `rank_rows`."""

    codes: str
    ranks: str
    step: str


@dataclass(frozen=True, eq=False)
class Program:
    """A kernel, ready to be printed: one that aggregates, that makes an index, that lists rows, or that selects rows.

    `inputs` are columns of relation 0, loaded for every row.  `body` names values, filters and probes, in the chain's order;
    `keep` is the variable that says whether the row is still in (None: what reaches the sink is in).  A `Doubt` among the
    statements makes the kernel give up its answer.

    `index`: the kernel fills it; its accumulators are then, in this order, the rows put in, the rows whose key is NULL and
    the repeated keys (0 for hashed ones, which are counted afterwards).  `rows_out`: relations whose row numbers come out,
    an int32 array each (those of `TRUTHS` are BOOLEANs); accumulators are then none.  A program without either and without
    accumulators says of each row whether it is in (`compile_pipeline.selected`).  `bound`: the parameter beyond which an order leaves rows out.  `ranking`: the index is one of ranks, of rows that are in or not.

    `repeats`: rows may reach the sink more often than relation 0 has rows, without a known limit.  Sums are then exact for
    2**31 rows a group: the operator has to see that no element of accumulator `counted` reaches that, else the answer is
    in doubt.  No target may assume a number of values for a thread or block.

    `count_bits`: of a count in a table of many groups while a CUDA kernel runs (`cuda.packed_counters`).  `shared_memory`: of the device
    that a CUDA kernel is made for.
    """

    name: str
    inputs: tuple[Input, ...]
    names: dict[Column, str]
    parameters: tuple[Parameter, ...]
    tables: tuple[TableParameter, ...]
    body: tuple[Statement, ...]
    keep: Name | None
    grouping: Grouping | None
    accumulators: tuple[Accumulator, ...]
    folded: tuple[Folded, ...]
    calls: tuple[AggregateCall, ...] = ()  # those of `folded`, over the columns of the scan
    relations: tuple[RowSource, ...] = ()  # by number
    elements: tuple[Element, ...] = ()
    buffers: tuple[Buffer, ...] = ()  # of indexes, in the order of parameters
    index: Index | None = None
    rows_out: tuple[int, ...] = ()
    late: tuple[LateColumn, ...] = ()
    bound: str | None = None
    repeats: bool = False
    counted: int | None = None  # the accumulator of each group's rows, where these may be 2**31
    ranking: Ranking | None = None
    count_bits: int = WHOLE_COUNT
    shared_memory: SharedMemory = HOPPER
    functions: tuple[DeviceFunction, ...] = ()  # in Python, compiled
    kept_keys: tuple[KeptKey, ...] = ()  # by which a target may leave out rows before it loads them

    @cached_property
    def selects(self) -> bool:
        """Whether it says of each row whether it is in."""
        return not (self.rows_out or self.accumulators or self.index is not None)

    @cached_property
    def read(self) -> tuple[tuple[Physical, Column], ...]:
        """The columns that it reads, by their leaves and by the names that they have there, in the order of its parameters."""
        named = [(0, each.column) for each in self.inputs]
        named += [(element.relation, element.input.column) for element in self.elements]
        stored = [relation.stored for relation in self.relations]
        return tuple((self.relations[n].leaf, stored[n][alias]) for n, alias in named)

    @cached_property
    def constants(self) -> tuple[int | float | Array, ...]:
        """What its kernel takes behind columns and buffers: numbers and tables, in the order of its parameters."""
        return *(p.value for p in self.parameters), *(t.array for t in self.tables)

    @cached_property
    def slots(self) -> tuple[tuple[str, int], ...]:
        """For each accumulator the array that holds it (`out_i` for int64, `out_f` for float64) and its row there."""
        counts = {"out_i": 0, "out_f": 0}
        slots = []
        for accumulator in self.accumulators:
            array = "out_f" if accumulator.machine is Machine.F64 else "out_i"
            slots.append((array, counts[array]))
            counts[array] += 1
        return tuple(slots)

    @property
    def reach(self) -> float:
        """The share of relation 0's rows that reach the sink, by the planner's estimates; 1 where there are none."""
        return prod(s.share for s in self.body if isinstance(s, Guard) and s.share is not None)

    @property
    def doubts(self) -> bool:
        """Whether the kernel may give up its answer."""
        return any(
            isinstance(s, Doubt)
            or (isinstance(s, Search) and any(isinstance(part, Doubt) for part in s.body))
            for s in self.body
        )


def once(make: Callable[[Program], Found]) -> Callable[[Program], Found]:
    """Have a function of a program look at each program once, however many ask: the answer is kept as long as the program is."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def remembered(program: Program) -> Found:
        kept = program.__dict__
        if name not in kept:
            kept[name] = make(program)
        found: Found = kept[name]
        return found

    return remembered
