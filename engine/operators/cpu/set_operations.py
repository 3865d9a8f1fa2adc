"""INTERSECT and EXCEPT by counting equal rows on both sides."""

from __future__ import annotations

import numpy as np

from ...plan import physical as p
from ..context import Context
from . import table as tables
from .memory.ask_memory import ask_order
from .sort.keys import Ints, group_codes
from .sort.ordering import stable_order
from .table import Table, concat_arrays


def hash_set_operation(
    node: p.HashSetOperation, inputs: tuple[Table, ...], context: Context
) -> Table:
    left, right = inputs
    for side, child in ((left, node.left), (right, node.right)):
        ask_order(node, side, (), child.columns, context)
    arrays = [
        concat_arrays([left[a], right[b]])
        for a, b in zip(node.left.columns, node.right.columns, strict=True)
    ]
    codes, size = group_codes(arrays)
    context.check()
    left_codes = codes[: left.num_rows]
    in_right = np.bincount(codes[left.num_rows :], minlength=size)[left_codes]
    occurrence = occurrences(left_codes, size)
    if node.kind == "intersect":
        kept = occurrence < (in_right if node.all else np.minimum(in_right, 1))
    elif node.all:
        kept = occurrence >= in_right
    else:
        kept = (occurrence == 0) & (in_right == 0)
    rows = np.flatnonzero(kept)
    renamed = {
        made.id: tables.take_array(left[source], rows)
        for made, source in zip(node.made, node.left.columns, strict=True)
    }
    return Table(renamed, len(rows))


def occurrences(codes: Ints, size: int) -> Ints:
    """Return for each row how many rows before it have the same code."""
    order = stable_order(codes, size)
    counts = np.bincount(codes, minlength=size)
    starts = np.cumsum(counts) - counts
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - starts[codes[order]]
    return numbers
