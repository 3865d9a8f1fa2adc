"""Names of tables and columns in statements that make or change tables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, UnknownName

from ..binding.scope import SCHEMAS
from ..parsing.pieces import span_of
from ..parsing.unread import use


def table_name(node: exp.Expr) -> str:
    assert isinstance(node, exp.Table)
    schema = tuple(part.name.lower() for part in node.parts[:-1])
    if schema and schema not in SCHEMAS:
        shown = ".".join(part.name for part in node.parts[:-1])
        raise UnknownName(f'There is no schema "{shown}": all tables are in main.', span_of(node))
    use(node, *node.parts)
    return node.name


def identifiers(elements: Sequence[exp.Expr]) -> list[str]:
    """Return a list of column names, in which nothing else may stand."""
    for element in elements:
        if not isinstance(element, exp.Identifier):
            raise InvalidQuery("Names of columns alone can stand here.", span_of(element))
        use(element)
    return [element.name for element in elements]
