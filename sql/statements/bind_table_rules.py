"""The rules of a table: read from CREATE and ALTER, and bound again for each statement that writes rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import infer
from fuseline.plan.changes import catalog_objects as co
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import ColumnRef, Expr, Literal, columns_of, new_column
from fuseline.plan.logical import CatalogTable, Filter, Limit, Logical, Project, Scan
from fuseline.plan.types import NULL, DataType

from ...records import dataclass
from ..binding.draws.volatile import DEFAULT_OF_ROWS
from ..binding.function_names import data_type
from ..binding.scope import Relation, Scope, Source
from ..names import result_name
from ..parsing.generated_words import GENERATED
from ..parsing.pieces import Piece, mark, span_of, written
from ..parsing.unread import use

Fields = Sequence[tuple[str, DataType]]
_NO_FOREIGN_KEYS = "Foreign keys are not supported: leave REFERENCES out, or look for rows without one by an ANTI JOIN."


@dataclass
class RulesReader:
    """Collects the rules that a statement writes for the columns of a table."""

    table: str
    scope: Scope
    not_null: set[str] = field(default_factory=set)
    defaults: list[tuple[str, co.StoredExpression]] = field(default_factory=list)
    checks: list[tuple[co.StoredExpression, exp.Expr]] = field(default_factory=list)
    keys: list[tuple[list[exp.Expr], bool, exp.Expr]] = field(default_factory=list)
    generated: dict[str, exp.Expr] = field(default_factory=dict)

    def column(self, node: exp.ColumnDef) -> tuple[str, DataType]:
        """Read a column's definition; return its name and type."""
        use(node, node.this)
        if node.kind is None and has_generation(node):
            self._generated(node)
            return node.name, NULL  # its type is that of its expression
        if node.kind is None:
            raise err.ParseError(f'The column "{node.name}" needs a type.', span_of(node))
        try:
            target = data_type(node.kind, self.scope.session.catalog.user_types)
        except err.FuselineError as error:
            error.span = error.span or span_of(node)
            raise
        if has_generation(node):
            self._generated(node)
            return node.name, target
        for constraint in node.args.get("constraints") or ():
            if not isinstance(constraint, exp.ColumnConstraint):
                raise err.Unsupported("This is no constraint.", span_of(constraint))
            self._of_column(node, constraint.kind, target)
            use(constraint, constraint.kind)
            if constraint.this is not None:  # a name, which an error has no need of
                use(constraint.this)
        return node.name, target

    def _generated(self, node: exp.ColumnDef) -> None:
        constraint, *others = node.args["constraints"]
        if others or not is_generation(constraint):
            raise err.Unsupported(
                f'The generated column "{node.name}" takes no constraint and no DEFAULT.',
                span_of(node),
            )
        use(constraint, constraint.this, constraint.kind)
        self.generated[node.name] = constraint.kind.this

    def _of_column(self, node: exp.ColumnDef, kind: exp.Expr, target: DataType) -> None:
        match kind:
            case exp.PrimaryKeyColumnConstraint():
                self.keys.append(([node.this], True, node))
            case exp.UniqueColumnConstraint(this=None):
                self.keys.append(([node.this], False, node))
            case exp.NotNullColumnConstraint():
                if not kind.args.get("allow_null"):
                    self.not_null.add(node.name)
            case exp.DefaultColumnConstraint():
                self.defaults.append((node.name, self.default(kind.this, target)))
            case exp.CheckColumnConstraint():
                self.checks.append((stored(kind.this), kind.this))
            case exp.Reference():
                raise err.Unsupported(_NO_FOREIGN_KEYS, span_of(kind))
            case exp.CollateColumnConstraint():
                raise err.Unsupported(
                    "A column has no collation here: write COLLATE where it is compared or sorted, as in ORDER BY name COLLATE NOCASE.",
                    span_of(kind.this),
                )
            case _:
                raise err.Unsupported(
                    f'This constraint on the column "{node.name}" is not supported: there are NOT NULL, DEFAULT, CHECK, '
                    "PRIMARY KEY and UNIQUE.",
                    span_of(node),
                )

    def default(self, node: exp.Expr, target: DataType) -> co.StoredExpression:
        """Check the expression of a default and return what is kept of it."""
        self.check_default(node, target)
        return stored(node)

    def check_default(self, node: exp.Expr, target: DataType) -> None:
        """Raise what is wrong with the expression of a default."""
        value = infer.cast(self.scope.inside(DEFAULT_OF_ROWS).bind(node), target)
        if value.subqueries:
            raise err.InvalidQuery("A default can hold no subquery.", span_of(node))

    def of_table(self, node: exp.Expr) -> None:
        """Read a rule that stands beside the columns."""
        use(node)
        match node:
            case exp.Constraint():
                use(node.this)
                for part in node.expressions:
                    self.of_table(part)
            case exp.PrimaryKey():
                use(node.args["include"])  # sqlglot sets an empty one for each key
                self.keys.append((node.expressions, True, node))
            case exp.UniqueColumnConstraint(this=exp.Schema() as columns):
                use(columns)
                self.keys.append((columns.expressions, False, node))
            case exp.CheckColumnConstraint():
                self.checks.append((stored(node.this), node.this))
            case exp.ForeignKey():
                raise err.Unsupported(_NO_FOREIGN_KEYS, span_of(node))
            case _:
                raise err.Unsupported("This table constraint is not supported.", span_of(node))

    def rules(self, fields: Fields) -> co.TableRules:
        """Return the rules for a table of these columns, once each was bound."""
        if sum(primary for _, primary, _ in self.keys) > 1:
            place = [node for _, primary, node in self.keys if primary][1]
            raise err.InvalidQuery(
                f'The table "{self.table}" has two primary keys.', span_of(place)
            )
        spelled = {name.lower(): name for name, _ in fields}
        keys = [
            co.UniqueKey(_key_columns(names, spelled), primary) for names, primary, _ in self.keys
        ]
        keys.sort(key=lambda key: not key.primary)
        primary = {name for key in keys if key.primary for name in key.columns}
        for key in keys:
            self._refuse_generated(key.columns, None)
        rows = StandIn(self.table, tuple(fields))
        for _, node in self.checks:
            self._refuse_generated([c.name for c in node.find_all(exp.Column)], node)
            _check(node, self.scope, rows)
        return co.TableRules(
            frozenset(self.not_null | primary),
            tuple(self.defaults),
            tuple(shown for shown, _ in self.checks),
            tuple(keys),
        )

    def _refuse_generated(self, names: Sequence[str], node: exp.Expr | None) -> None:
        known = {name.lower() for name in self.generated}
        for name in names:
            if name.lower() in known:
                raise err.Unsupported(
                    f'The generated column "{name}" cannot be part of a key or a CHECK.',
                    span_of(node),
                )


