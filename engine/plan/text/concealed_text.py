"""Plans and expressions as text without the constants of a query, for files that outlive it: the sources of kernels."""

from __future__ import annotations

import re

from ..expr import Column, Expr, Literal
from ..logical import Limit, Range, Values
from ..node import Node
from ..physical import LimitRows, RangeScan, TopK, ValuesScan
from .expr_text import expression
from .plan_text import PlanTree

CONSTANT = "constant"
# Names that users gave, and those of aggregates of such; what a SELECT names by its text may hold constants
_PLAIN = re.compile(r"[^\W\d]\w*( [^\W\d]\w*)*(\(([^\W\d]\w*)?\))?")


def concealed_tree(plan: Node) -> str:
    """Return a plan as an indented tree."""
    return _Concealed(plan).text()


def concealed(expr: Expr) -> str:
    """Return an expression as text."""
    return expression(expr, lambda column: concealed_name(column.name), literal_of=_literal)


def concealed_name(name: str) -> str:
    """Return a column's name if it is one that tables have, or somebody chose."""
    return name if _PLAIN.fullmatch(name) else "expression"


def _literal(literal: Literal) -> str:
    return "null" if literal.is_null else CONSTANT


class _Concealed(PlanTree):
    def __init__(self, plan: Node) -> None:
        super().__init__(plan)
        self.names = {number: concealed_name(name) for number, name in self.names.items()}

    def name(self, column: Column) -> str:
        return self.names.get(column.id, concealed_name(column.name))

    def expr(self, expr: Expr) -> str:
        return expression(expr, self.name, lambda plan: f"subquery {self.number(plan)}", _literal)

    def range(self, node: Range | RangeScan) -> str:
        return self.name(node.made)

    def limit(self, node: Limit | LimitRows | TopK) -> str:
        return CONSTANT

    def rows(self, node: Values | ValuesScan) -> str:
        return self.columns(node.made)
