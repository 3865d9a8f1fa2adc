"""Rules in their order, the loop that applies them, and rewriting that keeps the very object where nothing changed, so that rules can
tell by identity.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..plan.expr import Column, ColumnRef, Expr, columns_of, substitute
from ..plan.join_kinds import JoinKind
from ..plan.logical import Item, Join, Logical, Project
from ..plan.node import N, Node
from ..records import dataclass


def replace_columns(expr: Expr, replacement: Mapping[Column, Expr]) -> Expr:
    """Replace references to the columns in `replacement`."""
    if not replacement:
        return expr
    return substitute(expr, replacement.get)


def pass_on(columns: Iterable[Column]) -> tuple[Item, ...]:
    """Return the items of a projection that passes columns on."""
    return tuple((c, ColumnRef(c)) for c in columns)


def narrow(plan: Logical, columns: tuple[Column, ...]) -> Logical:
    """Return `plan` with exactly these of its columns, in this order."""
    return plan if plan.columns == columns else Project(plan, pass_on(columns))


def unless_same(made: Logical, node: Logical) -> Logical:
    """Return `node` itself where `made` is the same node over the same objects."""
    over_same = len(made.children) == len(node.children) and all(
        map(operator.is_, made.children, node.children)
    )
    return node if over_same and made == node else made


def is_passed(item: Item) -> bool:
    """Whether a projection's item only passes a column on under its id."""
    column, expr = item
    return isinstance(expr, ColumnRef) and expr.column == column


def reads_only(expr: Expr, columns: Iterable[Column]) -> bool:
    """Whether `expr` reads nothing but `columns`; true of a constant."""
    return columns_of(expr).issubset(columns)


def swapped(join: Join) -> Logical:
    """Return a right join as the left join of the exchanged sides, its columns in their old order."""
    assert join.kind is JoinKind.RIGHT
    return narrow(Join(join.right, join.left, JoinKind.LEFT, join.condition), join.columns)


MAX_ROUNDS = 8  # of a group that runs to a fixed point; TPC-H needs at most 3

Observer = Callable[[str, Node], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewriting of a tree, which returns another or None when it has nothing to do, and why it stands where it does."""

    apply: Callable[..., Any]
    reason: str

    @property
    def name(self) -> str:
        return self.apply.__name__


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """Rules that make work for each other: repeated until a round changes nothing."""

    rules: tuple[Rule, ...]


Rules = tuple[Rule | Fixpoint, ...]


def unobserved(name: str, node: Node) -> None:
    """Look at no step."""


def apply_rules(
    tree: N,
    rules: Rules,
    *context: object,
    observer: Callable[[str, N], object] = unobserved,
    same: Callable[[N, N], bool] = operator.is_,
) -> N:
    """Apply `rules` in order to a tree and `context`; `observer` gets the name and the new tree of each that changed something."""
    finished: dict[str, N] = {}  # by rule the tree in which it found nothing to do

    def run(rule: Rule, before: N) -> N:
        if finished.get(rule.name) is before:
            return before
        after: N | None = rule.apply(before, *context)
        if after is None or after is before or same(after, before):
            finished[rule.name] = before
            return before
        observer(rule.name, after)
        return after

    for entry in rules:
        if isinstance(entry, Rule):
            tree = run(entry, tree)
            continue
        for _ in range(MAX_ROUNDS):
            before = tree
            for rule in entry.rules:
                tree = run(rule, tree)
            if tree is before:
                break
    return tree
