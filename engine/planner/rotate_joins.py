"""Joins of a cluster's plan in another order, so that what lies on one worker is joined before it moves.

HashJoin(a, HashJoin(b, c))  ->  HashJoin(HashJoin(a, b), c)        inner joins, where rows of a lie beside those of b
"""

from __future__ import annotations

from collections.abc import Callable

from ..plan.expr import columns_of
from ..plan.join_kinds import JoinKind
from ..plan.physical import HashJoin, Physical


def joined_sooner(
    join: HashJoin,
    side: int,
    goes_on: Callable[[Physical], bool],
    is_beside: Callable[[Physical], bool],
) -> HashJoin | None:
    """Return the joins below one side of a join with its other side in the deepest of them that this lies beside; None where it does nowhere.

    `goes_on` says of a join below whether it is read here alone.
    """
    path: list[tuple[HashJoin, int]] = []
    depth, node = 0, join.children[side]
    keys = frozenset((join.left_keys, join.right_keys)[side])
    while _is_inner(node) and node.device == join.device and goes_on(node):
        assert isinstance(node, HashJoin)
        place = next((i for i in (0, 1) if keys <= {*node.children[i].columns}), None)
        if place is None:
            break
        path.append((node, place))
        node = node.children[place]
        depth = len(path) if is_beside(node) else depth
    if not depth or not _is_inner(join):
        return None
    return _rebuilt(join, side, path[:depth])


def _is_inner(node: Physical) -> bool:
    return isinstance(node, HashJoin) and node.kind is JoinKind.INNER


def _rebuilt(join: HashJoin, side: int, path: list[tuple[HashJoin, int]]) -> HashJoin | None:
    other, (last, place) = join.children[1 - side], path[-1]
    near = last.children[place]
    there = {*other.columns, *near.columns}
    if join.residual is not None and not columns_of(join.residual) <= there:
        return None
    wanted = {*join.columns}
    for above, _ in path:
        wanted |= {*above.left_keys, *above.right_keys}
        if above.residual is not None:
            wanted |= columns_of(above.residual)
    before, after = join.children[side].estimate, join.estimate
    share = None if not before or after is None else after / before

    def over(node: HashJoin, place: int, child: Physical, rows: float | None) -> HashJoin:
        sides = [*node.children]
        sides[place] = child
        left, right = sides
        sizes = [side.estimate for side in sides]
        build = node.build
        if None not in sizes:
            build = "left" if sizes[0] < sizes[1] else "right"
        expected = None if rows is None or share is None else rows * share
        keep = tuple(c for c in (*left.columns, *right.columns) if c in wanted)
        return node.replaced(left=left, right=right, build=build, keep=keep, estimate=expected)

    made = over(join, side, near, near.estimate)
    for above, place in reversed(path):
        made = over(above, place, made, above.estimate)
    return made.replaced(keep=join.columns)