def _key_columns(names: Sequence[exp.Expr], spelled: dict[str, str]) -> tuple[str, ...]:
    found = []
    for node in names:
        name = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(node, exp.Ordered):
            use(node)
        use(name, *(name.parts if isinstance(name, exp.Column) else ()))
        if name.name.lower() not in spelled:
            hint = err.nearest(name.name, spelled.values())
            raise err.UnknownColumn(f'There is no column "{name.name}" here.{hint}', span_of(node))
        found.append(spelled[name.name.lower()])
    if len(set(found)) < len(found):
        raise err.InvalidQuery("A key names a column twice.", span_of(names[0]))
    return tuple(found)


def stored(node: exp.Expr) -> co.StoredExpression:
    """Return what is kept of an expression, of which the parser has noted the text."""
    text = written(node)
    if text is None:
        raise err.Unsupported("This expression cannot be kept with a table.", span_of(node))
    return stored_text(text.text)


def stored_text(text: str) -> co.StoredExpression:
    return co.StoredExpression(f"SELECT {text}", result_name(text, 1))


def tree_of_stored(expression: co.StoredExpression, scope: Scope, what: str) -> exp.Expr:
    """Parse a stored expression, whose errors show its own text."""
    tree = scope.session.parse(Piece(expression.text, 0, len(expression.text)))
    mark(tree, err.ViewText(what, expression.text))
    use(tree)
    found: exp.Expr = tree.expressions[0]
    return found


def source_of(rows: StandIn, alias: str | None = None) -> Source:
    """Return the rows that a stand-in stands for as a relation; the number of each is in the plan alone."""
    made = tuple(new_column(name, kind) for name, kind in rows.fields)
    names = tuple(name for name, _ in rows.fields)
    shown = [c for c in made if c.name != rows.number]
    star = tuple((c.name, c) for c in shown)
    place = getattr(rows.name, "place", co.SchemaPlace(co.MEMORY)) if alias is None else None
    relation = Relation(alias or rows.name, star, place=place)
    return Source(Scan(rows, made, names), (relation,), {}, star)


def check_plans(
    rules: co.TableRules, rows: StandIn, scope: Scope
) -> tuple[tuple[str, Logical], ...]:
    """Return for each check a plan of a row that breaks it."""
    what = f"rules of {rows.name}"
    return tuple(
        (
            check.shown.removeprefix("(").removesuffix(")"),
            _check(tree_of_stored(check, scope, what), scope, rows),
        )
        for check in rules.checks
    )


def home_of(table: CatalogTable) -> co.SchemaPlace | None:
    """Return the schema of a table, in which names in its defaults are looked up first."""
    return getattr(table.name, "place", None)


def is_generation(constraint: exp.Expr) -> bool:
    """Whether what stands behind a column makes it a generated one."""
    named = isinstance(constraint, exp.ColumnConstraint) and constraint.this
    return isinstance(named, exp.Identifier) and named.name == GENERATED


def has_generation(node: exp.ColumnDef) -> bool:
    return any(map(is_generation, node.args.get("constraints") or ()))


def _check(node: exp.Expr, scope: Scope, rows: StandIn) -> Logical:
    source = source_of(rows)
    bound = infer.condition(scope.over(source).inside("CHECK").bind(node))
    if bound.subqueries:
        raise err.InvalidQuery("A CHECK can hold no subquery.", span_of(node))
    broken = Filter(source.plan, infer.call("not", [bound]))
    reads = sorted(columns_of(bound), key=lambda c: c.id)
    return Limit(Project(broken, tuple((c, ColumnRef(c)) for c in reads or source.plan.columns)), 1)


def default_value(
    rules: co.TableRules,
    column: str,
    target: DataType,
    scope: Scope,
    clause: str = DEFAULT_OF_ROWS,
    home: co.SchemaPlace | None = None,
) -> Expr:
    """Return what a column of a table in the schema `home` gets that is given no value; it may draw for each row anew."""
    default = rules.default(column)
    if default is None:
        return Literal(None, target)
    tree = tree_of_stored(default, scope, f'the default of "{column}"')
    inside = scope.changed(session=replace(scope.session, home=home)).inside(clause)
    return infer.cast(inside.bind(tree), target)
