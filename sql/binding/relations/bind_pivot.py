"""PIVOT as aggregates of the rows with one value each: `sum(x) FILTER (c = 1) AS "1", sum(x) FILTER (c = 2) AS "2"`.

Both spellings are read into a `Pivoting`, of which a SELECT is made that is bound as if it had been written.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.functions import aggregate_name
from fuseline.plan.logical import Logical, Project
from fuseline.plan.text.quoted_name import distinct_names
from fuseline.plan.types import VARCHAR, Kind
from fuseline.sql.parsing.pieces import span_of

from ....records import dataclass
from ...names import result_name
from ...parsing.unread import use, use_all
from ..columns_chosen import copied
from ..constants.known_values import known_value, rows_now
from ..scope import Scope

MOST_COLUMNS = (
    2_000  # that a PIVOT makes; DuckDB answers 100,000, a plan of as many aggregates takes minutes
)


@dataclass(frozen=True)
class PivotedValue:
    """A value that gets a column: its name there, and for each expression of its axis the constant that it equals.

    With `is_text` that is the text of the expression: texts of intervals and nested values differ where these are equal.
    """

    name: str
    values: tuple[exp.Expr, ...]
    is_text: bool = False


@dataclass(frozen=True)
class Axis:
    """Expressions whose values become columns together; without `cells` those that there are."""

    expressions: tuple[exp.Expr, ...]
    cells: tuple[PivotedValue, ...] | None


@dataclass(frozen=True)
class Pivoting:
    """What a PIVOT asks for; `groups` are None for all columns that nothing in it names."""

    table: exp.Expr
    axes: tuple[Axis, ...]
    aggregates: tuple[exp.Expr, ...]
    groups: tuple[exp.Expr, ...] | None


def bind_pivot(pivot: exp.Pivot, table: exp.Expr, scope: Scope) -> Logical:
    """Bind `PIVOT table ON ...`, or `table PIVOT (... FOR ...)`."""
    use_pivot(pivot)
    asked = _read(pivot, table, scope)
    inner = exp.Select(expressions=[exp.Star()], from_=_from(asked.table))
    names = [column.name for column in scope.bind_query(inner).columns]
    groups = asked.groups
    if groups is None and not asked.axes:
        groups = ()
    if groups is None:
        parts = (*(e for axis in asked.axes for e in axis.expressions), *asked.aggregates)
        named = {c.name.lower() for part in parts for c in part.find_all(exp.Column)}
        groups = tuple(_column(name) for name in names if name.lower() not in named)
    cells = [axis.cells or _found_cells(axis, asked.table, scope) for axis in asked.axes]
    count = len(asked.aggregates)
    for own in cells:
        count *= len(own)
    if count > MOST_COLUMNS:
        raise InvalidQuery(
            f"This PIVOT makes {count} columns, and the most are {MOST_COLUMNS}: name the values that you need with IN.",
            span_of(pivot),
        )
    made = list(_cells(asked, cells)) if asked.axes else [_shown_as(a) for a in asked.aggregates]
    keys = [copied(group) for group in groups]
    select = exp.Select(expressions=[*keys, *made], from_=_from(asked.table))
    if groups:
        select.set("group", exp.Group(expressions=[copied(group) for group in groups]))
    plan = scope.bind_query(select)
    written = [column.name for column in plan.columns]
    unique = distinct_names(written)
    if unique == written:
        return plan
    renamed = zip(unique, plan.columns, strict=True)
    return Project(plan, tuple((new_column(n, c.type), ColumnRef(c)) for n, c in renamed))


_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    # `columns` are names that sqlglot makes of the others
    exp.Pivot: ("this", "alias", "columns", "expressions", "fields", "using", "group", "into"),
    exp.In: ("this", "expressions"),
}


def use_pivot(node: exp.Expr) -> None:
    """Note that what a PIVOT or UNPIVOT may have is read, of which copies are bound; what else sqlglot put there is refused."""
    use(node)
    for key in _PARTS[type(node)]:
        value = node.args.get(key)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.In):
                use_pivot(part)
            elif isinstance(part, exp.Expr):
                use_all(part)


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _from(table: exp.Expr) -> exp.From:
    return exp.From(this=copied(table))


def _read(pivot: exp.Pivot, table: exp.Expr, scope: Scope) -> Pivoting:
    fields: Sequence[exp.Expr] = pivot.args.get("fields") or ()
    axes = fields or pivot.expressions
    aggregates = pivot.expressions if fields else pivot.args.get("using") or []
    group = pivot.args.get("group")
    if not (axes or aggregates or group):
        raise InvalidQuery("PIVOT needs ON, USING or GROUP BY.", span_of(pivot))
    groups = None if group is None else tuple(_group(item) for item in group.expressions)
    if axes and not aggregates:
        aggregates = [exp.Count(this=exp.Star())]
    read = tuple(_axis(axis, scope) for axis in axes)
    return Pivoting(table, read, tuple(aggregates), groups)


def _group(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Column):
        raise InvalidQuery("GROUP BY of a PIVOT takes names of columns.", span_of(node))
    return node


def _axis(node: exp.Expr, scope: Scope) -> Axis:
    listed = node.expressions if isinstance(node, exp.In) else None
    what = node.this if isinstance(node, exp.In) else node
    if isinstance(node, exp.In) and not listed:
        listed = _values_in(node, scope)
    is_row = isinstance(what, exp.Tuple) and listed is not None
    if is_row and node.arg_key != "fields":
        message = (
            "PIVOT ... ON takes one value for a column: use FROM t PIVOT (... FOR (a, b) IN ...)."
        )
        raise InvalidQuery(message, span_of(what))
    expressions = tuple(what.expressions) if is_row else (what,)
    if not any(e.find(exp.Column) for e in expressions):
        raise InvalidQuery("PIVOT needs a column to take values from.", span_of(what))
    if listed is None:
        return Axis(expressions, None)
    cells = tuple(_cell(value, len(expressions), scope) for value in listed)
    names = [cell.name for cell in cells]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidQuery(f'PIVOT has the value "{name}" twice.', span_of(node))
    return Axis(expressions, cells)


def _values_in(node: exp.In, scope: Scope) -> list[exp.Expr]:
    """Return the values of a query behind IN, each once and no NULL, or those of an ENUM."""
    query, field = node.args.get("query"), node.args.get("field")
    for part in filter(None, (query, field)):
        use_all(part)  # of which a copy is bound
    if query is None:
        kind = None if field is None else scope.session.catalog.user_types.get(field.name.lower())
        if kind is None or not kind.type.is_enum:
            raise Unsupported(
                "IN of a PIVOT takes a list of values, a query or an ENUM.", span_of(node)
            )
        return [exp.Literal.string(value) for value in kind.type.names]
    plan = scope.bind_query(copied(query))
    if len(plan.columns) != 1:
        raise InvalidQuery("The query in IN of a PIVOT has one column.", span_of(node))
    column = plan.columns[0]
    shown = infer.cast(ColumnRef(column), VARCHAR)
    rows = rows_now(Project(plan, ((new_column("shown", VARCHAR), shown),)), scope)
    to = exp.DataType.build(str(column.type), dialect="duckdb")
    texts = dict.fromkeys(text for text in rows.column(0).to_pylist() if text is not None)
    return [exp.Cast(this=exp.Literal.string(text), to=to.copy()) for text in texts]


def _cell(node: exp.Expr, size: int, scope: Scope) -> PivotedValue:
    value = node.this if isinstance(node, exp.PivotAlias | exp.Alias) else node
    alias = node.args["alias"].name if value is not node else None
    parts = list(value.expressions) if isinstance(value, exp.Tuple) else [value]
    if len(parts) != size:
        raise InvalidQuery(f"This value of a PIVOT should be {size}.", span_of(value))
    values = tuple(_constant(part) for part in parts)
    return PivotedValue(alias or "_".join(_shown(part, scope) for part in values), values)


def _name(text: str) -> str:
    """The name of a value's column: of the empty text two quotes."""
    return text or "''"


