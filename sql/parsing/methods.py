"""Calls behind a dot: x.f(y) is f(x, y)."""

from __future__ import annotations

from sqlglot import exp

_PARTS = ("this", "table", "db", "catalog")


def with_methods(node: exp.Expr) -> exp.Expr:
    """Return an operand with calls in the place of its methods, which the parser leaves in parentheses behind dots."""
    if isinstance(node, exp.Column):
        value: exp.Expr | None = None
        names: list[exp.Expr] = []
        for part in node.parts:
            if isinstance(part, exp.Paren):
                if value is None:
                    value = exp.Column(**dict(zip(_PARTS, reversed(names), strict=False)))
                value = _called(part.this, value)
            elif value is None:
                names.append(part)
            else:
                value = exp.Dot(this=value, expression=part)
        return value or node
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Paren):
        return _called(node.expression.this, with_methods(node.this))
    if isinstance(node.args.get("this"), exp.Expr) and not isinstance(node, exp.Query):
        inner = with_methods(node.this)
        if inner is not node.this:
            node.set("this", inner)
    return node


def _called(call: exp.Anonymous, value: exp.Expr) -> exp.Expr:
    made = exp.Anonymous(this=call.this, expressions=[value, *call.expressions])
    made.meta.update(call.meta)
    return made
