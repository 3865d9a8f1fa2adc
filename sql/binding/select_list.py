"""The SELECT list: stars written out, and the name of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from fuseline.errors import AmbiguousName, InvalidQuery, UnknownName, Unsupported, nearest
from fuseline.plan.expr import Column, ColumnRef, Expr
from fuseline.plan.types import Kind
from fuseline.sql.names.reader import quoted
from fuseline.sql.parsing.parse import written
from fuseline.sql.parsing.pieces import span_of

from ..names import result_name
from ..parsing.unread import use, use_all
from .bind_unnest import expanded
from .scope import Relation, Scope, refusal

LONG_NAME = 300  # characters


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One output column: an expression still to be bound, or a column that a star stands for."""

    name: str
    node: exp.Expr
    column: Column | None = None
    aliased: bool = False
    value: Expr | None = None  # bound already

    def bind(self, scope: Scope) -> Expr:
        if self.value is not None:
            return self.value
        if self.column is not None:
            return ColumnRef(self.column, span_of(self.node))
        return scope.bind(self.node)


def select_list(node: exp.Select, scope: Scope) -> list[SelectItem]:
    """Return the output columns of a SELECT over the tables of `scope`."""
    items: list[SelectItem] = []
    for item in node.expressions:
        if not isinstance(item, exp.Alias):
            items += _written_out(item, scope) or (_unnamed(item, scope),)
            continue
        use(item, item.args["alias"])
        columns = _written_out(item.this, scope)
        if isinstance(item.this, exp.Explode) and columns:
            items += columns  # the fields of a struct keep their names
            continue
        columns = columns or (SelectItem("", item.this),)
        items += (replace(column, name=item.alias, aliased=True) for column in columns)
    return items


def _written_out(item: exp.Expr, scope: Scope) -> Sequence[SelectItem]:
    """Return the columns of a star, none for another item; with an alias all of them have that name."""
    if isinstance(item, exp.Star):
        refuse_double_names(scope.relations, item)
        _check_types(item, scope.relations, item)
        return _star(item, scope.star, item, scope)
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        if (struct := _struct_named(item, scope)) is not None:
            use(item.this)
            return [
                SelectItem(name, exp.Dot(this=struct, expression=exp.to_identifier(name, True)))
                for name in scope.bind(struct).type.names
            ]
        table = _table_named(item, scope)
        _check_types(item.this, (table,), item)
        return _star(item.this, table.columns, item, scope)
    fields = expanded(item, scope.inside("SELECT", aggregates=True, windows=True))
    return [SelectItem(name, item, value=value) for name, value in fields or ()]


def output_places(items: Sequence[SelectItem], outputs: Sequence[Expr]) -> dict[str, int]:
    """Return the outputs that a name in ORDER BY stands for, by the lower-case name.

    The last of equal aliases goes before names without AS, of which several of one name stand for none unless they are one column.
    """
    aliases = {item.name.lower(): i for i, item in enumerate(items) if item.aliased}
    plain: dict[str, int] = {}
    several: set[str] = set()
    for i, item in enumerate(items):
        first = plain.setdefault(item.name.lower(), i)
        if outputs[first] != outputs[i]:
            several.add(item.name.lower())
    return {name: i for name, i in plain.items() if name not in several} | aliases


def _unnamed(node: exp.Expr, scope: Scope) -> SelectItem:
    text, inner = written(node), node.unnest()
    # sqlglot drops the sign of `+x`, which is an expression with a name of its own.
    if isinstance(inner, exp.Column) and (text is None or "+" not in text.text):
        name = scope.declared_name([part.name for part in inner.parts])
        return SelectItem(name or inner.name, node)
    if text is None:
        return SelectItem(node.sql("duckdb"), node)
    if len(text.text) > LONG_NAME and _is_operand(node):
        return SelectItem(
            "subquery", node
        )  # nested ones would read the innermost text once a level
    return SelectItem(result_name(text.text, text.first_parameter), node)


def _is_operand(item: exp.Expr) -> bool:
    """Whether the query of an item is an operand, so that nobody sees the item's name."""
    query = item.parent.parent if item.parent is not None else None
    return isinstance(query, exp.Subquery) and isinstance(
        query.parent, exp.Condition | exp.Select | exp.Alias
    )