def _constant(node: exp.Expr) -> exp.Expr:
    """Return a value of IN: a name alone is text."""
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        text = exp.Literal.string(node.name)
        text.meta.update(node.meta)
        return text
    return node


def _shown(value: exp.Expr, scope: Scope) -> str:
    found = known_value(scope.inside("PIVOT").bind(_as_text(value)), "A value of PIVOT", scope)
    text = str(found).lower() if isinstance(found, bool) else str(found)
    return "NULL" if found is None else _name(text)


def _as_text(value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=copied(value), to=exp.DataType.build("text", dialect="duckdb"))


def _found_cells(axis: Axis, table: exp.Expr, scope: Scope) -> tuple[PivotedValue, ...]:
    """Read the values of an axis: those that are not NULL, in the order of their texts."""
    value = axis.expressions[0]
    bound = scope.bind_query(exp.Select(expressions=[copied(value)], from_=_from(table)))
    data_type = bound.columns[0].type
    by_text = data_type.is_nested or data_type.kind is Kind.INTERVAL
    known = exp.Not(this=exp.Is(this=copied(value), expression=exp.Null()))
    query = exp.Select(
        expressions=[exp.alias_(_as_text(value), "shown")],
        from_=_from(table),
        where=exp.Where(this=known),
        group=exp.Group(expressions=[_as_text(value) if by_text else copied(value)]),
        order=exp.Order(expressions=[exp.Ordered(this=_as_text(value), desc=False)]),
        limit=exp.Limit(expression=exp.Literal.number(MOST_COLUMNS + 1)),
    )
    rows = rows_now(scope.bind_query(query), scope).column(0).to_pylist()
    texts = {text: exp.Literal.string(text) for text in rows}
    if by_text:
        return tuple(PivotedValue(_name(text), (value,), True) for text, value in texts.items())
    to = exp.DataType.build(str(data_type), dialect="duckdb")
    return tuple(
        PivotedValue(_name(text), (exp.Cast(this=value, to=to.copy()),))
        for text, value in texts.items()
    )


