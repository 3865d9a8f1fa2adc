"""Build sides that are stored first because their filter leaves few of the values that groups have for keys."""

from __future__ import annotations

from dataclasses import replace

from ...plan.node import transform_up
from ...plan.physical import FilterRows, HashAggregate, MemoryScan, ParquetScan, Physical
from ...plan.pipeline_steps import leaf_of, spine
from ..estimates.chain_estimate import ChainEstimates, expected_column
from .group_keys import group_numbers, inner_joins, most_direct
from .pipeline_shape import Body, has_joins, table_rows
from .probe_order import domain

LARGEST = 1 << 17  # rows of a table, which operators filter in a millisecond
WIDENED = 4  # times the numbers of a stored column, so that a kernel serves other constants


def store_key_sides(node: Physical, body: Body) -> Physical | None:
    """HashAggregate(b.k, x join filter(b))  ->  HashAggregate(b.k, x join s), where s is filter(b), stored.

    Kernels number a key by the bounds of its column, which a filter does not move: of two years and 100,000 customers these are 20
    million numbers, as a calendar has 200 years, and operators group them.  Only for a CPU's kernels, which have tables of few groups.
    CPU time of TPC-DS Q04, Q11 and Q74 at SF1 falls to 0.68, 0.6 to 0.8 and 0.8 to 0.88 (a busy machine, in turns), that of no other
    query there changes; `LARGEST` = 0 switches it off.
    """
    if not isinstance(node, HashAggregate) or body.hashed:
        return None
    chain, estimates = node.input, body.estimates
    numbers, most = group_numbers(node.keys, chain, estimates), most_direct(node)
    sides: set[int] = set()
    for side in [join.build_side for join in inner_joins(chain) if numbers > most]:
        if _is_small(side) and (less := _fewer(node, side, estimates)) > 1.0:
            numbers /= less
            sides.add(id(side))
    if not sides or numbers > most:
        return None

    def stored(part: Physical) -> Physical | None:
        return replace(body.store(part), bounded=True) if id(part) in sides else None

    whole: Physical = node
    return transform_up(whole, stored)


def _fewer(node: HashAggregate, side: Physical, estimates: ChainEstimates) -> float:
    """Return how many times fewer numbers the keys of a side have once it is stored; 0 where its filter leaves fewer rows than keys.

    Many groups would have no rows then: Q39 asks for two months of a year, and takes 47 ms instead of 38.
    """
    less = 1.0
    known = estimates.relation(side)
    for key in node.keys:
        if key in side.columns:
            less *= group_numbers([key], side, estimates) / domain(expected_column(known, key))
    share = known.rows / table_rows(leaf_of(side))
    return less / WIDENED if 2 * share * less >= 1.0 else 0.0


def _is_small(side: Physical) -> bool:
    """Whether rows are those of a small table that a filter leaves."""
    parts = list(spine(side))
    if not isinstance(parts[-1], ParquetScan | MemoryScan) or has_joins(side):
        return False
    return table_rows(parts[-1]) <= LARGEST and any(isinstance(p, FilterRows) for p in parts)
