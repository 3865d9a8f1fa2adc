"""The tables that a text names."""

from __future__ import annotations

from sqlglot import exp

from ..names.reader import quoted
from ..parsing.parse import parse
from ..parsing.pieces import split


def table_names(text: str, qualified: bool = False) -> set[str]:
    """Return the names of tables and views in a script, without those of WITH; `qualified` as they are written, with their schemas."""
    found: set[str] = set()
    for piece in split(text):
        for node in parse(piece).nodes:
            if isinstance(node, exp.Table) and node.name and not _is_entry(node):
                parts = (node.args.get(key) for key in ("catalog", "db", "this"))
                path = ".".join(quoted(part.name) for part in parts if part is not None)
                found.add(path if qualified else node.name)
    return found


def _is_entry(table: exp.Table) -> bool:
    """Whether a name is that of a WITH entry which its place sees: an earlier one, its own where that is recursive, or one of a query around."""
    name = table.name.lower()
    below: exp.Expr = table
    node = None if table.args.get("db") else table.parent
    while node is not None:
        if isinstance(node, exp.With):
            seen = node.expressions[: node.expressions.index(below) + bool(node.recursive)]
        else:
            entries = node.args.get("with_")
            seen = [] if entries is None or entries is below else entries.expressions
        if any(entry.alias.lower() == name for entry in seen):
            return True
        below, node = node, node.parent
    return False
