"""What names mean at one place of a query.

`bind_expr.bind` takes a `Scope` for everything that it cannot know from the expression alone: columns, select aliases,
subqueries, parameters, and whether an aggregate may stand here.  Two conventions between the two:

- an aggregate is bound with its arguments in `scope.inside_aggregate()` and comes back as an `AggregateCall` within the tree;
- GROUPING(a, b) comes back as `Call("grouping", (a, b), BIGINT)`; `bind_group` replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property, reduce

from sqlglot import exp

from fuseline import errors as err
from fuseline.catalog import Catalog
from fuseline.plan.changes.catalog_objects import SchemaPlace
from fuseline.plan.composed.nested_values import field as field_of, struct_pack
from fuseline.plan.expr import Column, ColumnRef, Expr
from fuseline.plan.logical import Logical
from fuseline.plan.types import JSON, DataType, Kind
from fuseline.sql.parsing.pieces import mark, span_of

from ...records import dataclass
from ..parsing.parse import parse
from ..parsing.pieces import Piece, Written
from ..parsing.text_shape import TextSlots
from ..parsing.unread import Tree, use
from .constants.parameters import Parameters
from .named_queries import BoundQuery, CallerVariables, NamedQueries
from .udf.drawing_calls import find_draw


@dataclass(frozen=True)
class Relation:
    """One item of FROM: its alias, and its columns under the names that they have here."""

    name: str | None
    columns: tuple[tuple[str, Column], ...]
    # Columns that no query can read, by their names in lower case: as they are spelled, and their types
    refused: Mapping[str, tuple[str, DataType]] = field(default_factory=dict)
    # Of a table or view under its own name, which may stand behind that of its schema
    place: SchemaPlace | None = None
    also: tuple[tuple[str, Column], ...] = ()  # other names of columns, which * does not show

    @cached_property
    def by_name(self) -> dict[str, list[Column]]:
        found: dict[str, list[Column]] = {}
        for name, column in (*self.columns, *self.also):
            found.setdefault(name.lower(), []).append(column)
        return found

    @cached_property
    def readable(self) -> frozenset[Column]:
        return frozenset(column for _, column in (*self.columns, *self.also))


def refusal(name: str, data_type: DataType) -> str:
    """Return what is said of a column that queries cannot read, without a full stop."""
    return f'The column "{name}" has the type {data_type}, which queries cannot read'


@dataclass(frozen=True)
class Source:
    """What FROM gives to the rest of a query; the fields are explained at `Scope`."""

    plan: Logical
    relations: tuple[Relation, ...]
    merged: Mapping[str, Column]
    star: tuple[tuple[str, Column], ...]
    shown: Mapping[Column, Column] = field(default_factory=dict)


@dataclass
class Session:
    """What is the same in all scopes of one statement; modules that define `bind_query` and `bind_expression` need `Scope` themselves."""

    catalog: Catalog
    parameters: Parameters
    bind_query: Callable[[exp.Expr, Scope], Logical]
    bind_expression: Callable[[exp.Expr, Scope], Expr]
    text: str  # of the query or view being bound, for the names of columns without an alias
    # Whether nothing will run, so that columns which no query can read do no harm
    describes: bool = False
    views: tuple[str, ...] = ()  # the views being expanded, to refuse one that names itself
    home: SchemaPlace | None = None  # of the innermost, whose tables are looked up there first
    trees: list[Tree] = field(default_factory=list)  # what was parsed for the statement
    named: NamedQueries = field(default_factory=NamedQueries)
    objects: CallerVariables | None = None
    # Reasons why the plan is not kept for the next run of its text
    passing: list[str] = field(default_factory=list)
    stored: err.ViewText | None = None  # whose text the pieces are of
    slots: TextSlots | None = None  # of a text whose plan is to serve others of its shape

    def name_of(self, item: Written, make: Callable[[str], str]) -> str:
        """Return the name that is made of how an item is written."""
        name = make(item.text)
        if self.slots is not None:
            self.slots.note_name(item, name, make)
        return name

    def parse(self, piece: Piece) -> exp.Expr:
        """Return the tree of a statement, of which binding has to use every part."""
        tree = parse(piece)
        if self.stored is not None:
            mark(tree.root, self.stored)
        elif self.slots is not None:
            self.slots.mark(tree, piece)
        self.trees.append(tree)
        return tree.root


@dataclass(frozen=True)
class Cte:
    """A WITH entry: its query, bound in `scope` when it is first named."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...]
    scope: Scope
    bound: BoundQuery = field(default_factory=BoundQuery, compare=False)
    reads_itself: bool = False
    keys: tuple[exp.Expr, ...] = ()  # of USING KEY

    def use(self) -> None:
        """Note that a query names this entry."""
        entry = self.query.parent
        assert entry is not None
        alias = entry.args["alias"]
        use(entry, alias, alias.this, *(alias.args.get("columns") or ()))


