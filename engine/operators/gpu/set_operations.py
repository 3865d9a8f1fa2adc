"""INTERSECT and EXCEPT: equal rows of both sides are counted, and each is given out as often as it should be."""

from __future__ import annotations

import pylibcudf as plc

from ...plan import physical as p
from ..context import Context
from . import columns as col
from .aggregate.groups import pick
from .distinct_rows import first_of_each
from .few_rows import run_on_host
from .memory.device import on_device
from .sort.packed_keys import numbered
from .table import Table, gather
from .value_marks import marked, most_marks, tested, words_of

Op = plc.binaryop.BinaryOperator


@on_device
def hash_set_operation(
    node: p.HashSetOperation, inputs: tuple[Table, ...], context: Context
) -> Table:
    few = run_on_host(node, inputs, context)
    if few is not None:
        return few
    left, right = inputs
    renamed = {m.id: left.columns[c.id] for m, c in zip(node.made, node.left.columns, strict=True)}
    result = Table(renamed, left.num_rows)
    if not left.num_rows:
        return result
    if not node.made:
        return Table({}, _count(node, left.num_rows, right.num_rows))
    lefts = plc.Table([col.as_key(left[c]) for c in node.left.columns])
    rights = plc.Table([col.as_key(right[c]) for c in node.right.columns])
    rows = _all(node, lefts, rights) if node.all else _distinct(node, lefts, rights)
    return gather(result, rows)


def _distinct(node: p.HashSetOperation, lefts: plc.Table, rights: plc.Table) -> plc.Column:
    """Return one row number for each distinct left row that is (INTERSECT) or is not (EXCEPT) on the right."""
    rows = first_of_each(lefts)
    if not rights.num_rows():
        return rows if node.kind == "except" else col.empty(col.INT32)
    candidates = plc.copying.gather(lefts, rows, plc.copying.OutOfBoundsPolicy.DONT_CHECK)
    there = _among(candidates, rights)
    if there is not None:
        kept = there if node.kind == "intersect" else col.negate(there)
        (rows,) = plc.stream_compaction.apply_retention_mask(plc.Table([rows]), kept).columns()
        return rows
    found = plc.join.left_semi_join if node.kind == "intersect" else plc.join.left_anti_join
    return pick(rows, found(candidates, rights, col.EQUAL))


def _among(candidates: plc.Table, rights: plc.Table) -> plc.Column | None:
    """Return whether each candidate is among the rows on the right, by a bit for each combination of keys; None where these are too many."""
    limit = most_marks(rights.num_rows())
    ascending = [(False, True)] * candidates.num_columns()
    keys = rights.columns()
    found = numbered(candidates.columns(), ascending, limit, keys) if limit else None
    if found is None:
        return None
    return tested(found.numbers, marked(found.at(keys), words_of(found.places)))


def _all(node: p.HashSetOperation, lefts: plc.Table, rights: plc.Table) -> plc.Column:
    """Return a left row number as often as the counts n and m of its equals say: min(n, m) times, or n - m."""
    left_keys, left_counts, rows = _counted(lefts)
    if rights.num_rows():
        right_keys, right_counts, _ = _counted(rights)
        ours, theirs = plc.join.left_join(left_keys, right_keys, col.EQUAL)
        rows, left_counts = pick(rows, ours), pick(left_counts, ours)
        matches = col.without_nulls(pick(right_counts, theirs, nullify=True), 0)
    else:
        matches = col.binary(left_counts, left_counts, Op.SUB, col.INT32)
    if node.kind == "intersect":
        times = col.binary(left_counts, matches, Op.NULL_MIN, col.INT32)
    else:
        surplus = col.binary(left_counts, matches, Op.SUB, col.INT32)
        times = col.binary(surplus, col.scalar(0, col.INT32), Op.NULL_MAX, col.INT32)
    return plc.filling.repeat(plc.Table([rows]), times).columns()[0]


def _counted(keys: plc.Table) -> tuple[plc.Table, plc.Column, plc.Column]:
    """Return distinct rows, how often each occurs, and a row number of each."""
    numbers = col.sequence(keys.num_rows())
    grouped = plc.groupby.GroupBy(keys, plc.types.NullPolicy.INCLUDE)
    request = plc.groupby.GroupByRequest(
        numbers, [plc.aggregation.count(plc.types.NullPolicy.INCLUDE), plc.aggregation.min()]
    )
    distinct, (result,) = grouped.aggregate([request])
    counts, rows = result.columns()
    return distinct, col.cast(counts, col.INT32), rows


def _count(node: p.HashSetOperation, left: int, right: int) -> int:
    """How many of `left` rows without columns, all of which are equal, are left."""
    if node.all:
        return min(left, right) if node.kind == "intersect" else max(left - right, 0)
    return int((right > 0) == (node.kind == "intersect"))
