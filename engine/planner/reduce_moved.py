"""Rows that a join needs of other workers, without those that none of its other side's rows could match.

    HashJoin(a, Exchange(b), k)  ->  HashJoin(a, Exchange(HashJoin(b, a', k, semi)), k)
    HashJoin(a, Exchange(b), k, semi)  ->  HashJoin(a, Exchange(HashAggregate(k, b)), k, semi)

`a'` is a part of the other side that has all its keys, and that each worker has whole.  Of rows that are only to be there or not, as for
EXISTS, one of each key is enough.  In TPC-H's Q22 at SF10 some 0.1 M keys of customers move where 15 M orders did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

from ..plan import physical as p
from ..plan.exchange import Exchange, expected_bytes
from ..plan.expr import Column, ColumnRef, new_column
from ..plan.join_kinds import JoinKind
from ..plan.node import walk_once
from ..plan.types import Kind
from .estimates.chain_estimate import expected_column
from .estimates.estimate import key_domain
from .estimates.relation_estimate import RelationEstimate
from .pipelines.pipeline_shape import is_cheap, is_link, is_one_row
from .pipelines.reduce_builds import inputs_with_keys

MOST_MATCHING = 0.5  # of the rows: estimates are no better than that
LEAST_SPARED = 1 << 16  # spared, which takes less time to send than a semi-join takes

Relation = Callable[[p.Physical], RelationEstimate | None]


class _KeySource(NamedTuple):
    """Rows that each worker has, which of the join's keys they have and as what, and the share of other rows that finds a match there."""

    kept: float
    node: p.Physical
    places: tuple[int, ...]
    keys: tuple[Column, ...]


def without_unmatched(
    join: p.HashJoin,
    side: int,
    rows: p.Physical,
    other: p.Physical,
    relation: Relation,
    workers: int,
) -> p.Physical:
    """Return the rows of one side of a join that its other side can need, or all of them where hardly any were spared.

    `relation` says what is expected of a node, None where that is unknown or not the same on all workers, each of which may have rows of
    every key.
    """
    known = relation(rows)
    keys = (join.left_keys, join.right_keys)[side]
    if known is None or rows.estimate is None or not _may_lose(join, side, keys):
        return rows
    made = rows
    there = {id(node) for node in walk_once(rows)}
    sources = _sources(join, side, known, other, relation)
    new = (source for source in sources if id(_rows_of(source.node)) not in there)
    source = min(new, default=None, key=lambda source: source.kept)
    if source is not None and source.kept <= MOST_MATCHING:
        made = _matching(join, keys, rows, source)
    if side == 1 and join.kind.is_membership and join.residual is None:
        kept = 1.0 if source is None else source.kept
        distinct = workers * kept * prod(expected_column(known, key).distinct for key in keys)
        if distinct <= MOST_MATCHING * (made.estimate or 0.0):
            made = p.HashAggregate(made, tuple(dict.fromkeys(keys)), ()).placed_as(rows, distinct)
    spared = expected_bytes(rows) - expected_bytes(made)
    return made if spared >= LEAST_SPARED else rows


def _may_lose(join: p.HashJoin, side: int, keys: tuple[Column, ...]) -> bool:
    """Whether rows of one side without a match change nothing, and their keys can be looked up by what runs the join."""
    if join.null_aware or not all(k.type.fits_register or k.type.kind is Kind.VARCHAR for k in keys):  # fmt: skip
        return False
    if side == 1:
        return not join.kind.keeps_right
    return not join.kind.keeps_left and join.kind is not JoinKind.ANTI


def _sources(
    join: p.HashJoin, side: int, known: RelationEstimate, other: p.Physical, relation: Relation
) -> Iterator[_KeySource]:
    """Yield the parts of the other side with its keys, or one of them, that each worker has, and may as well go through twice."""
    own, keys = (join.left_keys, join.right_keys)[:: -1 if side else 1]
    every = tuple(range(len(keys)))
    chosen = [every, *((place,) for place in every)] if len(keys) > 1 else [every]
    waiting = [(other, places, tuple(keys[place] for place in places)) for places in chosen]
    while waiting:
        node, places, names = waiting.pop()
        waiting += [(part, places, found) for part, found in _below(node, names)]
        is_there = node.partitioning is not None and node.partitioning.is_replicated
        found = relation(node) if is_there else None
        if found is not None and (isinstance(node, Exchange) or is_cheap(_filtered(node))):
            pairs = [
                (expected_column(known, own[place]), expected_column(found, name))
                for place, name in zip(places, names, strict=True)
            ]
            kept = min(1.0, *(b.distinct / max(key_domain(a, b), 1.0) for a, b in pairs))
            yield _KeySource(kept, node, places, names)


def _filtered(node: p.Physical) -> p.Physical:
    """Return what filters by a scalar subquery are of, as cheap as any: its one row is made once, of numbers that are the same on all workers."""
    below = node.input if isinstance(node, p.FilterRows) and is_link(node) else node
    match below:
        case p.NestedLoopJoin(kind=JoinKind.INNER, left=left, right=right) if _is_exact_row(right):
            return _filtered(left)
    return node


def _is_exact_row(node: p.Physical) -> bool:
    """Whether a node makes one row, without sums of doubles, whose last bits each worker has of its own order."""
    parts = [part for part in walk_once(node) if isinstance(part, p.HashAggregate)]
    read = (arg for part in parts for _, call in part.aggregates for arg in call.args)
    return is_one_row(node) and not any(arg.type.is_float for arg in read)


def _rows_of(node: p.Physical) -> p.Physical:
    """The node whose rows an exchange or a projection passes on: what was joined with it once is not to be joined again."""
    while isinstance(node, Exchange | p.ComputeColumns):
        node = node.input
    return node


def _below(
    node: p.Physical, keys: tuple[Column, ...]
) -> Iterator[tuple[p.Physical, tuple[Column, ...]]]:
    match node:
        case Exchange(input=below):
            yield below, keys
        case p.HashAggregate(input=below, keys=groups) if {*keys} <= {*groups}:
            yield below, keys
        case p.HashJoin(kind=kind) | p.NestedLoopJoin(kind=kind) if kind.keeps_right:
            return  # whose rows without a match have no keys of the left side
        case p.HashJoin(kind=JoinKind.SEMI, right=right):
            yield from inputs_with_keys(node, keys)
            pairs = dict(zip(node.left_keys, node.right_keys, strict=True))
            if pairs.keys() >= {*keys}:
                yield right, tuple(pairs[key] for key in keys)
        case _:
            yield from inputs_with_keys(node, keys)


def _matching(
    join: p.HashJoin, keys: tuple[Column, ...], rows: p.Physical, source: _KeySource
) -> p.HashJoin:
    found, its = source.node, source.keys
    if not {*found.columns}.isdisjoint(rows.columns):
        its = tuple(new_column(key.name, key.type) for key in source.keys)
        items = tuple((new, ColumnRef(old)) for new, old in zip(its, source.keys, strict=True))
        found = p.ComputeColumns(found, items).placed_as(found)
        found = found.replaced(partitioning=source.node.partitioning)
    own = tuple(keys[place] for place in source.places)
    null_equal = tuple(join.null_equal[place] for place in source.places)
    made = p.HashJoin(rows, found, JoinKind.SEMI, own, its, null_equal)
    assert rows.estimate is not None
    return made.placed_as(rows, rows.estimate * source.kept)