def _struct_named(node: exp.Column, scope: Scope) -> exp.Expr | None:
    """Return the column s of `s.*`, where s is a STRUCT and no table."""
    parts = node.parts[:-1]
    if scope.relations_named([part.name for part in parts]) or any(
        value for key, value in node.this.args.items() if key != "this"
    ):
        return None
    found = scope.find([part.name for part in parts])
    if found is None or found.type.kind is not Kind.STRUCT:
        return None
    use(node, *parts)
    return exp.Column(**dict(zip(("this", "table", "db"), reversed(parts), strict=False)))


def _table_named(node: exp.Column, scope: Scope) -> Relation:
    prefix = [part.name for part in node.parts[:-1]]
    tables = scope.relations_named(prefix, span_of(node))
    if not tables:
        known = [r.name for r in scope.relations if r.name]
        raise UnknownName(
            f'There is no table "{prefix[-1]}" in this query.{nearest(prefix[-1], known)}',
            span_of(node),
        )
    use(node, *node.parts)
    return tables[0]


def refuse_double_names(relations: Sequence[Relation], star: exp.Expr) -> bool:
    """Raise `AmbiguousName` where * would give a column twice under one name with its table; returns False."""
    if len({(r.name or "").lower() for r in relations}) == len(relations):
        return False
    seen: set[tuple[str, str]] = set()
    for relation in relations:
        if relation.name is None:
            continue
        names = {(relation.name.lower(), name) for name in relation.by_name}
        for table, column in sorted(names & seen):
            raise AmbiguousName(
                f'Two tables of this query are called "{table}" and have a column "{column}": '
                "give each an alias of its own.",
                span_of(star),
            )
        seen |= names
    return False


def _check_types(star: exp.Star, relations: Sequence[Relation], node: exp.Expr) -> None:
    """Raise `Unsupported` for columns that `*` would give and no query can read, unless EXCLUDE takes them out."""
    listed = [item.name for item in star.args.get("except_") or ()]
    excluded = {name.lower() for name in listed}
    found = [
        refused
        for relation in relations
        for name, refused in relation.refused.items()
        if name not in excluded
    ]
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        names = ", ".join(quoted(name) for name in [*listed, *(name for name, _ in found)])
        raise Unsupported(
            f"{refusal(*found[0])}{more}: leave that out by * EXCLUDE ({names}).", span_of(node)
        )


def _star(
    star: exp.Star,
    columns: tuple[tuple[str, Column], ...],
    node: exp.Expr,
    scope: Scope,
) -> list[SelectItem]:
    """Write out `*` with its EXCLUDE, REPLACE and RENAME lists."""
    if not columns:
        raise InvalidQuery("* needs a FROM clause.", span_of(node))
    use(star)
    for item in (*(star.args.get("rename") or ()), *(star.args.get("replace") or ())):
        use(item, item.args["alias"])
    excluded = _named(star, "except_", columns, scope)
    renamed = {
        old: item.alias
        for item in star.args.get("rename") or ()
        for old in _places(item.this, columns, scope, "RENAME")
    }
    replaced = {
        old: item
        for item in star.args.get("replace") or ()
        for old in _places(item.args["alias"], columns, scope, "REPLACE")
    }
    items: list[SelectItem] = []
    for i, (name, column) in enumerate(columns):
        if i in replaced:
            items.append(SelectItem(replaced[i].alias, replaced[i].this))
        elif i not in excluded:
            items.append(SelectItem(renamed.get(i, name), node, column))
    return items


def _named(
    star: exp.Star, key: str, columns: tuple[tuple[str, Column], ...], scope: Scope
) -> set[int]:
    refused = {name for relation in scope.relations for name in relation.refused}
    found: set[int] = set()
    for item in star.args.get(key) or ():
        if item.name.lower() in refused:
            use_all(item)
        else:
            found.update(_places(item, columns, scope, "EXCLUDE"))
    return found


def _places(
    node: exp.Expr, columns: tuple[tuple[str, Column], ...], scope: Scope, clause: str
) -> list[int]:
    """Return the positions of the columns that a name in one of the lists stands for."""
    if isinstance(node, exp.Column) and node.args.get("table") is not None:
        use(node)
        found = scope.resolve(node.parts)
        places = [i for i, (_, c) in enumerate(columns) if ColumnRef(c) == found]
    else:
        places = [i for i, (name, _) in enumerate(columns) if name.lower() == node.name.lower()]
        use(node, *(node.parts if isinstance(node, exp.Column) else ()))
    if not places:
        hint = nearest(node.name, [name for name, _ in columns])
        raise UnknownName(f'There is no column "{node.name}" to {clause}.{hint}', span_of(node))
    return places
