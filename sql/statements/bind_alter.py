"""ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fuseline.errors import CatalogError, UnknownColumn, UnknownName, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.changes.catalog_objects import StoredExpression, TableRules, beside, rules_of
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import ColumnRef, Expr
from fuseline.plan.logical import CatalogTable, Scan
from fuseline.plan.statements import AlteredColumn, AlterTable, NoOperation, RenameView, Statement
from fuseline.plan.text.quoted_name import quoted_name
from fuseline.plan.types import DataType

from ...records import dataclass
from ..binding.function_names import data_type
from ..binding.scope import Scope, Source
from ..parsing.pieces import Piece, span_of
from ..parsing.tokens import tokenize
from ..parsing.unread import use, use_all
from .assignments import table_name, target_table, with_values
from .bind_table_rules import (
    RulesReader,
    default_value,
    has_generation,
    home_of,
    source_of,
    stored_text,
    tree_of_stored,
)

if TYPE_CHECKING:
    from .alter_fields import FieldChange


@dataclass(frozen=True)
class _Altered:
    """A table as it is altered: its columns, its rules, and what is computed for one of them over its rows."""

    name: str
    table: CatalogTable
    columns: tuple[AlteredColumn, ...]
    rules: TableRules
    source: Source
    scope: Scope
    piece: Piece
    computed: Expr | None = None

    def column(self, node: exp.Expr) -> AlteredColumn:
        """Return the column that a node names."""
        use(node, *(node.parts if isinstance(node, exp.Column) else ()))
        for column in self.columns:
            if column.name.lower() == node.name.lower():
                return column
        hint = nearest(node.name, [c.name for c in self.columns])
        raise UnknownColumn(
            f'The table "{self.name}" has no column "{node.name}".{hint}', span_of(node)
        )

    def has(self, name: str) -> bool:
        return any(column.name.lower() == name.lower() for column in self.columns)

    def exchanged(self, old: AlteredColumn, *new: AlteredColumn) -> tuple[AlteredColumn, ...]:
        """Return the columns with others in the place of one."""
        return tuple(c for column in self.columns for c in ((column,) if column != old else new))


def alter(piece: Piece, scope: Scope) -> Statement:
    from .alter_fields import field_change  # which few processes need

    change = field_change(piece, scope)
    if change is not None:
        return _alter_field(change, piece, scope)
    node = scope.session.parse(piece)
    if not isinstance(node, exp.Alter):
        raise Unsupported("This form of ALTER is not supported.", span_of(node))
    use(node)
    kind, actions = str(node.args["kind"]).upper(), node.args["actions"]
    if len(actions) != 1:
        raise Unsupported("ALTER makes one change.", span_of(node.this))
    name, action = table_name(node.this, scope), actions[0]
    catalog = scope.session.catalog
    if node.args.get("exists") and catalog.table(name) is None and catalog.view(name) is None:
        use_all(action)
        return NoOperation()
    if kind == "VIEW" or catalog.view(name) is not None:
        return _rename_view(name, action, node, scope)
    before = _as_it_is(target_table(node.this, scope), piece, scope)
    return _statement(before, _change(before, action))


def _as_it_is(table: CatalogTable, piece: Piece, scope: Scope) -> _Altered:
    source = source_of(StandIn(table.name, table.fields))
    columns = tuple(AlteredColumn(n, t, n) for n, t in table.fields)
    return _Altered(table.name, table, columns, rules_of(table), source, scope, piece)


def _statement(before: _Altered, after: _Altered) -> Statement:
    table, value, computed = before.table, after.computed, None
    rows = before.source.plan
    assert isinstance(rows, Scan)
    assert isinstance(rows.table, StandIn)
    if value is not None:
        computed = with_values(rows, (), {"computed": value})
    return AlterTable(table.name, after.name, after.columns, after.rules, rows.table, computed)


def _alter_field(change: FieldChange, piece: Piece, scope: Scope) -> Statement:
    """Change the type of the column that a field is in."""
    name, catalog = table_name(change.table, scope), scope.session.catalog
    if change.exists and catalog.table(name) is None and catalog.view(name) is None:
        return NoOperation()
    table = _as_it_is(target_table(change.table, scope), piece, scope)
    node = exp.to_identifier(change.path[0], quoted=True)
    node.meta.update(first=change.place.start, last=change.place.end, view=None)
    if change.lenient and change.how == "DROP" and not table.has(node.name):
        return NoOperation()
    column = table.column(node)
    made = change.remade(quoted_name(column.name), column.type)
    if made is None:
        return NoOperation()
    text, target = made
    value = tree_of_stored(stored_text(text), scope, "a change of fields")
    after = _retyped(table, column, target, value, node)
    default = table.rules.default(column.name)
    if default is not None:
        old = f"[CAST(({default.text.removeprefix('SELECT ')}) AS {column.type})]"
        again = change.remade("x", column.type, 1)
        assert again is not None
        rest = f"list_transform({old}, lambda x: {again[0]})[1]"
        after = replace(after, rules=after.rules.with_default(column.name, stored_text(rest)))
    return _statement(table, after)


def _rename_view(name: str, action: exp.Expr, node: exp.Alter, scope: Scope) -> Statement:
    view = scope.session.catalog.view(name)
    if view is None:
        hint = nearest(name, scope.session.catalog.names())
        raise UnknownName(f'There is no view "{name}".{hint}', span_of(node.this))
    if not isinstance(action, exp.AlterRename):
        raise CatalogError(f'"{name}" is a view, which can be renamed alone.', span_of(node.this))
    use(action)
    return RenameView(view.name, _new_name(view.name, action))


def _new_name(old: str, action: exp.AlterRename) -> str:
    """Return the new name, which is in the place of the old one."""
    node = action.this
    if len(node.parts) > 1:
        raise Unsupported("RENAME TO takes a name without a schema.", span_of(node))
    use(node, node.this)
    return beside(old, node.name)


def _change(table: _Altered, action: exp.Expr) -> _Altered:
    use(action)
    match action:
        case exp.AlterRename():
            return replace(table, name=_new_name(table.table.name, action))
        case exp.RenameColumn():
            return _rename(table, action)
        case exp.ColumnDef():
            return _add(table, action)
        case exp.Drop():
            return _drop(table, action)
        case exp.AlterColumn():
            return _alter_column(table, action)
        case exp.AddConstraint():
            reader = RulesReader(table.name, table.scope)
            for part in action.expressions:
                reader.of_table(part)
            return replace(table, rules=_merged(table, reader, table.columns))
    raise Unsupported("This change of a table is not supported.", span_of(action))


def _merged(table: _Altered, reader: RulesReader, columns: Sequence[AlteredColumn]) -> TableRules:
    old, new = table.rules, reader.rules([(c.name, c.type) for c in columns])
    if reader.checks:
        raise Unsupported(
            "A CHECK cannot be added to a table: create it anew.", span_of(reader.checks[0][1])
        )
    if any(key.primary for key in old.keys) and any(key.primary for key in new.keys):
        raise CatalogError(f'The table "{table.name}" has a primary key already.')
    for name in {*new.not_null, *(n for key in new.keys for n in key.columns)}:
        _refuse_generated(table, name, None)
    return TableRules(
        old.not_null | new.not_null,
        (*old.defaults, *new.defaults),
        old.checks,
        tuple(sorted((*old.keys, *new.keys), key=lambda key: not key.primary)),
        old.generated,
        old.comments,
        old.indexes,
    )


def _refuse_generated(table: _Altered, name: str, node: exp.Expr | None) -> None:
    if table.rules.is_generated(name):
        raise CatalogError(
            f'"{name}" is a generated column: it can be renamed and dropped alone.', span_of(node)
        )


def _readers(table: _Altered, name: str) -> list[str]:
    """Return the generated columns that read a column."""
    generated = table.rules.generated
    return [own for own, e in generated if name.lower() in _names(e, table.scope)]


def _add(table: _Altered, node: exp.ColumnDef) -> _Altered:
    if table.has(node.name):
        if node.args.get("exists"):
            use_all(node)
            return table
        raise CatalogError(
            f'The table "{table.name}" has a column "{node.name}" already.', span_of(node)
        )
    if has_generation(node):
        raise Unsupported(
            "A generated column cannot be added to a table: create it anew, or write a view that computes the column.",
            span_of(node),
        )
    reader = RulesReader(table.name, table.scope)
    name, target = reader.column(node)
    columns = (*table.columns, AlteredColumn(name, target, None))
    rules = _merged(table, reader, columns)
    alone, home = Scope(table.scope.session), home_of(table.table)
    value = default_value(rules, name, target, alone, home=home)
    return replace(table, columns=columns, rules=rules, computed=value)


def _drop(table: _Altered, node: exp.Drop) -> _Altered:
    named = node.args["tables"][0]
    if node.args.get("exists") and not table.has(named.name):
        use(named, *named.parts)
        return table
    column = table.column(named)
    _refuse_indexed(table, column.name, named)
    if any(column.name in key.columns for key in table.rules.keys):
        raise CatalogError(f'"{column.name}" is part of a key of the table.', span_of(named))
    if any(column.name.lower() in _names(check, table.scope) for check in table.rules.checks):
        raise CatalogError(f'"{column.name}" is part of a CHECK of the table.', span_of(named))
    for reader in _readers(table, column.name):
        raise CatalogError(
            f'The generated column "{reader}" is made of "{column.name}": drop that first.',
            span_of(named),
        )
    generated = tuple((n, e) for n, e in table.rules.generated if n != column.name)
    if len(table.columns) == len(generated) + 1:
        raise CatalogError("A table keeps at least one column.", span_of(named))
    rules = table.rules.with_default(column.name, None)
    rules = replace(rules, not_null=rules.not_null - {column.name}, generated=generated)
    rules = replace(rules, comments=rules.comments.with_text(column.name, None))
    return replace(table, columns=table.exchanged(column), rules=rules)


def _refuse_indexed(table: _Altered, name: str, node: exp.Expr) -> None:
    for index in table.rules.indexes:
        if name in index.columns or len(index.columns) < len(index.expressions):
            raise CatalogError(
                f'The index "{index.name}" of the table needs "{name}": drop the index first.',
                span_of(node),
            )


def _names(check: StoredExpression, scope: Scope) -> set[str]:
    tree = tree_of_stored(check, scope, "a rule")
    use_all(tree)
    parts = (part for column in tree.find_all(exp.Column) for part in column.parts)
    return {part.name.lower() for part in parts}


def _rename(table: _Altered, node: exp.RenameColumn) -> _Altered:
    column, new = table.column(node.this), node.args["to"]
    use(new, *new.parts)
    if new.name.lower() != column.name.lower() and table.has(new.name):
        raise CatalogError(
            f'The table "{table.name}" has a column "{new.name}" already.', span_of(new)
        )
    rules = table.rules.renamed(lambda name: new.name if name == column.name else name)
    checks = tuple(_renamed(c, column.name, new.name, table.scope) for c in rules.checks)
    generated = tuple(
        (name, _renamed(e, column.name, new.name, table.scope)) for name, e in rules.generated
    )
    columns = table.exchanged(column, replace(column, name=new.name))
    rules = replace(rules, checks=checks, generated=generated)
    return replace(table, columns=columns, rules=rules)


def _renamed(check: StoredExpression, old: str, new: str, scope: Scope) -> StoredExpression:
    """Return an expression with another name for a column."""
    tree = tree_of_stored(check, scope, "a rule")
    use_all(tree)
    text, quoted = check.text, new.replace('"', '""')
    names = [c.this for c in tree.find_all(exp.Column) if c.name.lower() == old.lower()]
    for place in sorted((span_of(name) for name in names), key=lambda p: -p.start if p else 0):
        assert place is not None
        text = f'{text[: place.start]}"{quoted}"{text[place.end :]}'
    return stored_text(text.removeprefix("SELECT "))


def _alter_column(table: _Altered, node: exp.AlterColumn) -> _Altered:
    column = table.column(node.this)
    name, kind, default = column.name, node.args.get("dtype"), node.args.get("default")
    if kind is not None:
        target = data_type(kind, table.scope.session.catalog.user_types)
        return _retyped(table, column, target, node.args.get("using"), node)
    _refuse_generated(table, name, node)
    if default is not None:
        RulesReader(table.name, table.scope).check_default(default, column.type)
        rules = table.rules.with_default(name, stored_text(_behind_default(table.piece)))
    elif node.args.get("allow_null") is None:
        rules = table.rules.with_default(name, None)
    elif node.args["allow_null"]:
        if any(key.primary and name in key.columns for key in table.rules.keys):
            raise CatalogError(f'"{name}" is part of the primary key.', span_of(node))
        rules = replace(table.rules, not_null=table.rules.not_null - {name})
    else:
        rules = replace(table.rules, not_null=table.rules.not_null | {name})
    return replace(table, rules=rules)


def _retyped(
    table: _Altered, column: AlteredColumn, target: DataType, using: exp.Expr | None, node: exp.Expr
) -> _Altered:
    """Give a column another type, its values those of an expression or cast to that."""
    name = column.name
    _refuse_generated(table, name, node)
    for reader in _readers(table, name):
        raise CatalogError(
            f'The generated column "{reader}" is made of "{name}", so its type stays.',
            span_of(node),
        )
    _refuse_indexed(table, name, node)
    if any(name.lower() in _names(c, table.scope) for c in table.rules.checks):
        raise CatalogError(
            f'"{name}" is part of a CHECK of the table, so its type stays: create the table anew.',
            span_of(node),
        )
    inside = table.scope.over(table.source).inside("ALTER TABLE")
    old = {c.name: c for c in table.source.plan.columns}[name]
    value = infer.cast(inside.bind(using) if using else ColumnRef(old), target)
    columns = table.exchanged(column, AlteredColumn(name, target, None))
    return replace(table, columns=columns, computed=value)


def _behind_default(piece: Piece) -> str:
    """Return the text behind SET DEFAULT, which ends the statement."""
    words = [(token.text.lower(), token.end + 1) for token in tokenize(piece)]
    end = next(
        end
        for (before, _), (word, end) in itertools.pairwise(words)
        if before == "set" and word == "default"
    )
    return piece.sql[end:].strip()
