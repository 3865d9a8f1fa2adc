"""What names of a statement stand for: the variables of its caller, and WITH entries and views that it names several times.

Those are bound once, and planned once unless they are small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from itertools import islice
from typing import Protocol

from sqlglot import exp

from fuseline.plan.copies import fresh, nodes_of
from fuseline.plan.expr import new_column
from fuseline.plan.logical import CatalogTable, Common, CommonScan, Logical, free_columns
from fuseline.plan.udf.settled_calls import functions_of

from ...records import dataclass

# Nodes of a query that is copied to each place that names it, where the filters of that place go into it; the optimizer takes some
# 0.1 ms for each of them.  Equal parts that remain are found by `planner/common_subplans.py`, and still run once.
COPIED_NODES = 8
RECURRING = "recurring"  # what a table of WITH RECURSIVE ... USING KEY is called with, where all its rows are meant


class CallerVariables(Protocol):
    """The variables of the code that asks."""

    def find(self, name: str) -> CatalogTable | Logical | None:
        """Return a variable as a table or plan; raises `TypeMismatch` for one that is neither."""

    def given(self, name: str) -> Logical | None:
        """Return a plan that goes before tables of the catalog."""

    def names(self) -> list[str]: ...


@dataclass
class BoundQuery:
    """What a statement has bound of a WITH entry or view: the plan that stands where it was named first, and the common one."""

    plan: Logical | None = None
    common: Common | None = None


@dataclass
class NamedQueries:
    """The views that a statement has bound, and how often its texts name each table."""

    views: dict[str, BoundQuery] = field(default_factory=dict)
    _counts: dict[int, Counter[str]] = field(default_factory=dict)  # by tree

    def again(self, node: exp.Table) -> bool:
        """Whether the text in which a table stands names one like it elsewhere."""
        root = node.root()
        if id(root) not in self._counts:
            self._counts[id(root)] = Counter(t.name.lower() for t in root.find_all(exp.Table))
        return self._counts[id(root)][node.name.lower()] > 1


def named_plan(
    name: str, bound: BoundQuery, bind: Callable[[], Logical], *, again: bool
) -> Logical:
    """Return the plan of a query at one of the places that name it; `again` says that there are others.

    A query that is named once stands where it is named.  One that reads columns of a query around it is copied, since it has other
    rows for each of theirs.
    """
    first = bound.plan is None
    plan = bound.plan = bind() if bound.plan is None else bound.plan
    if first and not again:
        return plan
    if _is_small(plan) or free_columns(plan):
        return plan if first else fresh(plan)[0]
    if bound.common is None:
        bound.common = Common(name, plan if first else fresh(plan)[0])
    made = tuple(new_column(c.name, c.type) for c in plan.columns)
    return CommonScan(bound.common, made, bound.common.plan.columns)


def _is_small(plan: Logical) -> bool:
    """Whether a plan may be copied: it has few nodes, and no function that each copy would call again."""
    if len(list(islice(nodes_of(plan), COPIED_NODES + 1))) > COPIED_NODES:
        return False
    return not any(function.side_effects for function in functions_of(plan))
