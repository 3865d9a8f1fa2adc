"""Where a node of sqlglot's tree stands in the query text."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import Span, ViewText


def span_of(node: exp.Expr | None) -> Span | None:
    """Return the characters from the first to the last name or literal of `node`, as `parse` noted them."""
    if node is None:
        return None
    meta = node.meta
    return Span(meta["first"], meta["last"], meta.get("view")) if "first" in meta else None


def mark(tree: exp.Expr, view: ViewText) -> None:
    """Note that the places of a tree are in the text of a view."""
    for node in tree.walk():
        node.meta["view"] = view
