"""FROM: joins of tables to a plan and the names that it gives to the rest of the query."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan import infer
from fuseline.plan.composed.ordered_joins import asof_join, positional_join
from fuseline.plan.expr import Column, ColumnRef, Expr, conjunction, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Item, Join, Logical, Project, Scan, Values, free_columns
from fuseline.plan.text.quoted_name import distinct_names
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .bind_table import bind_table, named
from .scope import Scope, Source

_Pairs = list[tuple[Column, Column, Span | None]]
_SIDES: dict[str, JoinKind] = {
    "LEFT": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
}
_NOTHING = Source(Values((), ((),)), (), {}, ())


def bind_from(node: exp.Select, scope: Scope) -> Source:
    """Bind a FROM clause; one row without columns where there is none."""
    clause = node.args.get("from_")
    if clause is None:
        return _NOTHING
    use(clause)
    return bind_list(clause.this, node.args.get("joins") or [], scope)


def bind_list(first: exp.Expr, joins: Sequence[exp.Join], scope: Scope) -> Source:
    """Bind `a join b ..., c join d ...`: JOIN binds tighter than the comma, as in SQL.

    sqlglot hangs the joins of a FROM that stands before SELECT, or in parentheses, below the first table.
    """
    groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
    for join in (*(first.args.get("joins") or ()), *joins):
        use(join)
        if _is_comma(join):
            groups.append((join.this, []))
        else:
            groups[-1][1].append(join)
    source: Source | None = None
    for table, following in groups:
        around = _around(scope, source)
        item = _bind_item(table, around) if table is first else _bind_side(table, around)
        if source is None:
            source = _bind_joins(item, following, None, scope)
        elif any(_kind(join).keeps_right for join in following):
            source = _cross(source, _bind_joins(item, following, None, scope))
        else:
            # a, b LEFT JOIN c has the rows of (a, b) LEFT JOIN c, whose condition may read a as well, as in DuckDB.
            item = dataclasses.replace(item, plan=Join(source.plan, item.plan, JoinKind.INNER))
            source = beside(source, _bind_joins(item, following, source, scope))
    assert source is not None
    return source


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("kind", "side", "method", "on", "using"))


def _bind_joins(
    source: Source, joins: Sequence[exp.Join], before: Source | None, scope: Scope
) -> Source:
    """Join one table after the other to `source`; `before` has the names left of the comma, if they can be read."""
    for join in joins:
        around = _around(scope, source if before is None else beside(before, source))
        source = _bind_join(source, join, _bind_side(join.this, around), before, scope)
    return source


def _around(scope: Scope, source: Source | None) -> Scope:
    return (scope if source is None else scope.over(source)).inside("FROM")


def _bind_side(node: exp.Expr, around: Scope) -> Source:
    """Bind one side of a join: a table, or `b join c on ...` within `a join b join c on ... on ...`."""
    if node.args.get("joins"):
        return bind_list(node, (), around.nested())
    return _bind_item(node, around)


def _bind_item(node: exp.Expr, around: Scope) -> Source:
    """Bind one table, or a parenthesised join."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(inner, exp.Table | exp.Subquery) or not _is_join(inner):
        return bind_table(node, around)
    use(node)
    source = bind_list(inner, (), around.nested())
    if node.args.get("alias") is None:
        return source
    made = named(source.plan, source.star, node, None)
    names = distinct_names([name for name, _ in made.star])
    star = tuple((name, column) for name, (_, column) in zip(names, made.star, strict=True))
    return Source(made.plan, (dataclasses.replace(made.relations[0], columns=star),), {}, star)


def _is_join(node: exp.Expr) -> bool:
    if isinstance(node, exp.Subquery) and not node.args.get("joins"):  # in parentheses once more
        return isinstance(node.this, exp.Table | exp.Subquery) and _is_join(node.this)
    return bool(node.args.get("joins")) or isinstance(node, exp.Table)


def _cross(left: Source, right: Source) -> Source:
    both = beside(left, right)
    return dataclasses.replace(both, plan=Join(left.plan, right.plan, JoinKind.INNER))


