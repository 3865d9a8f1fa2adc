"""SELECT: its clauses, in the order in which they are evaluated, to a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, Unsupported
from fuseline.plan import infer
from fuseline.plan.expr import Column, ColumnRef, Expr, SortKey, new_column
from fuseline.plan.logical import Distinct, Filter, Item, Logical, Project
from fuseline.plan.window.windowed import WindowRewriter, has_window
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from ..parsing.unread import use
from .bind_from import bind_from
from .bind_group import GroupKeys, GroupRewriter, bind_group, is_aggregated
from .bind_order import RowLimit, bind_limit, bind_order, order_rows, ordinal
from .bind_unnest import UnnestRewriter, has_unnest
from .bind_window import named_windows, pass_over
from .draws.volatile import ArgumentRewriter, refuse_draws_by_row, sampled
from .scope import Scope, Source
from .select_list import (
    SelectItem,
    expressions_of,
    output_places,
    select_list,
)
from .star_columns import refuse_double_names

_UNSUPPORTED = {
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "into": "SELECT INTO",
    "connect": "CONNECT BY",
    "kind": "SELECT AS",
}
_BEFORE_SELECT = ("expressions", "with_", "from_", "joins")  # what FROM, or its caller, has bound


def bind_select(node: exp.Select, scope: Scope) -> Logical:
    """Return the plan of a SELECT with its ORDER BY and LIMIT."""
    for key, what in _UNSUPPORTED.items():
        if node.args.get(key):
            raise Unsupported(f"{what} is not supported.", span_of(_first(node.args[key])))
    if not node.expressions:
        raise ParseError("SELECT needs at least one column or *.", span_of(node))
    source = bind_from(node, scope)
    if (sample := node.args.get("sample")) is not None:
        source = dataclasses.replace(source, plan=sampled(source.plan, sample, scope))
    plan = source.plan
    if _is_all(node, source):
        use(node.expressions[0])
        return plan
    scope = scope.over(source).changed(
        windows=named_windows(node.args.get("windows") or ()), lifted={}
    )
    items = select_list(node, scope)
    aliases = {i.alias.lower(): i.this for i in node.expressions if isinstance(i, exp.Alias)}
    scope = scope.changed(aliases=aliases)
    plan = _bind_where(node, plan, scope)
    parts = _bind_parts(node, items, scope)
    pass_over(scope.windows)
    limit = bind_limit(node, scope)
    names = [item.name for item in items]
    if parts.keys is not None and has_unnest(parts.keys.keys):  # rows are made, then grouped
        lists = UnnestRewriter(plan)
        keys = dataclasses.replace(parts.keys, keys=list(map(lists.rewrite, parts.keys.keys)))
        parts = dataclasses.replace(parts.rewritten(lists), keys=keys)
        plan = lists.plan()
    is_grouped = parts.keys is not None and not parts.keys.is_nothing
    if is_grouped or parts.having is not None or is_aggregated(parts.expressions, scope.lifted):
        drawn = ArgumentRewriter(plan)
        parts = parts.rewritten(drawn)
        plan = drawn.plan()
        grouping = GroupRewriter(
            plan, GroupKeys() if parts.keys is None else parts.keys, scope.lifted
        )
        grouping.name_outputs(list(zip(names, parts.outputs, strict=True)))
        parts = parts.rewritten(grouping)
        plan = grouping.plan()
    if parts.having is not None:
        if has_unnest([parts.having]):
            raise InvalidQuery("unnest() in HAVING is a key of GROUP BY.", parts.having.span)
        plan = Filter(plan, parts.having)
    if has_window(parts.expressions):
        windows = WindowRewriter(plan)
        windows.name_outputs(list(zip(names, parts.outputs, strict=True)))
        parts = parts.rewritten(windows)
        plan = windows.plan()
    if parts.qualify is not None:
        plan = Filter(plan, parts.qualify)
    if has_unnest(parts.expressions):
        lists = UnnestRewriter(plan)
        parts = parts.rewritten(lists)
        plan = lists.plan()
    plan = _finish(plan, items, parts, limit)
    refuse_draws_by_row(plan, node, scope)
    return plan


def _bind_where(node: exp.Select, plan: Logical, scope: Scope) -> Logical:
    where = node.args.get("where")
    if where is None:
        return plan
    use(where)
    place = scope.inside("WHERE")
    tests = [infer.condition(place.bind(test)) for test in expressions_of(where.this, place)]
    rows = WindowRewriter(plan)  # of random()
    test = rows.rewrite(tests[0] if len(tests) == 1 else infer.call("and", tests))
    return Filter(rows.plan(), test)


def _is_all(node: exp.Select, source: Source) -> bool:
    """Whether a SELECT is `SELECT * FROM ...` and no more, as that of most views, so that FROM gives its rows as they are."""
    item = node.expressions[0]
    return (
        type(item) is exp.Star
        and len(node.expressions) == 1
        and not any(item.args.values())
        and not any(value for key, value in node.args.items() if key not in _BEFORE_SELECT)
        and not any(relation.refused for relation in source.relations)
        and not refuse_double_names(source.relations, item)
        and bool(source.star)
        and source.star == tuple((column.name, column) for column in source.plan.columns)
    )


def _first(value: object) -> exp.Expr | None:
    if isinstance(value, list):
        value = value[0]
    return value if isinstance(value, exp.Expr) else None


@dataclass(frozen=True)
class _SelectClauses:
    """The bound clauses of one SELECT; `distinct` is () for DISTINCT, the expressions of DISTINCT ON, else None."""

    outputs: tuple[Expr, ...]
    keys: GroupKeys | None
    having: Expr | None
    order: tuple[SortKey, ...]
    distinct: tuple[Expr, ...] | None
    qualify: Expr | None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        qualify = () if self.qualify is None else (self.qualify,)
        return (*self.outputs, *self.order, *(self.distinct or ()), *qualify)

    def rewritten(
        self, rewriter: GroupRewriter | WindowRewriter | UnnestRewriter | ArgumentRewriter
    ) -> _SelectClauses:
        """Return these clauses over groups instead of rows, or over the columns of windows."""
        rewrite, distinct = rewriter.rewrite, self.distinct
        return _SelectClauses(
            tuple(map(rewrite, self.outputs)),
            self.keys,
            None if self.having is None else rewrite(self.having),
            tuple(dataclasses.replace(k, expr=rewrite(k.expr)) for k in self.order),
            distinct if distinct is None else tuple(map(rewrite, distinct)),
            None if self.qualify is None else rewrite(self.qualify),
        )


def _bind_parts(node: exp.Select, items: Sequence[SelectItem], scope: Scope) -> _SelectClauses:
    outputs = _bind_outputs(items, scope)
    group, having, order = (node.args.get(key) for key in ("group", "having", "order"))
    names = [(item.name, value) for item, value in zip(items, outputs, strict=True)]
    keys = None if group is None else bind_group(group, names, scope)
    grouped = group is not None or having is not None or is_aggregated(outputs, scope.lifted)
    after = _after_grouping(scope, keys) if grouped else scope
    predicate = None
    if having is not None:
        use(having)
        place = after.inside("HAVING", aggregates=True).changed(aliases_first=True)
        predicate = infer.condition(place.bind(having.this))
    sort_keys: tuple[SortKey, ...] = ()
    if order is not None:
        inside = after.inside("ORDER BY", aggregates=True, windows=True)
        sort_keys = bind_order(order, inside, outputs, output_places(items, outputs))
    distinct = _bind_distinct(node, names, after)
    qualify = _bind_qualify(node, outputs, scope)
    return _SelectClauses(outputs, keys, predicate, sort_keys, distinct, qualify)


def _bind_outputs(items: Sequence[SelectItem], scope: Scope) -> tuple[Expr, ...]:
    """Bind the SELECT list, each item of which may read the aliases of those before it."""
    last = {item.name.lower(): item for item in items if item.aliased}
    ahead = last.keys() & scope.aliases.keys()
    select = scope.inside("SELECT", aggregates=True, windows=True).changed(ahead=ahead)
    outputs = []
    for item in items:
        outputs.append(item.bind(select))
        if last.get(item.name.lower()) is item:
            ahead.discard(item.name.lower())
    return tuple(outputs)


def _bind_qualify(node: exp.Select, outputs: Sequence[Expr], scope: Scope) -> Expr | None:
    clause = node.args.get("qualify")
    if clause is None:
        return None
    use(clause)
    bound = infer.condition(
        scope.inside("QUALIFY", aggregates=True, windows=True).bind(clause.this)
    )
    if not has_window([*outputs, bound]):
        raise InvalidQuery(
            "QUALIFY needs a window function, in it or in the SELECT list: filter rows in WHERE.",
            bound.span or span_of(clause),
        )
    if has_unnest([bound]):
        raise InvalidQuery("unnest() makes rows after QUALIFY has chosen some.", bound.span)
    return bound


def _after_grouping(scope: Scope, keys: GroupKeys | None) -> Scope:
    """Return the scope of HAVING and ORDER BY, where an alias hides a column, unless that is a key.

    `select sum(y) as y from t group by x having y > 1` means the sum; `select x + 1 as x from t group by t.x
    having x > 1` means the column.
    """
    grouped = {key.column for key in (keys.keys if keys else ()) if isinstance(key, ColumnRef)}
    aliases = {}
    for name, node in scope.aliases.items():
        columns = {column for r in scope.relations for column in r.by_name.get(name, ())}
        if not columns & grouped:
            aliases[name] = node
    return scope.changed(aliases=aliases, aliases_first=True)


def _bind_distinct(
    node: exp.Select, names: Sequence[tuple[str, Expr]], scope: Scope
) -> tuple[Expr, ...] | None:
    clause = node.args.get("distinct")
    if clause is None:
        return None
    use(clause)
    on = clause.args.get("on")
    if on is None:
        return ()
    if isinstance(on, exp.Tuple):
        use(on)
    place = scope.inside("DISTINCT ON", aggregates=True, windows=True)
    found: list[Expr] = []
    listed = on.expressions if isinstance(on, exp.Tuple) else [on]
    for key in (part for item in listed for part in expressions_of(item, place)):
        if isinstance(key, exp.Null | exp.Boolean | exp.RawString) or (
            isinstance(key, exp.Literal) and not key.name.isdigit()
        ):
            raise InvalidQuery(
                "A constant in DISTINCT ON tells no rows apart: name a column, its number, or an expression.",
                span_of(key) or span_of(clause),
            )
        if isinstance(key, exp.Literal) and not key.is_string:
            found.append(names[ordinal(key, len(names), "DISTINCT ON")][1])
        elif isinstance(key, exp.PositionalColumn) and isinstance(key.this, exp.Literal):
            use(key)
            found.append(names[ordinal(key.this, len(names), "DISTINCT ON")][1])
        else:
            found.append(place.bind(key))
    if not found:
        raise InvalidQuery("DISTINCT ON needs at least one expression.", span_of(clause))
    return tuple(found)


def _finish(
    plan: Logical, items: Sequence[SelectItem], parts: _SelectClauses, limit: RowLimit | None
) -> Logical:
    """Compute the outputs, then DISTINCT, ORDER BY and LIMIT, which may need columns that are no output."""
    output = _Output(plan)
    for item, value in zip(items, parts.outputs, strict=True):
        output.add(item.name, value)
    visible = tuple(column for column, _ in output.items)
    keys = tuple(dataclasses.replace(k, expr=output.column(k.expr)) for k in parts.order)
    on = tuple(output.column(value) for value in parts.distinct or ())
    plan = output.plan()
    if on:
        plan = Distinct(order_rows(plan, keys, None), on)  # the first row is that of the order
    elif parts.distinct is not None:
        hidden = len(output.items) > len(visible)
        plan = Distinct(plan, tuple(map(ColumnRef, visible)) if hidden else None)
    plan = order_rows(plan, keys, limit)
    if len(output.items) == len(visible):
        return plan
    return Project(plan, tuple((column, ColumnRef(column)) for column in visible))


class _Output:
    """Collects the columns of a projection, each expression once."""

    def __init__(self, plan: Logical) -> None:
        self.input = plan
        self.free = {column.id: column.name for column in plan.columns}  # may still be passed on
        self.items: list[Item] = []
        self._known: dict[Expr, Column] = {}  # the first output of each expression

    def add(self, name: str, value: Expr) -> ColumnRef:
        """Add an output; a column of the input that keeps its name keeps its identity, once."""
        if isinstance(value, ColumnRef) and self.free.get(value.column.id) == name:
            column: Column = value.column
            del self.free[column.id]
        else:
            column = new_column(name, value.type)
        self.items.append((column, value))
        self._known.setdefault(value, column)
        return ColumnRef(column, value.span)

    def column(self, value: Expr) -> ColumnRef:
        """Return the column of an expression, added when no output computes it."""
        known = self._known.get(value)
        if known is not None:
            return ColumnRef(known, value.span)
        return self.add(value.column.name if isinstance(value, ColumnRef) else "key", value)

    def plan(self) -> Logical:
        same = len(self.items) == len(self.input.columns) and all(
            isinstance(value, ColumnRef) and value.column == column == passed
            for (column, value), passed in zip(self.items, self.input.columns, strict=True)
        )
        return self.input if same else Project(self.input, tuple(self.items))
