"""INTERSECT and EXCEPT: by membership, or with ALL by counting equal rows on both sides."""

from __future__ import annotations

import numpy as np

from ...plan import physical as p
from ..context import Context
from . import table as tables
from .join.join_pairs import join_codes, members
from .memory.ask_memory import ask_order
from .sort.keys import Ints, group_codes
from .sort.ordering import stable_order
from .table import Indices, Table, concat_arrays


def hash_set_operation(
    node: p.HashSetOperation, inputs: tuple[Table, ...], context: Context
) -> Table:
    left, right = inputs
    for side, child in ((left, node.left), (right, node.right)):
        ask_order(node, side, (), child.columns, context)
    rows = (_counted if node.all else _members)(node, left, right, context)
    renamed = {
        made.id: tables.take_array(left[source], rows)
        for made, source in zip(node.made, node.left.columns, strict=True)
    }
    return Table(renamed, len(rows))


def _members(node: p.HashSetOperation, left: Table, right: Table, context: Context) -> Indices:
    """Return the first of equal left rows that are, or are not, among the right ones; values of the right side alone get no number."""
    ours, theirs = join_codes(
        [left[c] for c in node.left.columns],
        [right[c] for c in node.right.columns],
        [True] * len(node.left.columns),
    )
    context.check()
    rows = np.flatnonzero(members(ours, theirs, context) == (node.kind == "intersect"))
    codes = ours.all()[rows]
    # Zeros come from the system as they are touched; of several writes to one place the last one stays
    first = np.zeros(ours.size + 1, np.int32 if left.num_rows < (1 << 31) - 1 else np.int64)
    first[codes[::-1]] = rows[::-1] + 1
    return rows[first[codes] == rows + 1]


def _counted(node: p.HashSetOperation, left: Table, right: Table, context: Context) -> Indices:
    arrays = [
        concat_arrays([left[a], right[b]])
        for a, b in zip(node.left.columns, node.right.columns, strict=True)
    ]
    codes, size = group_codes(arrays)
    context.check()
    left_codes = codes[: left.num_rows]
    in_right = np.bincount(codes[left.num_rows :], minlength=size)[left_codes]
    occurrence = occurrences(left_codes, size)
    return np.flatnonzero((occurrence < in_right) == (node.kind == "intersect"))


def occurrences(codes: Ints, size: int) -> Ints:
    """Return for each row how many rows before it have the same code."""
    order = stable_order(codes, size)
    counts = np.bincount(codes, minlength=size)
    starts = np.cumsum(counts) - counts
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - starts[codes[order]]
    return numbers