def _cells(asked: Pivoting, cells: Sequence[Sequence[PivotedValue]]) -> Iterator[exp.Expr]:
    """Yield the aggregate of each combination of values, under its name."""
    several = len(asked.aggregates) > 1
    for combination in itertools.product(*cells):
        tests: list[exp.Expr] = [
            exp.NullSafeEQ(
                this=_as_text(expression) if cell.is_text else copied(expression),
                expression=copied(value),
            )
            for axis, cell in zip(asked.axes, combination, strict=True)
            for expression, value in zip(axis.expressions, cell.values, strict=True)
        ]
        name = "_".join(cell.name for cell in combination)
        for aggregate in asked.aggregates:
            inner = aggregate.this if isinstance(aggregate, exp.Alias) else aggregate
            suffix = aggregate.alias if isinstance(aggregate, exp.Alias) else ""
            if several and not suffix:
                suffix = result_name(inner.sql(dialect="duckdb"))
            shown = f"{name}_{suffix}" if suffix else name
            own = [copied(test) for test in tests] if several else tests
            name_there = exp.to_identifier(shown, quoted=True)
            yield exp.Alias(this=_filtered(inner, own), alias=name_there)


def _shown_as(aggregate: exp.Expr) -> exp.Expr:
    """Return an aggregate of a PIVOT without ON under its name."""
    if isinstance(aggregate, exp.Alias):
        return copied(aggregate)
    name = exp.to_identifier(result_name(aggregate.sql(dialect="duckdb")), quoted=True)
    return exp.Alias(this=copied(aggregate), alias=name)


def _filtered(node: exp.Expr, tests: list[exp.Expr]) -> exp.Expr:
    """Return an expression whose aggregate is that of the rows with these values."""
    holder = exp.Paren(this=copied(node))
    found = [part for part in holder.find_all(exp.AggFunc, exp.Anonymous) if _is_aggregate(part)]
    if len(found) != 1:
        raise InvalidQuery(
            f"An expression of PIVOT has one aggregate, and here are {len(found)}.", span_of(node)
        )
    condition = functools.reduce(lambda a, b: exp.And(this=a, expression=b), tests)
    call: exp.Expr = found[0]
    while isinstance(call.parent, exp.WithinGroup | exp.Order):
        call = call.parent
    if isinstance(call.parent, exp.Filter):
        where = call.parent.expression
        where.set("this", exp.And(this=where.this, expression=condition))
    else:
        whole = exp.Filter(expression=exp.Where(this=condition))
        call.replace(whole)
        whole.set("this", call)
    return holder.this


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc) or aggregate_name(node.name) is not None
