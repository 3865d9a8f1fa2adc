"""unnest(): in FROM a table of the elements of lists, in SELECT a row for each of them.

In SELECT it comes back as `Call("unnest", (list[, levels]))`, which `UnnestRewriter` replaces by a column; a struct there stands for
its fields (`expanded`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, TypeMismatch, Unsupported
from fuseline.plan import infer
from fuseline.plan.composed.nested_values import parts_of
from fuseline.plan.expr import Call, Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.functions.lists import element_type
from fuseline.plan.logical import Item, Logical, Unnest, Values
from fuseline.plan.node import transform_up, walk
from fuseline.plan.types import BIGINT, INTEGER, Kind, list_of
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .bind_expr_call import call_span
from .constants.known_values import known_value
from .scope import Relation, Scope, Source

NAME = "unnest"


def bind_unnest(node: exp.Expr, scope: Scope) -> Expr:
    """Bind the call in a SELECT list, as a value of each row that it makes."""
    place = call_span(node, scope)
    if not scope.allow_windows and scope.clause not in ("GROUP BY", "HAVING"):
        raise InvalidQuery(
            f"unnest() is not allowed in {scope.clause}: make its rows in FROM or in a subquery.",
            place,
        )
    (depth, _), value = _options(node, scope), scope.bind(node.this)
    if has_unnest([value]):
        raise InvalidQuery(
            "unnest() does not stand inside of itself: unnest(x, recursive := true) unnests all levels.",
            place,
        )
    if value.type.kind is Kind.STRUCT:
        raise Unsupported("unnest() of a STRUCT is an item of SELECT of its own.", place)
    return _call(value, depth, place)


def _call(value: Expr, depth: int, place: Span | None) -> Expr:
    element = element_type(value.type)
    if element is None:
        raise TypeMismatch(f"unnest() takes a list or a struct, and this is {value.type}.", place)
    value, levels = infer.coerce(value, list_of(element)), 1
    while levels < depth and element.kind is Kind.LIST:
        element, levels = element.children[0], levels + 1
    return Call(NAME, (value, Literal(levels, INTEGER)), element, place)


def _options(node: exp.Expr, scope: Scope) -> tuple[int, bool]:
    """Return how many levels of lists and structs are unnested, and whether fields have the names of those around them."""
    depth, keep = 1, False
    for option in node.expressions:
        if not isinstance(option, exp.PropertyEQ):
            raise InvalidQuery(
                "unnest() takes one list, recursive := and max_depth :=.", span_of(option)
            )
        use(option, option.this)
        name = option.this.name.lower()
        given = known_value(scope.bind(option.expression), f"{name} of unnest()", scope)
        if name == "recursive" and isinstance(given, bool):
            depth = MOST_LEVELS if given else depth
        elif name == "max_depth" and isinstance(given, int) and given > 0:
            depth = given
        elif name == "keep_parent_names" and isinstance(given, bool):
            keep = given
        else:
            raise InvalidQuery(
                "unnest() takes recursive := true, max_depth := n and keep_parent_names := true.",
                span_of(option),
            )
    return depth, keep


MOST_LEVELS = 1000  # no type nests so deeply


def expanded(node: exp.Expr, scope: Scope) -> list[tuple[str, Expr]] | None:
    """Return the columns that an item of SELECT makes of a struct, or of structs below lists; None for another item."""
    if not isinstance(node, exp.Explode):
        return None
    value = scope.bind(node.this)
    (depth, keep), place = _options(node, scope), call_span(node, scope)
    levels, kind = 0, value.type
    while kind.kind is Kind.LIST:
        levels, kind = levels + 1, kind.children[0]
    if kind.kind is not Kind.STRUCT or depth <= levels:
        return None
    use(node)
    struct = _call(value, levels, place) if levels else value
    found = _fields(struct, depth - levels, place)
    return [(".".join(names if keep else names[-1:]), part) for names, part in found]


def _fields(
    struct: Expr, depth: int, place: Span | None, around: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Expr]]:
    """Return the parts of a struct with their names, the names of structs around them first."""
    found: list[tuple[tuple[str, ...], Expr]] = []
    for own, part in zip(struct.type.names, parts_of(struct, place), strict=True):
        name = (*around, own)
        if depth > 1 and part.type.kind is Kind.STRUCT:
            found += _fields(part, depth - 1, place, name)
        else:
            found.append((name, part))
    return found


def has_unnest(exprs: Sequence[Expr]) -> bool:
    return any(_is_unnest(node) for expr in exprs for node in walk(expr))


def _is_unnest(node: Expr) -> bool:
    return isinstance(node, Call) and node.function == NAME


class UnnestRewriter:
    """Collects the calls of a SELECT, whose lists go side by side, and replaces them by columns."""

    def __init__(self, plan: Logical) -> None:
        self.input = plan
        self.made: dict[tuple[Expr, int], Column] = {}  # by the list and how many levels of it

    def rewrite(self, expr: Expr) -> Expr:
        def replaced(node: Expr) -> Expr | None:
            if not isinstance(node, Call) or node.function != NAME:
                return None
            given, *levels = node.args
            key = given, sum(int(str(n.value)) for n in levels if isinstance(n, Literal)) or 1
            self.made.setdefault(key, new_column(NAME, node.type))
            return ColumnRef(self.made[key], node.span)

        return transform_up(expr, replaced)

    def plan(self) -> Logical:
        """Unnest the outer levels of some lists first, each level's elements with the row's other ones; the last level of all is
        unnested side by side.
        """
        if len(self.made) == 1:  # in one step
            (((given, levels), made),) = self.made.items()
            for _ in range(levels - 1):
                given = infer.call("flatten", [given])
            return Unnest(self.input, ((made, given),))
        plan, lists = self.input, {key: key[0] for key in self.made}
        for level in range(max(levels for _, levels in self.made), 1, -1):
            items = []
            for key, given in lists.items():
                if key[1] >= level:
                    element = element_type(given.type)
                    assert element is not None
                    items.append((new_column(NAME, element), given))
                    lists[key] = ColumnRef(items[-1][0])
            plan = Unnest(plan, tuple(items))
        return Unnest(plan, tuple((made, lists[key]) for key, made in self.made.items()))


def bind_unnested(node: exp.Expr, around: Scope) -> Source:
    """Bind FROM unnest(list) [WITH ORDINALITY], which may read columns of the tables before it."""
    call = node.this if isinstance(node, exp.Lateral) else node
    use(call)
    lists = [around.bind(item) for item in call.expressions]
    items: list[Item] = []
    for given in lists:
        element = element_type(given.type)
        if element is None:
            raise TypeMismatch(f"unnest() takes a list, and this is {given.type}.", given.span)
        value = infer.coerce(given, list_of(element))
        items.append((new_column(NAME, element), value))
    if len(items) != 1:
        raise InvalidQuery(
            "unnest() in FROM takes one list: name several in SELECT.", span_of(call)
        )
    counted = call.args.get("offset")
    ordinality = new_column("ordinality", BIGINT) if counted else None
    aliases = (each.args.get("alias") for each in (node, call))
    alias = next((a for a in aliases if isinstance(a, exp.TableAlias)), None)
    table, names = _names(alias, counted)
    if ordinality is None and table and not names:
        names = [table]  # a table of one column is called as that
    made = Unnest(Values((), ((),)), tuple(items), ordinality).made
    if len(names) > len(made):
        raise InvalidQuery(f'The table "{table or NAME}" has {len(made)} columns.', span_of(alias))
    renamed = [
        dataclasses.replace(column, name=name)
        for column, name in zip(made, [*names, *(c.name for c in made[len(names) :])], strict=True)
    ]
    plan = Unnest(
        Values((), ((),)),
        tuple((new, given) for new, (_, given) in zip(renamed, items, strict=False)),
        renamed[-1] if ordinality is not None else None,
    )
    star = tuple((column.name, column) for column in renamed)
    also = ((NAME, renamed[0]),) if len(star) == 1 and star[0][0] != NAME else ()
    return Source(plan, (Relation(table or NAME, star, also=also),), {}, star)


def _names(alias: exp.Expr | None, counted: object) -> tuple[str, list[str]]:
    """Return the names of the table and its columns; sqlglot takes the last one for the place where places are asked for."""
    columns = [] if alias is None else list(alias.args.get("columns") or ())
    if isinstance(counted, exp.Expr):
        columns.append(counted)
    if alias is not None:
        use(alias, *([alias.this] if alias.this is not None else []))
    use(*columns)
    table = alias.name if alias is not None and alias.this is not None else ""
    return table, [column.name for column in columns]
