"""Plan trees as text: one node a line, inputs indented below, columns by name.

Two columns of a tree that share a name are told apart by #1, #2 ... in the order in which they are met; ids never show,
so the text of a query is the same in each run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from .. import logical as rel, physical as p
from ..exchange import Exchange
from ..expr import Column, ColumnRef, Expr, columns_of
from ..node import Node
from ..partitioning import described
from ..window.window_call import Window
from ..window.window_operator import WindowRows
from .expr_text import expression, order_text

__all__ = ["describe", "expression", "tree"]

INDENT = "  "
_ROWS_SHOWN = 4
_HIDDEN_FIELDS = ("device", "reason", "estimate", "not_fused", "partitioning", "steps")


def tree(plan: Node) -> str:
    """Return a logical or physical plan as an indented tree; a node that is reached twice is written out once.

    Below a pipeline stand its source, its steps and its sink in the order in which rows meet them, below a join among them the chain
    that it looks rows up in, and below `Stored i` the operators of the pipeline's input i.  Why nodes are not on the GPU, or in no
    pipeline, stands below the tree, each reason once.
    """
    return PlanTree(plan).text()


def describe(plan: Node) -> str:
    """Return the one line that stands for the root of `plan` in its tree, without device and estimate."""
    return PlanTree(plan).line(plan)


class PlanTree:
    """The names of the columns and subqueries of one plan."""

    def __init__(self, plan: Node) -> None:
        self.plan = plan
        self.names: dict[int, str] = {}
        by_name: dict[str, list[int]] = {}
        for column in _columns(plan, set()):
            if column.id not in self.names:
                self.names[column.id] = column.name
                by_name.setdefault(column.name, []).append(column.id)
        for name, ids in by_name.items():
            if len(ids) > 1:
                self.names.update({id_: f"{name}#{i}" for i, id_ in enumerate(ids, 1)})
        self.subqueries: dict[int, int] = {}  # id of the plan object -> number
        self.written: set[int] = set()
        nodes = list(_physical(plan, set())) if isinstance(plan, p.Physical) else []
        self.reasons = _in_order(n.reason for n in nodes)
        self.not_fused = _in_order(n.not_fused for n in nodes)

    def text(self) -> str:
        return "\n".join([*self.lines(self.plan, 0), *self.footnotes()])

    def lines(self, node: Node, depth: int) -> Iterator[str]:
        """Yield the lines of a tree."""
        own = INDENT * depth + self.line(node)
        below: tuple[Node, ...] = node.children
        if isinstance(node, rel.CommonScan):
            below = (node.common.plan,)
        if id(node) in self.written and below:
            yield f"{own}  (as above)"
            return
        self.written.add(id(node))
        yield own + self.placement(node)
        for subquery in _subqueries(node):
            number = self.number(subquery)
            yield f"{INDENT * (depth + 1)}subquery {number}:"
            yield from self.lines(subquery, depth + 2)
        if isinstance(node, p.Pipeline):
            yield from self.steps(node, depth + 1)
            return
        for child in below:
            yield from self.lines(child, depth + 1)

    def steps(self, pipeline: p.Pipeline, depth: int) -> Iterator[str]:
        """Yield the lines of a pipeline's steps."""
        for more, node, again in pipeline.steps.listed():
            own = INDENT * (depth + more) + self.line(node)
            if again or (isinstance(node, p.Stored) and id(node) in self.written):
                yield f"{own}  (as above)"
                continue
            self.written.add(id(node))
            yield own + self.placement(node)
            if isinstance(node, p.Stored):
                yield from self.lines(pipeline.inputs[node.number], depth + more + 1)

    def placement(self, node: Node) -> str:
        if not isinstance(node, p.Physical):
            return ""
        rows = "" if node.estimate is None else f", ~{node.estimate:,.0f} rows"
        apart = ""
        if node.not_fused is not None:
            several = len(self.not_fused) > 1
            number = f" {self.not_fused.index(node.not_fused) + 1}" if several else ""
            apart = f", not fused{number}"
        at = node.partitioning
        where = "" if at is None else f", {described(at, self.name)}"
        return f"  [{self.device(node)}{rows}{apart}{where}]"

    def device(self, node: p.Physical) -> str:
        """Return the device, with the number of its reason where there are several."""
        if node.reason is None or len(self.reasons) == 1:
            return node.device
        return f"{node.device} {self.reasons.index(node.reason) + 1}"

    def footnotes(self) -> list[str]:
        return [*_numbered("cpu", self.reasons), *_numbered("not fused", self.not_fused)]

    def line(self, node: Node) -> str:
        if isinstance(node, Exchange):
            keys = self.value(node.orders) if node.orders else self.by(self.columns(node.keys))
            return INDENT.join([f"Exchange {node.kind}", *filter(None, [keys, *node.details()])])
        details = [d for d in self.details(node) if d]
        return INDENT.join([type(node).__name__ + self.kind(node), *details])

    def kind(self, node: Node) -> str:
        kind = getattr(node, "kind", None)
        return f" {kind}{' all' if getattr(node, 'all', False) else ''}" if kind else ""

    def details(self, node: Node) -> list[str]:
        if isinstance(node, p.Physical):
            return self.physical(node)
        match node:
            case rel.Filter(predicate=predicate):
                return [self.expr(predicate)]
            case rel.Project(items=items):
                return [self.items(items)]
            case rel.Join(condition=condition):
                return [*self.join(node), self.condition(condition)]
            case rel.Aggregate():
                return self.aggregate(node)
            case rel.Distinct(on=on):
                return ["" if on is None else f"on {self.exprs(on)}"]
            case Window(partition=partition, order=order, calls=calls):
                ordered = f"order by {self.exprs(order)}" if order else ""
                return [self.by(self.exprs(partition)), ordered, self.items(calls)]
            case rel.Sort(keys=keys):
                return [self.exprs(keys)]
            case rel.Limit():
                return [self.limit(node)]
            case rel.Scan():
                return [node.table.name, self.sources(node)]
            case rel.CommonScan(common=common):
                return [common.name, self.common(node)]
            case rel.SetOperation(made=made):
                return [self.columns(made)]
            case rel.Range():
                return [self.range(node)]
            case rel.Values():
                return [self.rows(node)]
        return self.fields(node)

    def physical(self, node: p.Physical) -> list[str]:
        match node:
            case p.FilterRows(predicate=predicate):
                return [self.expr(predicate), self.keep(node)]
            case p.ComputeColumns(items=items):
                return [self.items(items)]
            case p.NestedLoopJoin(condition=condition):
                return [*self.join(node), self.condition(condition), self.keep(node)]
            case p.HashJoin():
                return [*self.join(node), *self.hash_join(node), self.keep(node)]
            case p.HashAggregate(keys=keys, aggregates=aggregates):
                return [self.by(self.columns(keys)), self.items(aggregates)]
            case WindowRows(partition=partition, order=order, calls=calls):
                ordered = f"order by {self.value(order)}" if order else ""
                return [self.by(self.columns(partition)), ordered, node.cut, self.items(calls)]
            case p.SortRows(keys=keys):
                return [self.value(keys)]
            case p.TopK(keys=keys):
                return [self.value(keys), self.limit(node)]
            case p.LimitRows():
                return [self.limit(node)]
            case p.ParquetScan() | p.MemoryScan():
                return self.scan(node)
            case p.RangeScan():
                return [self.range(node)]
            case p.ValuesScan():
                return [self.rows(node)]
            case p.Transfer(device=device):
                return [f"to {device}"]
            case p.Stored(number=number):
                return [str(number)]
        return self.fields(node)

    # The parts of a line

    def name(self, column: Column) -> str:
        return self.names.get(column.id, column.name)

    def columns(self, columns: tuple[Column, ...]) -> str:
        return ", ".join(map(self.name, columns))

    def expr(self, expr: Expr) -> str:
        return expression(expr, self.name, lambda plan: f"subquery {self.number(plan)}")

    def exprs(self, exprs: tuple[Expr, ...]) -> str:
        return ", ".join(map(self.expr, exprs))

    def number(self, plan: rel.Logical) -> int:
        return self.subqueries.setdefault(id(plan), len(self.subqueries) + 1)

    def condition(self, condition: Expr | None) -> str:
        return "" if condition is None else self.expr(condition)

    def range(self, node: rel.Range | p.RangeScan) -> str:
        step = "" if node.step == 1 else f" by {node.step}"
        return f"{self.name(node.made)} from {node.start} to {node.stop}{step}"

    def scan(self, node: p.ParquetScan | p.MemoryScan) -> list[str]:
        pruned = getattr(node, "pruned", 0)
        groups = f"{pruned} row groups pruned" if pruned else ""
        return [node.table.name, self.sources(node), groups]

    def items(self, items: Sequence[tuple[Column, Expr]]) -> str:
        return ", ".join(self.item(column, value) for column, value in items)

    def item(self, column: Column, value: Expr) -> str:
        text, name = self.expr(value), self.name(column)
        return text if text == name else f"{text} as {name}"

    def keep(self, node: p.FilterRows | p.HashJoin | p.NestedLoopJoin) -> str:
        return "" if node.keep is None else f"-> {self.columns(node.keep) or 'nothing'}"

    def join(self, node: rel.Join | p.HashJoin | p.NestedLoopJoin) -> list[str]:
        aware = "null-aware" if getattr(node, "null_aware", False) else ""
        mark = "" if node.mark is None else f"mark {self.name(node.mark)}"
        return [aware, mark]

    def hash_join(self, node: p.HashJoin) -> list[str]:
        pairs = [
            f"{self.name(a)} {'is not distinct from' if same_null else '='} {self.name(b)}"
            for a, b, same_null in zip(
                node.left_keys, node.right_keys, node.null_equal, strict=True
            )
        ]
        residual = f"if {self.expr(node.residual)}" if node.residual is not None else ""
        return [" and ".join(pairs), residual, f"build={node.build}"]

    def by(self, keys: str) -> str:
        return f"by {keys}" if keys else ""

    def aggregate(self, node: rel.Aggregate) -> list[str]:
        sets = ""
        if node.grouping_sets is not None:
            keys = [self.name(column) for column, _ in node.keys]
            groups = ", ".join(
                f"({', '.join(keys[i] for i in places)})" for places in node.grouping_sets
            )
            sets = f"sets {groups}"
        grouping = "" if node.grouping_id is None else f"grouping {self.name(node.grouping_id)}"
        return [self.by(self.items(node.keys)), sets, self.items(node.aggregates), grouping]

    def limit(self, node: rel.Limit | p.LimitRows | p.TopK) -> str:
        count = "all" if node.count is None else str(node.count)
        text = f"{count} offset {node.offset}" if node.offset else count
        match node:
            case rel.Limit(per=(_, *_) as per):
                return f"{text} per {self.exprs(per)}"
            case p.LimitRows(keys=(_, *_) as keys):
                return f"{text} per {self.columns(keys)}"
        return text

    def sources(self, node: rel.Scan | p.ParquetScan | p.MemoryScan) -> str:
        pairs = zip(node.made, node.sources, strict=True)
        return ", ".join(
            self.name(c) if c.name == source else f"{source} as {self.name(c)}"
            for c, source in pairs
        )

    def common(self, node: rel.CommonScan) -> str:
        pairs = ((m, ColumnRef(s)) for m, s in zip(node.made, node.sources, strict=True))
        return self.items(tuple(pairs))

    def rows(self, node: rel.Values | p.ValuesScan) -> str:
        shown = [f"({self.exprs(row)})" for row in node.rows[:_ROWS_SHOWN]]
        more = len(node.rows) - len(shown)
        text = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
        return f"{self.columns(node.made)}: {text}" if node.made else text

    def fields(self, node: Node) -> list[str]:
        """Return a node that has no form of its own here by its fields."""
        found = []
        for field in dataclasses.fields(node):  # type: ignore[arg-type]
            value = getattr(node, field.name)
            plain = field.name in node.CHILDREN or field.name in (*_HIDDEN_FIELDS, "kind", "all")
            if not plain and value not in (None, (), False):
                found.append(f"{field.name}={self.value(value)}")
        return found

    def value(self, value: object) -> str:
        match value:
            case Column():
                return self.name(value)
            case Expr():
                return self.expr(value)
            case p.Order():
                return self.name(value.column) + order_text(value.descending, value.nulls_first)
            case (Column() as column, Expr() as expr):
                return self.item(column, expr)
            case p.FirstRows(order=order, count=count):
                return f"{count:,} by {self.value(order)}"
            case tuple():
                return ", ".join(map(self.value, value))
        name = getattr(value, "name", None)
        return name if isinstance(name, str) else str(value)


