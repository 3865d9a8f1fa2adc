"""A chain of physical operators -> what a kernel does to each row.

The chain is FilterRows and ComputeColumns over a scan, below a HashAggregate or, for rows that come out as rows, nothing.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..plan.expr import AggregateCall, Column, ColumnRef, Expr
from ..plan.node import transform_up
from ..plan.physical import ComputeColumns, FilterRows, HashAggregate, Physical
from ..plan.text import expression
from .accumulate import Accumulator, Accumulators, Folded, fold_call
from .grouping import Grouping, grouping_of
from .loop import Apply, Let, Machine, Name, Number, Term
from .translate import translate
from .values import Input, Kernel, Value

# Words that a target uses in its kernels, besides those with digits at the end or of at most two letters
RESERVED = {
    *keyword.kwlist,
    *dir(builtins),
    *("start", "end", "row", "rows", "keep", "kept", "doubt", "slot", "table", "cuda", "block"),
    *(
        "thread",
        "lane",
        "grid",
        "tail",
        "word",
        "words",
        "stride",
        "first",
        "last",
        "value",
        "cell",
    ),
    *("other", "held", "offset", "shared_i", "shared_f", "out_i", "out_f", "array", "absolute"),
    *("order_of_double", "insert", "key", "keys", "hash", "filled"),
    *("threads", "copy", "copies", "step", "shared_n", "double_of_bits", "float_of_bits"),
}
ENDINGS = re.compile(
    r"_(code|valid|bits|mask|word\d*)$"
)  # which targets append to names of columns


@dataclass(frozen=True, slots=True)
class Program:
    """A pipeline, ready to be printed: one that aggregates, or without accumulators one that selects rows.

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
    calls: tuple[AggregateCall, ...] = ()  # those of `folded`, over the columns of the scan


def program(
    root: HashAggregate,
    inputs: dict[Column, Input],
    fold: Callable[[Expr, Input], Any],
    rows: int,
    group_limit: int,
    may_hash: bool = False,
) -> Program:
    """Return an aggregating chain as a program; raises `NotFusable` with the reason.

    `rows` is an upper bound of the input's rows, `group_limit` of the groups that may be addressed directly; `may_hash`
    says whether the target has hash tables for more.
    """
    kernel = Kernel(inputs, fold, names=_readable_names(inputs))
    chain = _Chain(kernel)
    for node in _chain_below(root.input):
        chain.step(node)
    accumulators = Accumulators()
    distinct = distinct_arguments(root)
    grouping = None
    if root.keys or distinct:
        count = accumulators.add(Accumulator("add", Machine.I64, Number(1, Machine.I64)))
        grouping = grouping_of(root.keys, distinct, kernel, group_limit, count, may_hash)
    folded = tuple(
        fold_call(c, call, kernel, accumulators, rows, distinct) for c, call in root.aggregates
    )
    chain.settle_doubts()
    used = tuple(inputs[c] for c in kernel.used)
    filters = ["filter"] if chain.keep is not None else []
    name = "_".join(["scan", *filters, "group" if root.keys else "aggregate"])
    return Program(
        name,
        used,
        kernel.names,
        kernel,
        tuple(chain.body),
        chain.keep,
        chain.doubt,
        grouping,
        tuple(accumulators.items),
        folded,
        tuple(
            replace(call, args=tuple(chain.over_inputs(a) for a in call.args))
            for _, call in root.aggregates
        ),
    )


def selection(
    root: FilterRows, inputs: dict[Column, Input], fold: Callable[[Expr, Input], Any]
) -> Program:
    """Return filters above a scan as a program that says of each row whether it is in; raises `NotFusable`."""
    kernel = Kernel(inputs, fold, names=_readable_names(inputs))
    chain = _Chain(kernel)
    for node in _chain_below(root):
        chain.step(node)
    used = tuple(inputs[c] for c in kernel.used)
    body = tuple(chain.body)
    return Program(
        "scan_filter", used, kernel.names, kernel, body, chain.keep, chain.doubt, None, (), ()
    )


def distinct_arguments(root: HashAggregate) -> tuple[Expr, ...]:
    """What the aggregates count each value of once, without repetition."""
    calls = [call for _, call in root.aggregates]
    return tuple(dict.fromkeys(c.args[0] for c in calls if c.distinct and c.function == "count"))


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
        self._computed: dict[Column, Expr] = {}

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
        self._computed.update({c: self.over_inputs(e) for c, e in node.items})
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
        return replace(value, term=term)

    def over_inputs(self, expr: Expr) -> Expr:
        """Return an expression with what its columns were computed from, down to those of the scan."""

        def computed(part: Expr) -> Expr | None:
            return self._computed.get(part.column) if isinstance(part, ColumnRef) else None

        return transform_up(expr, computed)

    def settle_doubts(self) -> None:
        """Doubts that came up so far count for rows that are still in."""
        for doubt in self.kernel.doubts[self._settled :]:
            term = doubt if self.keep is None else Apply("&", (self.keep, doubt), Machine.BOOL)
            self.doubt = (
                term if self.doubt is None else Apply("|", (self.doubt, term), Machine.BOOL)
            )
        self._settled = len(self.kernel.doubts)


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
    if ENDINGS.search(cleaned):
        cleaned += "_x"
    plain = len(cleaned) > 2 and cleaned[0].isalpha() and cleaned[-1].isalpha()
    return cleaned if plain and cleaned not in RESERVED else f"v_{cleaned or 'x'}"
