"""The body of a pipeline as a tree of operators: what it probes, and how it runs where no kernel holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from ..plan import physical as p
from ..plan.expr import Literal
from ..plan.join_kinds import JoinKind
from ..plan.node import transform_up, walk
from ..records import dataclass
from .context import Context


class BackendTable(Protocol):
    """A backend's table, of which those that only pass it on know this much."""

    @property
    def num_rows(self) -> int: ...


T = TypeVar("T", bound=BackendTable)
Operator = Callable[[Any, tuple[T, ...], Context], T]  # of the node that its row of the table names


@dataclass(frozen=True)
class Operators(Generic[T]):
    """What a backend runs a body with: its operators, and the bytes that a table takes."""

    by_node: Mapping[type[p.Physical], Operator[T]]
    num_bytes: Callable[[T], int]


def run_operators(
    body: p.Physical, stored: tuple[T, ...], context: Context, operators: Operators[T]
) -> T:
    """Run a body one operator at a time; `stored` are the tables of the pipeline's inputs.

    Tables in between count towards the memory limit.
    """
    running = _Running(stored, context, operators, body)
    try:
        return running.table(body)
    finally:
        context.hold(body, -running.held)


class _Running(Generic[T]):
    """One run of a body; no closure, since one that calls itself would keep all tables until Python looks for cycles."""

    def __init__(
        self,
        stored: tuple[T, ...],
        context: Context,
        operators: Operators[T],
        body: p.Physical,
    ) -> None:
        self._stored, self._context, self._operators = stored, context, operators
        self._shares = iter(
            context.progress.parts(sum(not isinstance(node, p.Stored) for node in walk(body)))
        )
        self.held = 0

    def table(self, node: p.Physical) -> T:
        if isinstance(node, p.Stored):
            return self._stored[node.number]
        node = on_condition(node)
        inputs = tuple(map(self.table, node.children))
        if (chunk := self._context.chunk.get(id(node))) is not None:
            node = chunk.scan
        self._context.check()
        self._context.progress.within(next(self._shares))
        made = self._operators.by_node[type(node)](node, inputs, self._context)
        for child, given in zip(node.children, inputs, strict=True):
            if not isinstance(child, p.Stored):
                self._hold(child, -self._operators.num_bytes(given))
        self._hold(node, self._operators.num_bytes(made))
        return made

    def _hold(self, node: p.Physical, nbytes: int) -> None:
        self.held += nbytes
        self._context.hold(node, nbytes)


def on_condition(node: p.Physical) -> p.Physical:
    """Return a filter over pairs of all rows, which kernels have by a key that is the same in all, as a join on its condition.

    Six million line items by four quarters are 24 million pairs: 2.2 s of CPU time in a first run, and 0.05 s as ranges of the dates.
    """
    match node:
        case p.FilterRows(
            input=p.HashJoin(
                kind=JoinKind.INNER,
                left=p.ComputeColumns(items=left) as x,
                right=p.ComputeColumns(items=right) as y,
                left_keys=(a,),
                right_keys=(b,),
                residual=None,
            )
        ):
            key = dict(left).get(a)
            if isinstance(key, Literal) and key.value is not None and key == dict(right).get(b):
                made = p.NestedLoopJoin(x, y, JoinKind.INNER, node.predicate, keep=node.columns)
                return made.placed_as(node)
    return node


def opened(pipeline: p.Pipeline) -> p.Physical:
    """Return a pipeline as the operators of its body, over its inputs."""

    def given(node: p.Physical) -> p.Physical | None:
        return pipeline.inputs[node.number] if isinstance(node, p.Stored) else None

    return transform_up(pipeline.body, given)
