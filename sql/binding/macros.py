"""Calls of macros, bound as if the macro's text stood in their place, with arguments for its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, ViewText
from fuseline.plan.changes.session_objects import Macro
from fuseline.sql.parsing.parse import parse
from fuseline.sql.parsing.pieces import Piece, mark, span_of

from ..parsing.unread import tree_of, use_all
from .scope import Scope

_MOST_NESTED = 100  # macros that call others


def macro_of(node: exp.Expr, scope: Scope, is_table: bool) -> Macro | None:
    """Return the macro that a call of no known function names."""
    if not isinstance(node, exp.Anonymous):
        return None
    found = scope.session.catalog.macro(node.name)
    return found if found is not None and found.is_table == is_table else None


def expanded(macro: Macro, node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the tree of a macro's text with the arguments of a call in it; all of it has to be used."""
    if len(scope.session.trees) > _MOST_NESTED * 10:
        raise InvalidQuery(f'The macro "{macro.name}" calls itself.', span_of(node))
    given = _arguments(macro, node, span_of(node))
    for argument in node.expressions:
        use_all(argument)  # copies of it are bound
    tree = parse(Piece(macro.text, 0, len(macro.text)))
    view = ViewText(macro.name, macro.text)
    mark(tree.root, view)
    body = tree.root if macro.is_table else tree.root.expressions[0].pop()
    holder = exp.Paren(this=body)
    for part in list(holder.find_all(exp.Column)):
        if len(part.parts) == 1 and part.name.lower() in given:
            value = given[part.name.lower()].copy()
            for inner in value.walk():
                inner.meta.pop("used", None)
            written = part.meta.get("written")
            part.replace(value)
            if written is not None:
                value.meta["written"] = written
    root: exp.Expr = holder.this
    root.pop()
    scope.session.trees.append(tree_of(root))
    return root


def _arguments(macro: Macro, node: exp.Expr, place: Span | None) -> dict[str, exp.Expr]:
    given: dict[str, exp.Expr] = {}
    positional: Sequence[str] = [name.lower() for name in macro.parameters]
    count = 0
    for argument in node.expressions:
        if isinstance(argument, exp.PropertyEQ | exp.Kwarg):
            name = argument.this.name.lower()
            value = argument.expression
        elif count < len(positional):
            name, value = positional[count], argument
            count += 1
        else:
            name, value = "", argument
        if name not in positional or name in given:
            form = f"{macro.name}({', '.join(macro.parameters)})"
            raise InvalidQuery(f"The arguments do not fit the macro {form}.", place)
        given[name] = value
    for name in positional:
        if name not in given and name not in macro.defaults:
            raise InvalidQuery(f'The macro "{macro.name}" needs a value for {name}.', place)
        if name not in given:
            text = macro.defaults[name]
            given[name] = parse(Piece(text, 0, len(text))).root
    return given
