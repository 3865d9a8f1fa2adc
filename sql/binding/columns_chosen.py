"""COLUMNS(...) and `* LIKE '...'`: which columns they choose, and the expressions that are made of one that holds them.

`columns('x.*') + 1` is an item of SELECT for each column that it chooses; in a condition all of them are combined by AND.  Patterns
and lambdas are run as a query over the names, so that they match as in any other query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from sqlglot import exp

from fuseline.errors import InvalidQuery, TypeMismatch, UnknownColumn, Unsupported, nearest
from fuseline.plan import infer
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.functions.lists import element_type
from fuseline.plan.logical import Project, Values
from fuseline.plan.types import BIGINT, INTEGER, VARCHAR, Kind
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from ..parsing.unread import tree_of, use, use_all
from .constants.known_values import rows_now
from .scope import Relation, Scope, Session, refusal

_PATTERNS = (exp.Like, exp.ILike, exp.Glob, exp.SimilarTo)
_NAME = "column_name"
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChosenColumn:
    """A column that COLUMNS stands for, or an expression by which REPLACE has exchanged it; `spelled` is its name in its table."""

    name: str
    spelled: str
    column: Column | None
    node: exp.Expr | None = None

    def operand(self) -> exp.Expr:
        """Return a node for the column, which is bound without a look at its name."""
        if self.column is None:
            assert self.node is not None
            return copied(self.node)
        named = exp.Column(this=exp.to_identifier(self.name, quoted=True))
        named.meta["column"] = self.column
        return named


def copied(node: exp.Expr) -> exp.Expr:
    """Return a copy of a part of a tree, at its place, of which nothing is used."""
    copy = node.copy()
    for part in copy.walk():
        part.meta.pop("used", None)
    return copy


def may_choose(session: Session) -> bool:
    """Whether a statement may hold COLUMNS; texts of macros are in its trees alone."""
    return len(session.trees) > 1 or _has_the_word(session.text)


@lru_cache(maxsize=64)
def _has_the_word(text: str) -> bool:
    """Asked for each item of a text: a union of 10,000 branches took 8 s more when each looked through all of it."""
    return "columns" in text.lower()


def columns_in(node: exp.Expr, session: Session) -> exp.Columns | None:
    """Return the COLUMNS of an expression; raises `InvalidQuery` where several of one expression differ."""
    if not may_choose(session):
        return None
    found = list(_columns_of(node))
    for other in found[1:]:
        if other != found[0]:
            raise InvalidQuery(
                "The COLUMNS() of one expression have to be the same.", span_of(other)
            )
    return found[0] if found else None


def _columns_of(node: exp.Expr) -> Iterator[exp.Columns]:
    """Yield the COLUMNS of an expression that are none of a query or a FILTER in it."""
    for part in node.walk(prune=lambda n: isinstance(n, exp.Query | exp.Where | exp.Columns)):
        if isinstance(part, exp.Columns):
            yield part


def pattern_of_star(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the star of `* [NOT] LIKE pattern`, and the test; ILIKE without NOT is a part of the star."""
    test = node.this if isinstance(node, exp.Not) else node
    if isinstance(test, _PATTERNS) and is_star(test.this):
        return test.this, test
    return None


def is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def matching_star(
    node: exp.Expr, columns: Sequence[ChosenColumn], scope: Scope
) -> list[ChosenColumn]:
    """Return the columns of a star whose names a pattern takes; `node` is the expression with the star in it."""
    test = node.this if isinstance(node, exp.Not) else node
    star = test.this.this if isinstance(test.this, exp.Column) else test.this
    if star.args.get("replace") or star.args.get("rename"):
        raise InvalidQuery(
            "* with REPLACE or RENAME takes no pattern: choose in a subquery.", span_of(node)
        )
    if not isinstance(test.expression, exp.Literal | exp.RawString):
        raise InvalidQuery("The pattern behind * has to be a constant.", span_of(test.expression))
    condition = copied(node)
    inner = condition.this if isinstance(condition, exp.Not) else condition
    inner.this.replace(exp.column(_NAME))
    scope.session.trees.append(tree_of(condition))
    use_all(test.expression)
    use(node, test)
    return _accepted(condition, _NAME, columns, scope, node)