@dataclass(frozen=True)
class Scope:
    """The names visible to one expression.

    `merged` holds the columns of USING and NATURAL, which no table prefix is needed for; `star` is what * stands for, with
    each of them once, and `shown` which one that is for a table's column.  `aliases` are the select items
    that a plain name may stand for where no column has that name (`aliases_first`: even where one does); those of an outer
    query too.  `clause` completes "Aggregates are not allowed in ...".
    """

    session: Session
    outer: Scope | None = None
    relations: tuple[Relation, ...] = ()
    merged: Mapping[str, Column] = field(default_factory=dict)
    star: tuple[tuple[str, Column], ...] = ()
    shown: Mapping[Column, Column] = field(default_factory=dict)
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    aliases_first: bool = False
    ahead: Set[str] = frozenset()  # aliases of the item being bound and of those behind it
    clause: str = "this place"
    allow_aggregates: bool = False
    in_aggregate: bool = False
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)  # of WINDOW, by name
    allow_windows: bool = False
    in_window: bool = False
    lambdas: Mapping[str, Column] = field(default_factory=dict)  # parameters, by lower-case names
    lambda_depth: int = 0
    # Aggregates of this query that stand in subqueries, by the columns that stand for them there
    lifted: dict[Column, Expr] = field(default_factory=dict)

    @property
    def parameters(self) -> Parameters:
        return self.session.parameters

    def changed(self, **fields: object) -> Scope:
        """Return a copy with other fields, for a quarter of what `replace` takes: a query needs dozens."""
        copy = object.__new__(Scope)
        copy.__dict__.update(self.__dict__, **fields)
        return copy

    def __deepcopy__(self, _: object) -> Scope:
        return self  # which copies of nodes name too

    def bind(self, node: exp.Expr) -> Expr:
        """Bind an expression in this scope."""
        return self.session.bind_expression(node, self)

    def bind_query(self, node: exp.Expr) -> Logical:
        """Bind a subquery that may read the columns of this scope, or of that of the macro's call that it is an argument of."""
        return self.session.bind_query(node, node.meta.get("scope") or self)

    def inside(self, clause: str, *, aggregates: bool = False, windows: bool = False) -> Scope:
        """Return this scope for another clause."""
        return self.changed(
            clause=clause, allow_aggregates=aggregates, allow_windows=windows, in_window=False
        )

    def nested(self) -> Scope:
        """Return the empty scope of a query within this one, which sees its columns and WITH entries."""
        return Scope(self.session, outer=self, ctes=self.ctes)

    def over(self, source: Source) -> Scope:
        """Return this scope with the tables of `source` in it."""
        return self.changed(**{name: v for name, v in vars(source).items() if name != "plan"})

    def inside_aggregate(self) -> Scope:
        """Return this scope for the arguments of an aggregate function, which hold no aggregate themselves."""
        inside = self.inside("the arguments of an aggregate")
        return inside.changed(in_aggregate=True, aliases_first=False)

    def inside_window(self) -> Scope:
        """Return this scope for the parts of a window call, which may hold aggregates and no other such call."""
        inside = self.inside("a window", aggregates=self.allow_aggregates)
        return inside.changed(in_window=True, aliases_first=False)

    def resolve(self, parts: Sequence[exp.Expr]) -> Expr:
        """Return the expression that a name, qualified or not, stands for.

        Looks at columns, then select aliases, then the enclosing queries.  Raises `UnknownName` and `AmbiguousName`.
        """
        names = [part.name for part in parts]
        span = _span_of_parts(parts)
        found = self.find(names, span)
        if found is None:
            raise self._unknown(names, parts, span)
        use(*parts)
        return found

    def _field(self, names: list[str], span: err.Span | None) -> Expr | None:
        """Return s.a.b where s is a column, and no table or item of the SELECT list."""
        for count in range(len(names) - 1, 0, -1):
            columns = (scope._column(names[:count], span) for scope in self.enclosing())
            found = next((column for column in columns if column is not None), None)
            if found is not None and (
                found.type.kind in (Kind.STRUCT, Kind.MAP) or found.type == JSON
            ):
                row: Expr = ColumnRef(found, span)
                return reduce(lambda s, name: field_of(s, name, span), names[count:], row)
        return None

    def find(self, names: list[str], span: err.Span | None = None) -> Expr | None:
        """Return what a name stands for, or a field of a struct; None where there is neither."""
        known = self.lambdas.get(names[0].lower())
        if known is not None and len(names) == 1:
            return ColumnRef(known, span)
        found = self._find(names, span) or self._field(names, span)
        if found is None and known is None and len(names) == 1:
            rows = (scope._row(names, span) for scope in self.enclosing())
            return next((row for row in rows if row is not None), None)
        if found is not None or known is None:
            return found
        # A field of a lambda's parameter, which columns of that name go before, as in DuckDB
        parameter: Expr = ColumnRef(known, span)
        return reduce(lambda s, name: field_of(s, name, span), names[1:], parameter)

    def stands_for_alias(self, parts: Sequence[exp.Expr]) -> bool:
        """Whether a name is that of a select item, and of no column of this query."""
        names = [part.name for part in parts]
        return (
            len(names) == 1
            and names[0].lower() in self.aliases
            and self._column(names, _span_of_parts(parts)) is None
        )

    def _find(self, names: list[str], span: err.Span | None) -> Expr | None:
        alias = self.aliases.get(names[0].lower()) if len(names) == 1 else None
        column = None if alias is not None and self.aliases_first else self._column(names, span)
        if column is not None:
            return ColumnRef(column, span)
        if alias is not None:
            return self._bind_alias(names[0], alias, span)
        return self.outer._find(names, span) if self.outer else None

    def _row(self, names: list[str], span: err.Span | None) -> Expr | None:
        """Return a row of the table that a name is, as a struct of its columns; None where it is none."""
        found = self.relations_named(names, span) if len(names) == 1 else ()
        if not found or found[0].refused or not found[0].columns:
            return None
        columns = found[0].columns
        return struct_pack([n for n, _ in columns], [ColumnRef(c, span) for _, c in columns], span)

    def _bind_alias(self, name: str, node: exp.Expr, span: err.Span | None) -> Expr:
        if name.lower() in self.ahead:
            raise err.UnknownColumn(
                f'There is no column "{name}" here, and the item of that name may only be read in items after it.',
                span,
            )
        draw = find_draw(node, self.session.catalog, exp.Rand)
        if draw is not None:
            what = draw.name or "random"
            raise err.InvalidQuery(
                f'"{name}" stands for {what}(), which each use would draw anew: name it in a subquery.',
                span_of(draw),
            )
        # Without the alias itself: `select x + 1 as x` reads a column x or is an error.
        rest = {k: v for k, v in self.aliases.items() if k != name.lower()}
        inner = self.changed(aliases=rest, aliases_first=False, lambdas={})
        return self.session.bind_expression(node, inner)

    def _column(self, names: list[str], span: err.Span | None) -> Column | None:
        name = names[-1].lower()
        if len(names) == 1 and name in self.merged:
            return self.merged[name]
        relations = self._named(names[:-1]) if len(names) > 1 else self.relations
        candidates = [(r, column) for r in relations for column in r.by_name.get(name, ())]
        if len(candidates) > 1:
            full = [".".join(filter(None, (r.name, names[-1]))) for r, _ in candidates]
            shown = dict.fromkeys(f'"{name}"' for name in full)
            if len(shown) == 1:
                raise err.AmbiguousName(
                    f'Two tables of this query are called "{candidates[0][0].name}": give each an alias of its own.',
                    span,
                )
            choices = ", ".join(shown)
            raise err.AmbiguousName(
                f'The column "{names[-1]}" is ambiguous: name one of {choices}.', span
            )
        return candidates[0][1] if candidates else None

    def relations_named(
        self, prefix: Sequence[str], span: err.Span | None = None
    ) -> tuple[Relation, ...]:
        """Return the relations of this query that a prefix (`t`, `main.t`, nothing for all) selects."""
        if not prefix:
            return self.relations
        found = self._named(prefix)
        if len(found) > 1:
            raise err.AmbiguousName(
                f'Two tables of this query are called "{prefix[-1]}": give each an alias of its own.',
                span,
            )
        return found

    def _named(self, prefix: Sequence[str]) -> tuple[Relation, ...]:
        name = prefix[-1].lower()
        found = tuple(r for r in self.relations if (r.name or "").lower() == name)
        if len(prefix) == 1:
            return found
        around = tuple(part.lower() for part in prefix[:-1])
        return tuple(r for r in found if r.place and around in (r.place, r.place[:1], r.place[1:]))

    def declared_name(self, names: Sequence[str]) -> str | None:
        """Return a column's name as its table spells it, None when it is no column of this query."""
        name = names[-1].lower()
        for relation in self.relations:
            if len(names) == 1 or (relation.name or "").lower() == names[-2].lower():
                for spelled, _ in (*relation.columns, *relation.also):
                    if spelled.lower() == name:
                        return spelled
        return None

    def _unknown(
        self, names: list[str], parts: Sequence[exp.Expr], span: err.Span | None
    ) -> err.FuselineError:
        scopes = list(self.enclosing())
        tables = [r for s in scopes for r in s.relations_named(names[:-1])]
        for relation in tables:
            if names[-1].lower() in relation.refused:
                text = refusal(*relation.refused[names[-1].lower()])
                return err.Unsupported(f"{text}: cast it where it is written.", span)
        if len(names) > 1:
            if not tables:
                known = [r.name for s in scopes for r in s.relations if r.name]
                shown = ".".join(names[:-1])
                return err.UnknownColumn(
                    f'There is no table "{shown}" in this query.{err.suggestion(names[-2], known)}',
                    span_of(parts[-2]) or span,
                )
            hint = err.suggestion(names[-1], [name for r in tables for name, _ in r.columns])
            return err.UnknownColumn(
                f'The table "{names[-2]}" has no column "{names[-1]}".{hint}', span
            )
        known = [name for s in scopes for r in s.relations for name, _ in r.columns]
        known += [name for s in scopes for name in s.aliases]
        if any(s.relations_named(names) for s in scopes):
            return err.UnknownColumn(
                f'"{names[-1]}" is a table here: name its columns, as in {names[-1]}.*.', span
            )
        return err.UnknownColumn(
            f'There is no column "{names[-1]}" here.{err.suggestion(names[-1], known)}', span
        )

    def owner(self, columns: Set[Column]) -> Scope:
        """Return the innermost query whose tables have one of the columns, for none this one."""
        for scope in self.enclosing():
            own = (*(r.readable for r in scope.relations), scope.merged.values())
            if not all(map(columns.isdisjoint, own)):
                return scope
        return self

    def enclosing(self) -> Iterator[Scope]:
        """Yield this scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def _span_of_parts(parts: Sequence[exp.Expr]) -> err.Span | None:
    if len(parts) == 1:
        return span_of(parts[0])
    spans = [span for span in map(span_of, parts) if span is not None]
    return err.Span(spans[0].start, spans[-1].end, spans[0].view) if spans else None