def beside(left: Source, right: Source) -> Source:
    """Return the names of both sides, over a plan on the right that has the columns of both.

    A name that USING gave to a column of each is as ambiguous as one that two tables have.
    """
    both = left.merged.keys() & right.merged.keys()
    merged = {
        name: column
        for name, column in (*left.merged.items(), *right.merged.items())
        if name not in both
    }
    star, shown = left.star + right.star, {**left.shown, **right.shown}
    return Source(right.plan, left.relations + right.relations, merged, star, shown)


def _bind_join(
    left: Source, join: exp.Join, right: Source, before: Source | None, scope: Scope
) -> Source:
    method, kind = join.method.upper(), _kind(join)
    conditions = [key for key in ("on", "using") if join.args.get(key)]
    if (join.kind.upper() == "CROSS" and (conditions or join.side)) or (
        method == "NATURAL" and conditions
    ):
        raise ParseError(
            "Syntax error: CROSS and NATURAL joins take neither ON nor USING.", span_of(join)
        )
    if method == "ASOF":
        return _bind_asof(left, join, right, before, scope)
    _check_lateral(left, right, kind, join)
    both = _cross(left, right)
    if method == "POSITIONAL":
        if free_columns(right.plan) & set(left.plan.columns):
            raise Unsupported(
                "The right side of a POSITIONAL join cannot be LATERAL.", span_of(join.this)
            )
        return dataclasses.replace(both, plan=positional_join(left.plan, right.plan))
    using = _natural(left, right, join) if method == "NATURAL" else _using(join)
    if using:
        pairs = _pairs(left, right, using, scope)
        equalities = conjunction([equal(mine, theirs, span) for mine, theirs, span in pairs])
        plan = Join(left.plan, right.plan, kind, equalities)
        return _with_one_of_each(plan, left, right, kind, using, pairs)
    on = join.args.get("on")
    condition: Expr | None = None
    if on is not None:
        visible = both if before is None else beside(before, both)
        condition = infer.condition(scope.over(visible).inside("a join condition").bind(on))
    plan = Join(left.plan, right.plan, kind, condition)
    return dataclasses.replace(left if kind.is_filter else both, plan=plan)


def _bind_asof(
    left: Source, join: exp.Join, right: Source, before: Source | None, scope: Scope
) -> Source:
    """Bind `a ASOF JOIN b`: the last name of USING is compared by >=."""
    kind, place, both = _kind(join), span_of(join.this), _cross(left, right)
    on, using = join.args.get("on"), _using(join)
    if on is not None:
        visible = both if before is None else beside(before, both)
        condition = scope.over(visible).inside("a join condition").bind(on)
        plan = asof_join(left.plan, right.plan, kind, infer.condition(condition), place)
        return dataclasses.replace(left if kind.is_filter else both, plan=plan)
    if not using:
        raise ParseError("Syntax error: an ASOF join needs ON or USING.", place)
    pairs = _pairs(left, right, using, scope)
    tests = [equal(mine, theirs, span) for mine, theirs, span in pairs[:-1]]
    mine, theirs, span = pairs[-1]
    tests.append(infer.call("ge", [ColumnRef(mine, span), ColumnRef(theirs, span)], span))
    plan = asof_join(left.plan, right.plan, kind, conjunction(tests), place)
    return _with_one_of_each(plan, left, right, kind, using, pairs)


def _using(join: exp.Join) -> list[exp.Identifier]:
    """Return the names of USING; a word such as CURRENT_DATE is one there, too."""
    found: list[exp.Identifier] = []
    for name in join.args.get("using") or ():
        if isinstance(name, exp.Func):
            use(name)
            name = exp.to_identifier(name.sql_names()[0].lower(), True)  # noqa: PLW2901
        found.append(name)
    return found


def _pairs(left: Source, right: Source, using: Sequence[exp.Identifier], scope: Scope) -> _Pairs:
    return [
        (named_column(left, n, scope), named_column(right, n, scope), span_of(n)) for n in using
    ]


