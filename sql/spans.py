"""Where a node of sqlglot's tree stands in the query text."""

from __future__ import annotations

import re

from sqlglot import exp

from fuseline.errors import Span

_BRACKETS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()]")
_CLOSING = re.compile(r"\s*\)")
_OPENING = re.compile(r"\(\s*$")


def span_of(node: exp.Expr | None) -> Span | None:
    """Return the characters from the first to the last name or literal of `node`, as `parse` noted them."""
    if node is None:
        return None
    meta = node.meta
    return Span(meta["first"], meta["last"]) if "first" in meta else None


def balanced(text: str, span: Span) -> Span:
    """Extend `span` over the parentheses that its part of the text leaves open: `count(*` -> `count(*)`."""
    depth = lowest = 0
    for found in _BRACKETS.finditer(text, span.start, span.end):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        lowest = min(lowest, depth)
    start, end = span.start, span.end
    for _ in range(depth - lowest):
        closing = _CLOSING.match(text, end)
        if closing is None:
            break
        end = closing.end()
    for _ in range(-lowest):
        opening = _OPENING.search(text, 0, start)
        if opening is None:
            break
        start = opening.start()
    return Span(start, end)
