"""The order in which rules make a plan better.

A rule takes a whole tree and returns another, or the same when it has nothing to do.  To know what the optimizer does, read `RULES`, and
for physical plans `PHYSICAL_RULES`.
"""

from __future__ import annotations

import operator

from ..plan.logical import Logical
from .aggregate_before_joins import aggregate_before_joins
from .check import check_logical
from .common_subplans import share_subplans
from .reuse_finer_groups import reuse_finer_groups
from .rewrite import Fixpoint, Observer, Rule, Rules, apply_rules
from .rules.count_rows import count_rows
from .rules.decorrelate import decorrelate
from .rules.drop_determined_keys import drop_determined_keys
from .rules.eliminate import eliminate
from .rules.merge_projects import merge_projects
from .rules.prefer_semi_joins import prefer_semi_joins
from .rules.prune_columns import prune_columns
from .rules.push_aggregates import push_aggregates
from .rules.push_filters import push_filters
from .rules.push_limits import push_limits
from .rules.reduce_aggregates import reduce_aggregates
from .rules.reorder_joins import reorder_joins
from .rules.share_sums import share_sums
from .rules.simplify import simplify

RULES: Rules = (
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
        drop_determined_keys,
        "sees through the projections that are merged by now; fewer keys are estimated better",
    ),
    Rule(
        reorder_joins,
        "needs every filter where it belongs, to estimate what remains of each relation",
    ),
    Rule(
        prefer_semi_joins,
        "needs the final order, in which what is wanted of a join is often one side; join conditions are on joins by then",
    ),
    Rule(
        reduce_aggregates, "needs the final order: it copies what filters the other side of a join"
    ),
    Rule(push_aggregates, "needs the final sides of joins, and their filters, to count rows a key"),
    Rule(
        push_filters, "join conditions that the new order brought together, and the copies' filters"
    ),
    Rule(merge_projects, "reordering leaves projections that restore an order nobody asked for"),
    Rule(
        share_sums,
        "after sums are below joins, where their tables' statistics are at hand; what it computes once is not to be merged",
    ),
    Rule(prune_columns, "last but one: columns that only removed nodes read are gone by now"),
    Rule(count_rows, "counts that only removed nodes stood beside are alone by now"),
    Rule(push_limits, "last, so that no rule parts a limit from the sort below it"),
)

# Of the plan that `lower` made; those of what becomes a pipeline stand in `pipelines.fuse`
PHYSICAL_RULES = (
    Rule(share_subplans, "first: what computes the same is one object for all that follows"),
    Rule(
        reuse_finer_groups,
        "needs equal parts as one object: totals read the groups of the same rows",
    ),
    Rule(
        aggregate_before_joins,
        "last: groups that others are made of are the rows of no other aggregation any more",
    ),
)


def optimize(
    plan: Logical,
    *,
    observer: Observer | None = None,
    check: bool = False,
    rules: Rules = RULES,
) -> Logical:
    """Apply `rules` in order; `observer` gets the name and the new tree of each that changed something."""

    def seen(name: str, made: Logical) -> None:
        if check:  # `simplify` comes before `decorrelate` too
            check_logical(made, name, subqueries=name == "simplify", columns=plan.columns)
        if observer is not None:
            observer(name, made)

    return apply_rules(plan, rules, observer=seen, same=operator.eq)
