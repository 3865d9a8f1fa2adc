"""Common queries, which several places of a statement read, are optimized once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ..plan.commons import commons_of, reading
from ..plan.expr import Column, ColumnRef, Expr
from ..plan.logical import Common, CommonScan, Filter, Logical
from ..plan.node import walk
from .expressions.logic import combine
from .expressions.simplification import simplified
from .rewrite import narrow, replace_columns
from .rules.prune_columns import prune_columns

MAX_TERMS = 8  # of a filter for all readers: with more of them it hardly keeps a row out

Optimize = Callable[[Logical], Logical]
Readers = dict[int, list[tuple[CommonScan, Expr | None]]]  # by common query, with their filters


def optimize_commons(plan: Logical, optimize: Optimize) -> Logical:
    """Optimize a plan and the common queries that it reads, directly or through others.

    First each by itself, those before others that these read: how many rows they make and what identifies one is known where they are
    read.  Then, from the plan inward, each loses the columns that nobody reads, and where all readers filter it, the rows that none of
    them keeps; for that alone one is optimized a second time.
    """
    commons = commons_of(plan)
    if not commons:
        return optimize(plan)
    first: dict[int, Common] = {}
    for common in commons:
        first[id(common)] = Common(common.name, optimize(reading(common.plan, first)))
    plan = optimize(reading(plan, first))
    readers: Readers = defaultdict(list)
    _note_readers(plan, readers)
    wanted: list[tuple[Common, Logical]] = []
    for common in reversed(commons):
        whole = first[id(common)]
        if found := readers[id(whole)]:
            narrowed = _kept_by(found, reading(common.plan, first), whole.plan, optimize)
            _note_readers(narrowed, readers)
            wanted.append((whole, narrowed))
    new: dict[int, Common] = {}
    for whole, narrowed in reversed(wanted):
        new[id(whole)] = Common(whole.name, reading(narrowed, new))
    return reading(plan, new)


def _note_readers(plan: Logical, readers: Readers) -> None:
    """Note who reads which common query; a filter above a reader is met before it."""
    filters: dict[int, Expr] = {}
    for node in walk(plan):
        match node:
            case Filter(input=CommonScan() as scan, predicate=predicate):
                filters[id(scan)] = predicate
            case CommonScan(common=common):
                readers[id(common)].append((node, filters.get(id(node))))


def _kept_by(
    readers: list[tuple[CommonScan, Expr | None]],
    bound: Logical,
    optimized: Logical,
    optimize: Optimize,
) -> Logical:
    """Return a common query with the rows and columns that one of its readers keeps."""
    predicate = _either(readers)
    plan = optimized if predicate is None else optimize(Filter(bound, predicate))
    read = {column for scan, _ in readers for column in scan.sources}
    columns = tuple(c for c in plan.columns if c in read)
    plan = narrow(
        plan, columns or plan.columns[:1]
    )  # whoever counts rows needs none, but a table has one
    return prune_columns(plan) or plan


def _either(readers: Iterable[tuple[CommonScan, Expr | None]]) -> Expr | None:
    """Return what is TRUE of each row that a reader keeps, None when one keeps all."""
    terms: dict[Expr, None] = {}
    for scan, predicate in readers:
        if predicate is None:
            return None
        own: dict[Column, Expr] = {
            c: ColumnRef(s) for c, s in zip(scan.made, scan.sources, strict=True)
        }
        terms[replace_columns(predicate, own)] = None
    return simplified(combine("or", list(terms))) if len(terms) <= MAX_TERMS else None