def chosen(node: exp.Columns, visible: Sequence[ChosenColumn], scope: Scope) -> list[ChosenColumn]:
    """Return what a regular expression, a list of names or a lambda chooses of the columns that a query sees."""
    use(node)
    what = node.this
    if isinstance(what, exp.Lambda):
        return _by_lambda(what, visible, scope)
    value = Scope(scope.session).inside("COLUMNS()").bind(what)
    if value.type.kind is Kind.VARCHAR:
        _refuse_types(scope, node)
        return _where(
            lambda name: infer.call("regexp_matches", [name, value], span_of(what)),
            visible,
            scope,
            node,
        )
    if element_type(value.type) is not None:
        made = new_column(_NAME, value.type)
        (names,) = rows_now(Project(Values((), ((),)), ((made, value),)), scope).column(0)
        return _by_names(names.as_py(), visible, node)
    raise TypeMismatch(
        "COLUMNS() takes *, a regular expression, a list of names or a lambda.", span_of(node)
    )


def _refuse_types(scope: Scope, node: exp.Expr) -> None:
    """Raise `Unsupported` where there are columns that no query can read, which a pattern might mean."""
    for relation in scope.relations:
        for name, data_type in relation.refused.values():
            raise Unsupported(
                f"{refusal(name, data_type)}: name the others, as in COLUMNS(* EXCLUDE ({name})) or a list.",
                span_of(node),
            )


def _by_names(names: object, visible: Sequence[ChosenColumn], node: exp.Expr) -> list[ChosenColumn]:
    if not isinstance(names, list) or not names:
        raise InvalidQuery("The list in COLUMNS() has no names.", span_of(node))
    wanted: set[str] = set()
    known = {each.name.lower() for each in visible}
    for name in names:
        if not isinstance(name, str):
            raise TypeMismatch("COLUMNS() takes a list of names.", span_of(node))
        if name.lower() not in known:
            hint = nearest(name, [each.name for each in visible])
            raise UnknownColumn(f'There is no column "{name}" here.{hint}', span_of(node))
        wanted.add(name.lower())
    return [each for each in visible if each.name.lower() in wanted]


def _by_lambda(
    node: exp.Lambda, visible: Sequence[ChosenColumn], scope: Scope
) -> list[ChosenColumn]:
    if len(node.expressions) != 1:
        raise InvalidQuery("The lambda of COLUMNS() takes one name.", span_of(node))
    parameter = node.expressions[0]
    use_all(node)
    condition = copied(node.this)
    scope.session.trees.append(tree_of(condition))
    return _accepted(condition, parameter.name, visible, scope, node.parent or node)


def _accepted(
    condition: exp.Expr,
    name: str,
    columns: Sequence[ChosenColumn],
    scope: Scope,
    node: exp.Expr,
) -> list[ChosenColumn]:
    """Return the columns for whose names a condition over `name` holds."""

    def bound(value: ColumnRef) -> Expr:
        relation = Relation(None, ((name, value.column),))
        inside = Scope(scope.session, relations=(relation,)).inside("COLUMNS()")
        return infer.condition(inside.bind(condition))

    return _where(bound, columns, scope, node)


def _where(
    test: Callable[[ColumnRef], Expr],
    columns: Sequence[ChosenColumn],
    scope: Scope,
    node: exp.Expr,
) -> list[ChosenColumn]:
    taken = _values([each.spelled for each in columns], lambda name: [test(name)], scope)
    found = [each for each, (is_taken,) in zip(columns, taken, strict=True) if is_taken]
    if not found:
        hint = ", ".join(each.name for each in columns[:10])
        raise InvalidQuery(f"This chooses no column: there are {hint}.", span_of(node))
    return found


