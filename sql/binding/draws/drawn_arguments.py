"""random() in the arguments of aggregates, drawn for the rows before they are grouped."""

from __future__ import annotations

from fuseline.plan.expr import AggregateCall, Expr
from fuseline.plan.logical import Logical
from fuseline.plan.window.windowed import WindowRewriter


class ArgumentRewriter:
    """Rewrites what stands inside of aggregates, where the only windows are those of random()."""

    def __init__(self, plan: Logical) -> None:
        self._rows = WindowRewriter(plan)

    def rewrite(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        inside = self._rows if isinstance(expr, AggregateCall) else self
        return expr.with_children([inside.rewrite(child) for child in expr.children])

    def plan(self) -> Logical:
        return self._rows.plan()
