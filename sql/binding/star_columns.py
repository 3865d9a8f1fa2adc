"""`*`, `t.*` and `s.*`: their columns, with the lists behind them: EXCLUDE, REPLACE, RENAME and a pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline.errors import AmbiguousName, InvalidQuery, UnknownName, Unsupported, nearest
from fuseline.plan.expr import Column, ColumnRef, new_column
from fuseline.plan.types import NULL, Kind
from fuseline.sql.names.reader import quoted
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use, use_all
from .columns_chosen import ChosenColumn, copied, matching_star
from .scope import Relation, Scope, refusal

_Columns = Sequence[
    tuple[str, Column, Column]
]  # their names, what they show, and their tables' own


def star_columns(item: exp.Expr, scope: Scope) -> Sequence[ChosenColumn]:
    """Return the columns of `*`, `t.*` or `s.*`, where s is a STRUCT."""
    if isinstance(item, exp.Star):
        refuse_double_names(scope.relations, item)
        _check_types(item, scope.relations, item)
        return _star(item, _of_tables(item, scope), item, scope)
    assert isinstance(item, exp.Column)
    if (struct := _struct_named(item, scope)) is not None:
        use(item)
        made = [new_column(name, NULL) for name in scope.bind(struct).type.names]
        fields = [(column.name, column, column) for column in made]
        return [
            each if each.column is None else replace(each, column=None, node=_field(struct, each))
            for each in _star(item.this, fields, item, scope)
        ]
    table = _table_named(item, scope)
    _check_types(item.this, (table,), item)
    return _star(item.this, [(name, c, c) for name, c in table.columns], item, scope)


def _struct_named(node: exp.Column, scope: Scope) -> exp.Expr | None:
    """Return the column s of `s.*`, where s is a STRUCT and no table."""
    parts = node.parts[:-1]
    if scope.relations_named([part.name for part in parts]):
        return None
    found = scope.find([part.name for part in parts])
    if found is None or found.type.kind is not Kind.STRUCT or found.type.is_tuple:
        return None
    use(node, *parts)
    return exp.Column(**dict(zip(("this", "table", "db"), reversed(parts), strict=False)))


def _field(struct: exp.Expr, field: ChosenColumn) -> exp.Expr:
    return exp.Dot(this=struct, expression=exp.to_identifier(field.spelled, True))


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


def _star(star: exp.Star, columns: _Columns, node: exp.Expr, scope: Scope) -> list[ChosenColumn]:
    """Write out `*` with its EXCLUDE, REPLACE and RENAME lists."""
    if not columns:
        raise InvalidQuery("* needs a FROM clause.", span_of(node))
    use(star)
    for item in (*(star.args.get("rename") or ()), *(star.args.get("replace") or ())):
        use(item, item.args["alias"])
    merged = scope.shown if isinstance(node, exp.Star) else {}
    excluded = _excluded(star, columns, merged, scope)
    renamed = {
        old: item.alias
        for item in star.args.get("rename") or ()
        for old in _places(item.this, columns, merged, scope, "RENAME")
    }
    replaced = {
        old: item
        for item in star.args.get("replace") or ()
        for old in _places(item.args["alias"], columns, merged, scope, "REPLACE")
    }
    for places, clause in ((excluded, "EXCLUDE"), (replaced, "REPLACE")):
        for twice in renamed.keys() & places:
            name = columns[twice][0]
            raise InvalidQuery(f'"{name}" stands in {clause} and in RENAME.', span_of(node))
    listed = {item.name.lower() for item in star.args.get("except_") or ()}
    for item in replaced.values():
        if item.alias.lower() in listed:
            text = f'"{item.alias}" stands in EXCLUDE and in REPLACE.'
            raise InvalidQuery(text, span_of(node))
    found: list[ChosenColumn] = []
    for i, (name, column, _) in enumerate(columns):
        if i in replaced:
            found.append(ChosenColumn(replaced[i].alias, name, None, replaced[i].this))
        elif i not in excluded:
            found.append(ChosenColumn(renamed.get(i, name), name, column))
    pattern = star.args.get("ilike")
    if not isinstance(pattern, exp.Expr):
        return found
    test = exp.ILike(this=exp.Star(), expression=copied(pattern))
    use_all(pattern)
    return matching_star(test, found, scope)


def _of_tables(star: exp.Star, scope: Scope) -> _Columns:
    """Return the columns of *: one of USING stands where the first table is that EXCLUDE does not name it of."""
    listed = [item for item in star.args.get("except_") or () if item.args.get("table")]
    excluded = {c.column for c in map(scope.bind, listed) if isinstance(c, ColumnRef)}
    tables = [each for relation in scope.relations for each in relation.columns]
    if scope.shown.keys().isdisjoint(excluded):
        first = {scope.shown[own]: own for _, own in reversed(tables) if own in scope.shown}
        return [(name, column, first.get(column, column)) for name, column in scope.star]
    known = {own for _, own in tables}
    found: dict[Column, tuple[str, Column, Column]] = {}
    for name, own in tables:
        shown = scope.shown.get(own, own)
        if shown not in found and not (own in scope.shown and own in excluded):
            found[shown] = (shown.name if shown in known else name, shown, own)
    return list(found.values())


def _excluded(
    star: exp.Star, columns: _Columns, merged: Mapping[Column, Column], scope: Scope
) -> set[int]:
    refused = {name for relation in scope.relations for name in relation.refused}
    found: set[int] = set()
    seen: dict[str, set[str]] = {}
    for item in star.args.get("except_") or ():
        tables, table = seen.setdefault(item.name.lower(), set()), item.text("table").lower()
        if tables and (not table or not tables.isdisjoint(("", table))):
            raise InvalidQuery(f'"{item.name}" stands twice in EXCLUDE.', span_of(item))
        tables.add(table)
        if item.name.lower() in refused:
            use_all(item)
        else:
            found.update(_places(item, columns, merged, scope, "EXCLUDE"))
    return found


def _places(
    node: exp.Expr,
    columns: _Columns,
    merged: Mapping[Column, Column],
    scope: Scope,
    clause: str,
) -> list[int]:
    """Return the positions of the columns that a name in one of the lists stands for, none for one that USING has left out."""
    if isinstance(node, exp.Column) and node.args.get("table") is not None:
        use(node)
        found = scope.resolve(node.parts)
        column = found.column if isinstance(found, ColumnRef) else None
        places = [i for i, (_, _, own) in enumerate(columns) if own == column]
        if column in merged and (clause == "EXCLUDE" or not places):
            return []
    else:
        places = [i for i, (name, *_) in enumerate(columns) if name.lower() == node.name.lower()]
        use(node, *(node.parts if isinstance(node, exp.Column) else ()))
    if not places:
        hint = nearest(node.name, [name for name, *_ in columns])
        raise UnknownName(f'There is no column "{node.name}" to {clause}.{hint}', span_of(node))
    return places