def _values(
    names: Sequence[str], make: Callable[[ColumnRef], Sequence[Expr]], scope: Scope
) -> list[tuple[object, ...]]:
    """Return the values of expressions over each of some names."""
    place, name = new_column("place", BIGINT), new_column(_NAME, VARCHAR)
    rows = tuple((Literal(i, BIGINT), Literal(text, VARCHAR)) for i, text in enumerate(names))
    values = make(ColumnRef(name))
    items = [(new_column(f"value{i}", value.type), value) for i, value in enumerate(values)]
    plan = Project(Values((place, name), rows), ((place, ColumnRef(place)), *items))
    table = scope.session.catalog.rows(plan)
    listed = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return [tuple(row[1:]) for row in listed]


def aliased_names(
    alias: exp.Expr, node: exp.Columns | None, columns: Sequence[ChosenColumn], scope: Scope
) -> list[str]:
    r"""Return the names of items by one alias, in which `\0` is a column's name and `\1` a group of the regular expression."""
    text = alias.name
    if "\\" not in text:
        return [text] * len(columns)
    codes = [match.group(1) for match in _ESCAPED.finditer(text)]
    if any(code != "\\" and not code.isdigit() for code in codes):
        raise InvalidQuery(
            f'The alias "{text}" has a backslash that is neither doubled nor before a number.',
            span_of(alias),
        )
    groups = sorted({int(code) for code in codes if code.isdigit()} - {0})
    found: list[tuple[object, ...]] = [()] * len(columns)
    if groups:
        pattern = None if node is None else Scope(scope.session).bind(copied(node.this))
        if pattern is None or pattern.type.kind is not Kind.VARCHAR:
            raise InvalidQuery(
                "An alias with groups belongs to COLUMNS() of a regular expression.", span_of(alias)
            )
        found = _values(
            [each.spelled for each in columns],
            lambda name: [
                infer.call("regexp_extract", [name, pattern, Literal(group, INTEGER)])
                for group in groups
            ],
            scope,
        )
    names = []
    for each, texts in zip(columns, found, strict=True):
        parts = {str(group): str(text) for group, text in zip(groups, texts, strict=True)}
        parts |= {"0": each.name, "\\": "\\"}
        name = _ESCAPED.sub(lambda match, parts=parts: parts[match.group(1)], text)  # type: ignore[misc]
        names.append(name or each.name)
    return names


def with_column(node: exp.Expr, column: ChosenColumn, session: Session) -> exp.Expr:
    """Return an expression with a column in the places of its COLUMNS; its tree has to be used as any other."""
    if column.column is None:
        raise Unsupported(
            "COLUMNS(* REPLACE ...) and COLUMNS(s.*) are not supported inside of an expression: choose in a subquery.",
            span_of(node),
        )
    holder = exp.Paren(this=copied(node))
    for part in list(_columns_of(holder)):
        part.replace(column.operand())
    return _taken(holder, session)


def unpacked(node: exp.Expr, columns: Sequence[ChosenColumn], session: Session) -> exp.Expr:
    """Return an expression with all columns among the arguments where `*COLUMNS(...)` stands."""
    holder = exp.Paren(this=copied(node))
    for part in list(_columns_of(holder)):
        parent, key = part.parent, part.arg_key
        operands = [column.operand() for column in columns]
        if parent is None or "expressions" not in parent.arg_types or isinstance(parent, exp.In):
            raise InvalidQuery(
                "*COLUMNS() stands among the arguments of a function or in a list.", span_of(part)
            )
        if key == "expressions":
            items = list(parent.expressions)
            place = next(i for i, item in enumerate(items) if item is part)
            parent.set("expressions", [*items[:place], *operands, *items[place + 1 :]])
        else:
            others = list(parent.expressions)
            parent.set(str(key), operands[0])
            parent.set("expressions", [*operands[1:], *others])
    return _taken(holder, session)


def _taken(holder: exp.Paren, session: Session) -> exp.Expr:
    root: exp.Expr = holder.this
    root.pop()
    session.trees.append(tree_of(root))
    return root


def bound_column(node: exp.Expr) -> Column | None:
    """Return the column that a node stands for whatever its name means."""
    column = node.meta.get("column")
    return column if isinstance(column, Column) else None
