"""The SELECT list: stars written out, and the name of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline.errors import InvalidQuery
from fuseline.plan.expr import Column, ColumnRef, Expr
from fuseline.sql.names.reader import quoted
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from ..names import result_name
from ..names.queries import with_definitions
from ..names.reader import words
from ..parsing.pieces import written
from ..parsing.unread import use, use_all
from .bind_unnest import expanded
from .columns_chosen import (
    ChosenColumn,
    aliased_names,
    chosen,
    columns_in,
    copied,
    is_star,
    matching_star,
    pattern_of_star,
    unpacked,
    with_column,
)
from .scope import Scope
from .star_columns import refuse_double_names, star_columns

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
        alias = item.args["alias"] if isinstance(item, exp.Alias) else None
        if alias is not None:
            use(item, alias)
        items += _written_out(item.this if isinstance(item, exp.Alias) else item, alias, scope)
    if node.expressions and not items:
        raise InvalidQuery("EXCLUDE leaves no column of *.", span_of(node.expressions[0]))
    return items


def _written_out(item: exp.Expr, alias: exp.Expr | None, scope: Scope) -> Sequence[SelectItem]:
    """Return the columns that an item stands for; with an alias all of them have that name."""
    starred = _starred(item, scope)
    if starred is not None:
        columns, made, pattern = starred
        if alias is None:
            return made
        names = aliased_names(alias, pattern, columns, scope)
        return [replace(i, name=n, aliased=True) for i, n in zip(made, names, strict=True)]
    fields = expanded(item, scope.inside("SELECT", aggregates=True, windows=True))
    if fields:
        return [SelectItem(name, item, value=value) for name, value in fields]
    packed = columns_in(item, scope.session)
    one = item
    if packed is not None:
        columns = columns_of(packed, scope)
        one = unpacked(item, columns, scope.session)
        use_all(item)
        if alias is None:
            return [SelectItem(_unpacked_name(item, columns, scope), one)]
    if alias is None:
        return [_unnamed(item, scope)]
    return [SelectItem(alias.name, one, aliased=True)]


def _starred(
    item: exp.Expr, scope: Scope
) -> tuple[Sequence[ChosenColumn], list[SelectItem], exp.Columns | None] | None:
    """Return the columns of a star or of COLUMNS(), the items made of them, and the COLUMNS(); None for another item."""
    if is_star(item):
        columns = star_columns(item, scope)
        return columns, [_item(column, item) for column in columns], None
    if (pattern := pattern_of_star(item)) is not None:
        columns = matching_star(item, star_columns(pattern[0], scope), scope)
        groups = isinstance(item, exp.SimilarTo)  # of which names may be made
        named = exp.Columns(this=copied(item.expression)) if groups else None
        return columns, [_item(column, item) for column in columns], named
    found = columns_in(item, scope.session)
    if found is None or found.args.get("unpack"):
        return None
    columns = columns_of(found, scope)
    if item is found:
        return columns, [_item(column, item) for column in columns], found
    use_all(item)
    made = [SelectItem(column.name, with_column(item, column, scope.session)) for column in columns]
    return columns, made, found


def _item(column: ChosenColumn, node: exp.Expr) -> SelectItem:
    return SelectItem(column.name, column.node or node, column.column)


def columns_of(node: exp.Columns, scope: Scope) -> Sequence[ChosenColumn]:
    """Return the columns that COLUMNS() stands for."""
    if is_star(node.this):
        use(node)
        return star_columns(node.this, scope)
    refuse_double_names(scope.relations, node)
    return chosen(_with_names(node, scope), _chosen_all(scope.star), scope)


def _with_names(node: exp.Columns, scope: Scope) -> exp.Columns:
    """Return COLUMNS([x for x in * if ...]) with the list of names for the star, of which elements are chosen."""
    found = node.copy()
    stars = [star for star in found.find_all(exp.Star, exp.Column) if is_star(star)]
    for star in stars:
        names = [exp.Literal.string(column.name) for column in star_columns(star, scope)]
        star.replace(exp.Array(expressions=names))
    if stars:
        use_all(node)
    return found if stars else node


def _chosen_all(columns: Sequence[tuple[str, Column]]) -> list[ChosenColumn]:
    return [ChosenColumn(name, name, column) for name, column in columns]


def expressions_of(node: exp.Expr, scope: Scope) -> Sequence[exp.Expr]:
    """Return what an expression outside of the SELECT list stands for: one for each column of its COLUMNS(), or itself."""
    found = columns_in(node, scope.session)
    if found is None:
        return [node]
    columns = columns_of(found, scope)
    use_all(node)
    if found.args.get("unpack"):
        return [unpacked(node, columns, scope.session)]
    return [with_column(node, column, scope.session) for column in columns]


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
    if isinstance(inner, exp.PositionalColumn) and inner.this.name.isdigit():
        named = dict(enumerate((name for name, _ in scope.star), 1))
        return SelectItem(named.get(int(inner.this.name), ""), node)
    if text is None:
        return SelectItem(node.sql("duckdb"), node)
    is_operand, windows = _is_operand(node), _window_texts(text.text, scope)

    def name_of(written: str) -> str:
        if len(written) > LONG_NAME and is_operand:
            return "subquery"  # nested ones would read the innermost text once a level
        full = with_definitions(written, windows) if windows else written
        return result_name(full, text.first_parameter)

    return SelectItem(scope.session.name_of(text, name_of), node)


def _window_texts(text: str, scope: Scope) -> dict[str, str]:
    """Return how the windows are written that an item may name; a plan serves no text with others."""
    found: dict[str, str] = {}
    for name, node in scope.windows.items() if "over" in text.lower() else ():
        definition = written(node)
        assert definition is not None, "the parser notes it"
        found[name] = scope.session.name_of(definition, str)
    return found


def _unpacked_name(item: exp.Expr, columns: Sequence[ChosenColumn], scope: Scope) -> str:
    """Return the name of an item with *COLUMNS() in it, which shows columns behind their tables."""
    text = written(item)
    assert text is not None
    listed = ", ".join(_full_name(column, scope) for column in columns)

    def name_of(written: str) -> str:
        return result_name(without_columns(written, listed), text.first_parameter)

    return scope.session.name_of(text, name_of)


def _full_name(column: ChosenColumn, scope: Scope) -> str:
    for relation in scope.relations:
        if any(known is column.column for _, known in relation.columns):
            table = [relation.name] if relation.name else ["unnamed_subquery"]
            parts = [*relation.place, *table] if relation.place else table
            return ".".join(quoted(part) for part in [*parts, column.spelled])
    return quoted(column.name)


def _is_operand(item: exp.Expr) -> bool:
    """Whether the query of an item is an operand, so that nobody sees the item's name."""
    query = item.parent.parent if item.parent is not None else None
    return isinstance(query, exp.Subquery) and isinstance(
        query.parent, exp.Condition | exp.Select | exp.Alias
    )


def without_columns(text: str, listed: str) -> str:
    """Return `text` with `listed` for each `*COLUMNS(...)` in it."""
    tokens = words(text)
    parts: list[str] = []
    end = i = 0
    while i < len(tokens):
        if [token.lower for token in tokens[i : i + 3]] == ["*", "columns", "("]:
            parts += text[end : tokens[i].start], listed
            depth, i = 1, i + 3
            while depth and i < len(tokens):
                depth += {"(": 1, ")": -1}.get(tokens[i].lower, 0)
                i += 1
            end = tokens[i - 1].end
        else:
            i += 1
    return "".join([*parts, text[end:]])
