"""The cheapest order of joins: dynamic programming over sets of relations, greedy where there are too many sets.

A plan's cost is the rows that its joins read, hash and make.  Bushy trees are considered, cross products only where the graph is
not connected.  Semi and anti joins are units too: they can stand at any set that has the relations that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..estimates.estimate import join_rows
from .join_graph import JoinGraph

MAX_UNITS = 10  # 3**10 / 2 pairs of sets take about 20 ms
BUILD = 2.0  # cost of a hashed row; a probed or made one costs 1


@dataclass(frozen=True, slots=True)
class Step:
    """The best known way to join a set of units: two smaller sets, or one relation."""

    units: int
    rows: float
    cost: float
    left: Step | None = None
    right: Step | None = None
    reducer: int | None = None  # position among the graph's reducers, applied to `left`


def best_order(graph: JoinGraph) -> Step:
    """Return a way to join all units of a graph."""
    count = len(graph.relations) + len(graph.reducers)
    if count <= MAX_UNITS:
        found = _dynamic(graph, count)
        if found is not None:
            return found
    return _greedy(graph)


def _single(graph: JoinGraph, unit: int) -> Step:
    return Step(1 << unit, graph.estimates[unit].rows, 0.0)


def _joined(graph: JoinGraph, a: Step, b: Step) -> Step:
    keys = graph.crossing(a.units, b.units)
    rows = join_rows(a.rows, b.rows, [(x.estimate, y.estimate) for x, y in keys])
    for residual in graph.completed(a.units, b.units):
        rows *= residual.selectivity
    small, large = (a, b) if a.rows <= b.rows else (b, a)
    read = max(1, len(keys)) * (BUILD * small.rows + large.rows)  # each key is hashed and compared
    cost = a.cost + b.cost + read + rows
    return Step(a.units | b.units, rows, cost, large, small)


def _reduced(graph: JoinGraph, step: Step, position: int) -> Step:
    reducer = graph.reducers[position]
    rows = step.rows * reducer.fraction
    small, large = min(step.rows, reducer.rows), max(step.rows, reducer.rows)
    cost = step.cost + BUILD * small + large + rows
    bit = 1 << (len(graph.relations) + position)
    return Step(step.units | bit, rows, cost, step, None, position)


def _dynamic(graph: JoinGraph, count: int) -> Step | None:
    """Fill a table of the best plan of each connected set, smaller sets first."""
    size = len(graph.relations)
    relations = graph.relation_mask
    best: dict[int, Step] = {1 << i: _single(graph, i) for i in range(size)}
    reach = reached(graph.neighbors)
    for units in range(1, 1 << count):
        if units in best or not units & relations:
            continue
        found: Step | None = None
        for position in range(len(graph.reducers)):
            bit = 1 << (size + position)
            below = best.get(units & ~bit) if units & bit else None
            needed = graph.reducers[position].units
            if below is not None and needed & units == needed:
                step = _reduced(graph, below, position)
                if found is None or step.cost < found.cost:
                    found = step
        for left, right in splits(units):
            a = best.get(left)
            if a is None or not reach[left & relations] & right:
                continue
            b = best.get(right)
            if b is None:
                continue
            lower = a.cost + b.cost + max(a.rows, b.rows)
            if found is None or lower < found.cost:
                step = _joined(graph, a, b)
                if found is None or step.cost < found.cost:
                    found = step
        if found is not None:
            best[units] = found
    return best.get((1 << count) - 1)


def reached(neighbors: Sequence[int]) -> list[int]:
    """Return for each set of relations the neighbors of its members."""
    found = [0] * (1 << len(neighbors))
    for units in range(1, len(found)):
        lowest = (units & -units).bit_length() - 1
        found[units] = found[units & (units - 1)] | neighbors[lowest]
    return found


def splits(units: int) -> Iterator[tuple[int, int]]:
    """Yield each division of a set into two, once."""
    lowest = units & -units
    rest = units ^ lowest
    part = rest
    while part:
        part = (part - 1) & rest
        yield part | lowest, rest ^ part


def _greedy(graph: JoinGraph) -> Step:
    """Join, again and again, the two sets whose join costs least; reducers as soon as they can be applied."""
    steps = [_single(graph, i) for i in range(len(graph.relations))]
    waiting = set(range(len(graph.reducers)))
    known: dict[
        tuple[int, int], tuple[bool, float, Step]
    ] = {}  # by the two sets, which stay as they are while others are joined
    while True:
        steps = [_all_reduced(graph, step, waiting) for step in steps]
        if len(steps) == 1:
            return steps[0]
        best: tuple[bool, float] | None = None
        joined = steps[0]
        for i, a in enumerate(steps):
            for b in steps[i + 1 :]:
                found = known.get((a.units, b.units))
                if found is None:
                    found = known[a.units, b.units] = _candidate(graph, a, b)
                if best is None or found[:2] < best:
                    best, joined = found[:2], found[2]
        steps = [s for s in steps if not s.units & joined.units]
        steps.append(joined)


def _candidate(graph: JoinGraph, a: Step, b: Step) -> tuple[bool, float, Step]:
    """Return the join of two sets, behind what it is chosen by: whether it multiplies rows, and what it costs."""
    joined = _joined(graph, a, b)
    return not _are_neighbors(graph, a, b), joined.rows + joined.cost - a.cost - b.cost, joined


def _all_reduced(graph: JoinGraph, step: Step, waiting: set[int]) -> Step:
    for position in sorted(waiting):
        needed = graph.reducers[position].units
        if needed & step.units == needed:
            step = _reduced(graph, step, position)
            waiting.discard(position)
    return step


def _are_neighbors(graph: JoinGraph, a: Step, b: Step) -> bool:
    reached = 0
    for unit in range(len(graph.relations)):
        if a.units >> unit & 1:
            reached |= graph.neighbors[unit]
    return bool(reached & b.units)
