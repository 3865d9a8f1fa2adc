"""Long texts that mostly differ are tested and computed with last, where filters and joins leave few rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise

from ...plan import physical as p
from ...plan.all_values import never_raises
from ...plan.expr import Column, ColumnRef, Expr, columns_of, conjunction, conjuncts
from ...plan.node import walk
from ...plan.pipeline_steps import probed, spine
from ...plan.types import Kind
from ...records import dataclass
from ..estimates.selectivity import selectivity
from .pipeline_shape import Body, has_joins, table_rows
from .two_phase_aggregation import carried

LATE_SHARE = 0.25  # of a table's rows, up to which others are stored before texts are tested
TAKEN = 3.0  # expressions that are computed of texts while these are stored
TEXT_ROWS = 1 << 17  # whose texts take longer than one more kernel and the rows that it lists


def filter_texts_late(node: p.Physical, body: Body) -> p.Physical | None:
    """Filter(like(t), x) below filters and joins  ->  Filter(like(t), Stored), with what all others leave as an input.  Compute(f(t), x)
    below an aggregate  ->  Compute(f(t), Stored).

    A kernel has such texts tested, and computed with, in all rows before it starts.  Of 800,000 comments beside two joins that leave a
    tenth of the rows testing was 37 of 40 ms of CPU time (SF1, two busy cores).  Of 520 random queries 19 compute with few rows' texts: they
    take 0.48 of the CPU time on average, the best 0.07, the worst 1.11.  A GPU tests all of them as fast as it lists rows.
    `LATE_SHARE` = 0 switches the first off, `TAKEN` = inf the second.
    """
    if node.device != "cpu":
        return None
    made = _Late(body).visit(node)
    return None if made is node else made


@dataclass(frozen=True, slots=True)
class _Tests:
    """Tests of texts that wait until the node at `place` of a path has made its rows, and how many rows each node makes without them."""

    place: int
    parts: tuple[Expr, ...]
    rows: Sequence[float]


@dataclass
class _Late:
    """One pass over a body; a part that is reached twice stays one object."""

    body: Body
    done: dict[int, tuple[p.Physical, p.Physical]] = field(default_factory=dict)

    def visit(self, node: p.Physical, ends: bool = False) -> p.Physical:
        """Return a body; `ends`: a chain whose rows go to groups or into an index, so that they may be stored before."""
        if id(node) not in self.done:
            self.done[id(node)] = node, self._late(node, ends) or self._below(node)
        return self.done[id(node)][1]

    def _below(self, node: p.Physical) -> p.Physical:
        place = None if isinstance(node, p.HashAggregate) else probed(node)
        children = [self.visit(child, at != place) for at, child in enumerate(node.children)]
        same = all(a is b for a, b in zip(children, node.children, strict=True))
        return node if same else node.with_children(children)

    def _tests(self, path: Sequence[p.Physical]) -> _Tests | None:
        leaf, parts = path[-1], list[Expr]()
        rows = [0.0] * len(path)
        rows[-1] = total = table_rows(leaf)
        if not isinstance(leaf, p.ParquetScan | p.MemoryScan) or total < TEXT_ROWS:
            return None
        texts = frozenset(c for c in leaf.columns if _is_long(leaf, c))
        best = None
        for place in reversed(range(len(path) - 1)):
            node = path[place]
            found = _text_tests(node, texts, frozenset(leaf.columns))
            parts += found
            share = self._share(node, found)
            if share is None or (parts and not _may_come_first(node, found)):
                break
            rows[place] = rows[place + 1] * share
            if parts and (best is None or rows[place] < rows[best.place]):
                best = _Tests(place, tuple(parts), rows)
        if best is None or rows[best.place] > LATE_SHARE * total:
            return None
        region = path[best.place]
        computes = any(isinstance(n, p.ComputeColumns) for n in path[best.place :])
        alone = not any(isinstance(n, p.Stored) for n in walk(region))
        return best if alone and (has_joins(region) or not computes) else None

    def _share(self, node: p.Physical, late: Sequence[Expr]) -> float | None:
        """Return which share of the rows a node lets through without some of its tests."""
        below = node.children[probed(node) or 0]
        if isinstance(node, p.FilterRows) and late:
            others = [part for part in conjuncts(node.predicate) if part not in late]
            known = self.body.estimates.relation(below)
            return selectivity(conjunction(others), known.columns) if others else 1.0
        return node.estimate / below.estimate if node.estimate and below.estimate else None

    def _computed(self, path: Sequence[p.Physical]) -> int | None:
        """Return the place of the node that computes with texts of few of the leaf's rows, none of which has been tested before.

        How many rows such tests leave is not known well, and a kernel computes what is tested and asked for once.
        """
        leaf = path[-1]
        total = table_rows(leaf)
        if not isinstance(leaf, p.ParquetScan | p.MemoryScan) or total < TEXT_ROWS:
            return None
        texts = frozenset(c for c in leaf.columns if _is_long(leaf, c))
        for place, (node, below) in enumerate(pairwise(path)):
            computed = 0
            if isinstance(node, p.ComputeColumns):
                made = (e for _, e in node.items if not isinstance(e, ColumnRef))
                computed = sum(1 for e in made if columns_of(e) & texts)
            if computed:
                most = total * computed / (computed + TAKEN)
                is_few = below.estimate is not None and below.estimate <= most
                alone = not any(isinstance(n, p.Stored) for n in walk(below))
                tests = any(_text_tests(n, texts, texts) for n in path[place + 1 :])
                return place if is_few and alone and not tests else None
        return None

    def _stored(self, made: p.Physical) -> p.Stored:
        """Rows that are an input."""
        stored = p.Stored(len(self.body.inputs), made.columns).placed_as(made)
        self.body.inputs.append(made)
        return stored

    def _late(self, node: p.Physical, ends: bool) -> p.Physical | None:
        path = list(spine(node))
        tests = self._tests(path) if ends else None
        if tests is None:
            place = self._computed(path) if ends else None
            return (
                None if place is None else _over(path[: place + 1], self._stored(path[place + 1]))
            )
        made = path[-1]
        for place in reversed(range(tests.place, len(path) - 1)):
            made = _without(path[place], tests.parts, made, tests.rows[place])
        for column in sorted(frozenset().union(*map(columns_of, tests.parts)), key=lambda c: c.id):
            made = carried(made, column)
        top, stored = path[tests.place], self._stored(made)
        tested = p.FilterRows(stored, conjunction(list(tests.parts)), top.columns).placed_as(top)
        return _over(path[: tests.place], tested)


def _is_long(leaf: p.ParquetScan | p.MemoryScan, column: Column) -> bool:
    """Whether a column is text that will be no dictionary, as far as statistics know that."""
    if column.type.kind is not Kind.VARCHAR:
        return False
    known = leaf.table.statistics().columns.get(leaf.sources[leaf.made.index(column)])
    return known is not None and not (
        known.distinct or known.likely_distinct or known.comes_again()
    )


def _text_tests(
    node: p.Physical, texts: frozenset[Column], columns: frozenset[Column]
) -> list[Expr]:
    """Return the conditions of a filter that read texts of the leaf, and nothing but the leaf."""
    if not isinstance(node, p.FilterRows):
        return []
    return [
        c for c in conjuncts(node.predicate) if columns_of(c) <= columns and columns_of(c) & texts
    ]


def _may_come_first(node: p.Physical, late: Sequence[Expr]) -> bool:
    """Whether a node may see rows that tests of texts would have dropped: nothing that it computes is an error in any."""
    match node:
        case p.FilterRows(predicate=predicate):
            return all(never_raises(c) for c in conjuncts(predicate) if c not in late)
        case p.ComputeColumns(items=items):
            return all(never_raises(expr) for _, expr in items)
        case p.HashJoin(residual=condition) | p.NestedLoopJoin(condition=condition):
            return condition is None or never_raises(condition)
    return False


def _over(path: Sequence[p.Physical], made: p.Physical) -> p.Physical:
    for node in reversed(path):
        children = list(node.children)
        children[probed(node) or 0] = made
        made = node.with_children(children)
    return made


def _without(node: p.Physical, late: Sequence[Expr], below: p.Physical, rows: float) -> p.Physical:
    """Return a node over another one below it, and without some of its tests."""
    if isinstance(node, p.FilterRows):
        others = [part for part in conjuncts(node.predicate) if part not in late]
        if not others:
            return below
        return replace(node, input=below, predicate=conjunction(others), estimate=rows)
    children = list(node.children)
    children[probed(node) or 0] = below
    return replace(node.with_children(children), estimate=rows)
