"""The order in which rules make a plan better.

A rule takes a whole tree and returns another, or None when it has nothing to do.  To know what the optimizer does, read `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plan.logical import Logical
from ..plan.node import Node
from .check import check_logical
from .rules.count_rows import count_rows
from .rules.decorrelate import decorrelate
from .rules.eliminate import eliminate
from .rules.merge_projects import merge_projects
from .rules.prune_columns import prune_columns
from .rules.push_aggregates import push_aggregates
from .rules.push_filters import push_filters
from .rules.push_limits import push_limits
from .rules.reduce_aggregates import reduce_aggregates
from .rules.reorder_joins import reorder_joins
from .rules.simplify import simplify

MAX_ROUNDS = 8  # of a group that runs to a fixed point; TPC-H needs at most 3


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewriting of the tree and why it stands where it does."""

    apply: Callable[[Logical], Logical | None]
    reason: str

    @property
    def name(self) -> str:
        return self.apply.__name__


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """Rules that make work for each other: repeated until a round changes nothing."""

    rules: tuple[Rule, ...]


RULES: tuple[Rule | Fixpoint, ...] = (
    Rule(
        simplify,
        "first: folded constants and shared factors show decorrelate the equalities it looks for",
    ),
    Rule(decorrelate, "before all others: they know no subqueries"),
    Fixpoint(
        (
            Rule(merge_projects, "projections between joins and filters hide one from the other"),
            Rule(push_filters, "makes cross products joins, and outer joins inner ones"),
            Rule(simplify, "a predicate moved through a projection has new constants in it"),
            Rule(eliminate, "what is empty, already distinct or sorted in vain disappears"),
        )
    ),
    Rule(
        reorder_joins,
        "needs every filter where it belongs, to estimate what remains of each relation",
    ),
    Rule(
        reduce_aggregates, "needs the final order: it copies what filters the other side of a join"
    ),
    Rule(push_aggregates, "needs the final sides of joins, and their filters, to count rows a key"),
    Rule(
        push_filters, "join conditions that the new order brought together, and the copies' filters"
    ),
    Rule(merge_projects, "reordering leaves projections that restore an order nobody asked for"),
    Rule(prune_columns, "last but one: columns that only removed nodes read are gone by now"),
    Rule(count_rows, "counts that only removed nodes stood beside are alone by now"),
    Rule(push_limits, "last, so that no rule parts a limit from the sort below it"),
)


def optimize(
    plan: Logical,
    *,
    observer: Callable[[str, Node], None] | None = None,
    check: bool = False,
    rules: tuple[Rule | Fixpoint, ...] = RULES,
) -> Logical:
    """Apply `rules` in order; `observer` gets the name and the new tree of each that changed something."""
    wanted = plan.columns
    decorrelated = False
    finished: dict[str, Logical] = {}  # by rule the tree in which it found nothing to do

    def run(rule: Rule, before: Logical) -> Logical:
        nonlocal decorrelated
        if finished.get(rule.name) is before:
            return before
        after = rule.apply(before)
        decorrelated = decorrelated or rule.apply is decorrelate
        if after is None or after is before or after == before:
            finished[rule.name] = before
            return before
        if check:
            check_logical(after, rule.name, subqueries=not decorrelated, columns=wanted)
        if observer is not None:
            observer(rule.name, after)
        return after

    for entry in rules:
        if isinstance(entry, Rule):
            plan = run(entry, plan)
            continue
        for _ in range(MAX_ROUNDS):
            before = plan
            for rule in entry.rules:
                plan = run(rule, plan)
            if plan is before:
                break
    return plan
