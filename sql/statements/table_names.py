"""Names of tables and columns in statements that make or change tables, and what CREATE does where a name is taken."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import FuselineError, InvalidQuery, ParseError, Span, UnknownName
from fuseline.plan.changes.catalog_objects import IfThere, ObjectName

from ..binding.scope import Scope
from ..parsing.pieces import span_of
from ..parsing.unread import use


def table_name(node: exp.Expr, scope: Scope) -> str:
    """Return the name of a table or view that should be there."""
    assert isinstance(node, exp.Table)
    found = scope.session.catalog.qualified([part.name for part in node.parts])
    if found is None:
        shown = ".".join(part.name for part in node.parts[:-1])
        raise UnknownName(f'There is no schema "{shown}".', span_of(node))
    use(node, *node.parts)
    return found


def new_name(node: exp.Expr, scope: Scope, temporary: bool = False) -> ObjectName:
    """Return the name of a table or view that is to be made."""
    assert isinstance(node, exp.Table)
    use(node, *node.parts)
    try:
        return scope.session.catalog.new_name([part.name for part in node.parts], temporary)
    except FuselineError as error:
        error.at(span_of(node))
        raise


def what_if_there(replaces: object, unless: object, place: Span | None) -> IfThere:
    """Return what OR REPLACE and IF NOT EXISTS say, of which a statement has one at most."""
    if replaces and unless:
        raise ParseError("OR REPLACE and IF NOT EXISTS exclude each other.", place)
    return "replace" if replaces else "leave" if unless else "fail"


def identifiers(elements: Sequence[exp.Expr]) -> list[str]:
    """Return a list of column names, in which nothing else may stand."""
    for element in elements:
        if not isinstance(element, exp.Identifier):
            raise InvalidQuery("Names of columns alone can stand here.", span_of(element))
        use(element)
    return [element.name for element in elements]