def _columns(node: Node, seen: set[int]) -> Iterator[Column]:
    """Yield the columns of a tree, each node's own before those of its inputs."""
    if id(node) in seen:
        return
    seen.add(id(node))
    yield from getattr(node, "columns", ())
    for value in _values(node):
        if isinstance(value, Column):
            yield value
        elif isinstance(value, Expr):
            yield from sorted(columns_of(value), key=lambda c: c.id)
    for child in (*_subqueries(node), *_below(node)):
        yield from _columns(child, seen)


def _below(node: Node) -> tuple[Node, ...]:
    """The nodes below one: its inputs, and before them the operators that a pipeline stands for."""
    match node:
        case p.Pipeline(body=body, inputs=inputs):
            return (body, *inputs)
        case rel.CommonScan(common=common):
            return (common.plan,)
    return node.children


def _physical(node: Node, met: set[int]) -> Iterator[p.Physical]:
    """Yield operators, those in pipelines too, each once."""
    if isinstance(node, p.Physical) and id(node) not in met:
        met.add(id(node))
        yield node
        for child in _below(node):
            yield from _physical(child, met)


def _in_order(reasons: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(r for r in reasons if r is not None))


def _numbered(label: str, reasons: list[str]) -> Iterator[str]:
    """Yield footnotes, with numbers where there are several."""
    for i, reason in enumerate(reasons, 1):
        yield f"{label} {i}: {reason}" if len(reasons) > 1 else f"{label}: {reason}"


def _values(node: Node) -> Iterator[object]:
    """Yield what the fields of a node hold, out of their tuples, without its children."""
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        if field.name not in node.CHILDREN:
            yield from _flat(getattr(node, field.name))


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _subqueries(node: Node) -> Iterator[rel.Logical]:
    for value in _values(node):
        if isinstance(value, Expr):
            yield from (subquery.plan for subquery in value.subqueries)
