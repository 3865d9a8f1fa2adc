"""Rules in their order, and the loop that applies them: to logical plans, to physical ones, and to what becomes a pipeline."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..plan.node import N, Node

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
    *context: Any,
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
