"""The values of options of table functions and of COPY, which are no expressions of a query."""

from __future__ import annotations

from sqlglot import exp

from ..parsing.unread import use
from .bind_literal import plain_constant
from .scope import Scope


def option_value(node: exp.Expr, scope: Scope) -> object:
    """Return a constant, a list of values, or a dictionary of them; names of columns are texts."""
    match node:
        case exp.Paren():
            use(node)
            return [option_value(node.this, scope)]
        case exp.Array() | exp.Tuple() | exp.List():
            use(node)
            return [option_value(item, scope) for item in node.expressions]
        case exp.Struct():
            use(node)
            return dict(_entry(item, scope) for item in node.expressions)
        case exp.Column(this=exp.Identifier() as name) if len(node.parts) == 1:
            use(node, name)
            return name.name
    return plain_constant(scope.inside("an option").bind(node), "An option")


def _entry(item: exp.Expr, scope: Scope) -> tuple[str, object]:
    use(item, item.this)
    return str(item.this.name), option_value(item.expression, scope)
