"""A chain of physical operators -> what a kernel does to each row.

The chain is FilterRows and ComputeColumns over a scan, below a HashAggregate or, for rows that come out as rows, nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..plan.expr import Column, ColumnRef, Expr
from ..plan.physical import ComputeColumns, FilterRows, HashAggregate, Physical
from ..plan.text import expression
from .accumulate import Accumulator, Accumulators, Folded, fold_call
from .loop import Apply, Convert, Let, Machine, Name, Number, Select, Term
from .ranges import Interval
from .translate import translate
from .values import Input, Kernel, NotFusable, Value


@dataclass(frozen=True, slots=True)
class Key:
    """A group key as a component of the dense group number: (value - low), times `stride`; NULL is `size - 1`."""

    column: Column
    low: int
    size: int
    stride: int
    nullable: bool
    values: Any = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a row finds its group: the term of its number below `groups`, and the way back to key values.

    `rows` is the accumulator that counts a group's rows, which says whether the group exists.
    """

    keys: tuple[Key, ...]
    slot: Term
    groups: int
    rows: int


@dataclass(frozen=True, slots=True)
class Program:
    """A pipeline that aggregates, ready to be printed.

    `body` names values and filters, in the chain's order; `keep` is the variable that says whether the row is still in.
    `doubt` is the term that makes the kernel give up its answer.
    """

    name: str
    inputs: tuple[Input, ...]
    names: dict[Column, str]
    kernel: Kernel
    body: tuple[Let, ...]
    keep: Name | None
    doubt: Term | None
    grouping: Grouping | None
    accumulators: tuple[Accumulator, ...]
    folded: tuple[Folded, ...]


def program(
    root: HashAggregate,
    inputs: dict[Column, Input],
    fold: Callable[[Expr, Input], Any],
    rows: int,
    group_limit: int,
) -> Program:
    """Return an aggregating chain as a program; raises `NotFusable` with the reason.

    `rows` is an upper bound of the input's rows, `group_limit` of the groups that may be addressed directly.
    """
    kernel = Kernel(inputs, fold, names=_readable_names(inputs))
    chain = _Chain(kernel)
    for node in _chain_below(root.input):
        chain.step(node)
    accumulators = Accumulators()
    grouping = _grouping(root.keys, kernel, group_limit, accumulators) if root.keys else None
    folded = tuple(fold_call(c, call, kernel, accumulators, rows) for c, call in root.aggregates)
    chain.settle_doubts()
    used = tuple(inputs[c] for c in kernel.used)
    parts = ["scan"] + sorted({"filter" for n in [chain.keep] if n is not None})
    parts.append("group" if root.keys else "aggregate")
    return Program(
        "_".join(parts),
        used,
        kernel.names,
        kernel,
        tuple(chain.body),
        chain.keep,
        chain.doubt,
        grouping,
        tuple(accumulators.items),
        folded,
    )


def _chain_below(node: Physical) -> list[Physical]:
    """The filters and projections above the scan, from the scan upward."""
    found: list[Physical] = []
    while isinstance(node, FilterRows | ComputeColumns):
        found.append(node)
        node = node.input
    return found[::-1]


class _Chain:
    """The statements of filters and projections while they are collected."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.body: list[Let] = []
        self.keep: Name | None = None
        self.doubt: Term | None = None
        self._settled = 0

    def step(self, node: Physical) -> None:
        if isinstance(node, FilterRows):
            self._filter(node)
        elif isinstance(node, ComputeColumns):
            self._compute(node)

    def _filter(self, node: FilterRows) -> None:
        term = translate(node.predicate, self.kernel).term
        self.settle_doubts()
        if self.keep is not None:
            term = Apply("&", (self.keep, term), Machine.BOOL)
        self.keep = Name("keep", Machine.BOOL)
        self.body.append(Let(self.keep, term, f"filter {expression(node.predicate)}"))

    def _compute(self, node: ComputeColumns) -> None:
        made: dict[Column, Value] = {}
        for column, expr in node.items:
            if isinstance(expr, ColumnRef) and expr.column == column:
                continue
            made[column] = self._named(column, expr, translate(expr, self.kernel))
        self.kernel.values.update(made)

    def _named(self, column: Column, expr: Expr, value: Value) -> Value:
        """Give a computed value a variable of its column's name, so that it is computed once and reads well."""
        if isinstance(value.term, Name | Number):
            return value
        name = _unique(column.name, self.kernel)
        self.kernel.names[column] = name
        term = Name(name, value.term.type)
        self.body.append(Let(term, value.term, f"{column.name} = {expression(expr)}"))
        return Value(term, value.valid, value.interval, value.values)

    def settle_doubts(self) -> None:
        """Doubts that came up so far count for rows that are still in."""
        for doubt in self.kernel.doubts[self._settled :]:
            term = doubt if self.keep is None else Apply("&", (self.keep, doubt), Machine.BOOL)
            self.doubt = term if self.doubt is None else Apply("|", (self.doubt, term), Machine.BOOL)
        self._settled = len(self.kernel.doubts)


def _grouping(
    keys: tuple[Column, ...], kernel: Kernel, limit: int, accumulators: Accumulators
) -> Grouping:
    """Number the groups densely by the product of the keys' intervals."""
    found: list[tuple[Key, Term]] = []
    stride = 1
    for column in reversed(keys):
        value = translate(ColumnRef(column), kernel)
        interval = Interval(0, 1) if value.term.type is Machine.BOOL else value.interval
        if interval is None:
            raise NotFusable(f'the group key "{column.name}" is a {column.type}')
        size = interval.size + (value.valid is not None)
        found.append((Key(column, interval.low, size, stride, value.valid is not None, value.values), _part(value, interval, size)))
        stride *= size
        if stride > limit:
            raise NotFusable(f"the group keys have a domain of more than {limit} values")
    machine = Machine.I32
    slot: Term | None = None
    for key, part in found:
        scaled = part if key.stride == 1 else Apply("*", (part, Number(key.stride, machine)), machine)
        slot = scaled if slot is None else Apply("+", (slot, scaled), machine)
    assert slot is not None
    count = accumulators.add(Accumulator("add", Machine.I64, Number(1, Machine.I64)))
    return Grouping(tuple(k for k, _ in reversed(found)), slot, stride, count)


def _part(value: Value, interval: Interval, size: int) -> Term:
    term = value.term
    if term.type is not Machine.I32:
        if term.type is Machine.I64 and interval.low != 0:
            term = Apply("-", (term, Number(interval.low, Machine.I64)), Machine.I64)
            interval = Interval(0, interval.size - 1)
        term = Convert(term, Machine.I32)
    if interval.low != 0:
        term = Apply("-", (term, Number(interval.low, Machine.I32)), Machine.I32)
    if value.valid is None:
        return term
    return Select(value.valid, term, Number(size - 1, Machine.I32), Machine.I32)


def _readable_names(inputs: dict[Column, Input]) -> dict[Column, str]:
    names: dict[Column, str] = {}
    for column in inputs:
        names[column] = _free(_identifier(column.name), set(names.values()))
    return names


def _unique(name: str, kernel: Kernel) -> str:
    return _free(_identifier(name), set(kernel.names.values()))


def _free(name: str, taken: set[str]) -> str:
    number, candidate = 2, name
    while candidate in taken:
        candidate = f"{name}_{number}"
        number += 1
    return candidate


def _identifier(name: str) -> str:
    """A variable name that shows the column's; v_ keeps it apart from the generator's own words."""
    cleaned = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower()).strip("_")
    return cleaned if cleaned and cleaned[0].isalpha() and len(cleaned) > 2 else f"v_{cleaned or 'x'}"