def _kind(join: exp.Join) -> JoinKind:
    kind, side = join.kind.upper(), join.side.upper()
    if kind in ("SEMI", "ANTI"):
        if side in ("RIGHT", "FULL"):
            raise Unsupported(
                f"{side} {kind} JOIN is not supported: exchange the two tables.", span_of(join.this)
            )
        return JoinKind.SEMI if kind == "SEMI" else JoinKind.ANTI
    return _SIDES.get(side, JoinKind.INNER)


def _check_lateral(left: Source, right: Source, kind: JoinKind, join: exp.Join) -> None:
    if kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI) or isinstance(
        right.plan, Scan
    ):
        return
    if free_columns(right.plan) & set(left.plan.columns):
        raise InvalidQuery(
            f"A subquery that reads columns of the tables before it cannot be the right side of a {kind.upper()} JOIN: "
            "use JOIN or LEFT JOIN.",
            span_of(join.this),
        )


def _natural(left: Source, right: Source, join: exp.Join) -> list[exp.Identifier]:
    """Return the names that both sides have, in the order of the left one."""
    theirs = {name.lower() for name, _ in right.star}
    common = list(dict.fromkeys(name for name, _ in left.star if name.lower() in theirs))
    if not common:
        raise InvalidQuery(
            "The two sides of this NATURAL JOIN have no column name in common: use JOIN ... ON.",
            span_of(join.this),
        )
    place = span_of(join.this)
    meta = {} if place is None else {"first": place.start, "last": place.end, "view": place.view}
    identifiers = [exp.to_identifier(name, quoted=True) for name in common]
    for identifier in identifiers:
        identifier.meta.update(meta)
    return identifiers


def _with_one_of_each(
    plan: Logical,
    left: Source,
    right: Source,
    kind: JoinKind,
    using: Sequence[exp.Identifier],
    pairs: _Pairs,
) -> Source:
    """Show one of the columns that USING compares: of the side whose rows are all kept."""
    names = [name.name.lower() for name in using]
    if kind.is_filter:
        own = {name: mine for name, (mine, _, _) in zip(names, pairs, strict=True)}
        return dataclasses.replace(left, plan=plan, merged={**left.merged, **own})
    shown = {mine: theirs if kind is JoinKind.RIGHT else mine for mine, theirs, _ in pairs}
    if kind is JoinKind.FULL:
        coalesced = [
            infer.call("coalesce", [ColumnRef(mine), ColumnRef(theirs)], span)
            for mine, theirs, span in pairs
        ]
        made: list[Item] = [
            (new_column(mine.name, value.type), value)
            for (mine, _, _), value in zip(pairs, coalesced, strict=True)
        ]
        shown = {mine: c for (mine, _, _), (c, _) in zip(pairs, made, strict=True)}
        plan = Project(plan, (*((c, ColumnRef(c)) for c in plan.columns), *made))
    dropped = {theirs for _, theirs, _ in pairs}
    spelled = {c: name for name, c in right.star}  # as the table has it whose column is shown
    star = (
        *((spelled.get(shown.get(c, c), name), shown.get(c, c)) for name, c in left.star),
        *((name, c) for name, c in right.star if c not in dropped),
    )
    both = _cross(left, right)
    merged = {name: shown[mine] for name, (mine, _, _) in zip(names, pairs, strict=True)}
    each = {own: shown.get(column, column) for own, column in both.shown.items()}
    each |= {own: shown[mine] for mine, theirs, _ in pairs for own in (mine, theirs)}
    return Source(plan, both.relations, {**both.merged, **merged}, star, each)


def named_column(source: Source, name: exp.Identifier, scope: Scope) -> Column:
    """Return the one column that a name in USING means on a side."""
    only = Scope(scope.session).over(source)
    found = only.resolve((name,))
    assert isinstance(found, ColumnRef)
    return found.column


def equal(left: Column, right: Column, span: Span | None) -> Expr:
    return infer.call("eq", [ColumnRef(left, span), ColumnRef(right, span)], span)
