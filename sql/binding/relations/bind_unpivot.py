"""UNPIVOT: a row for each of several columns of a row, with the column's name beside its value; a UNION ALL of the columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, TypeMismatch
from fuseline.plan.composed.unpivoted import unpivoted
from fuseline.plan.expr import Expr
from fuseline.plan.logical import Logical
from fuseline.plan.text.quoted_name import distinct_names
from fuseline.plan.types import NULL, VARCHAR
from fuseline.sql.parsing.pieces import span_of

from ....records import dataclass
from ...parsing.unread import use_all
from ..columns_chosen import columns_in, copied
from ..scope import Relation, Scope, Source
from ..select_list import select_list
from .bind_pivot import use_pivot


@dataclass(frozen=True)
class Unpivoting:
    """What an UNPIVOT asks for: the names of its columns, and in `rows` what becomes a row, with its name."""

    name: str
    values: tuple[str, ...]
    rows: tuple[tuple[str, tuple[exp.Expr, ...]], ...]
    with_nulls: bool


def bind_unpivot(pivot: exp.Pivot, table: exp.Expr, scope: Scope) -> Logical:
    """Bind `UNPIVOT table ON ...`, or `table UNPIVOT (... FOR ...)`."""
    use_pivot(pivot)
    whole = exp.Select(expressions=[exp.Star()], from_=exp.From(this=copied(table)))
    plan = scope.bind_query(whole)
    star = tuple((column.name, column) for column in plan.columns)
    source = Source(plan, (Relation(table.alias_or_name, star),), {}, star)
    asked = _read(pivot, scope.over(source))
    named = {
        column.name.lower()
        for _, parts in asked.rows
        for part in parts
        for column in part.find_all(exp.Column)
    }
    kept = [column for name, column in star if name.lower() not in named]
    names = distinct_names([*(c.name for c in kept), asked.name, *asked.values])
    rows = _bound(asked, scope.over(source))
    return unpivoted(plan, kept, rows, names, asked.with_nulls)


def _read(pivot: exp.Pivot, scope: Scope) -> Unpivoting:
    fields: Sequence[exp.Expr] = pivot.args.get("fields") or ()
    into = pivot.args.get("into")
    if fields:
        if isinstance(fields[0].this, exp.Tuple):
            raise InvalidQuery("UNPIVOT has one column of names.", span_of(fields[0].this))
        name, items = fields[0].this.name, fields[0].expressions
        value = pivot.expressions[0]
        values = [v.name for v in (value.expressions or [value])]
    else:
        items = pivot.expressions
        name = into.this.name if into is not None else "name"
        values = [v.name for v in into.expressions] if into is not None else ["value"]
    rows = tuple(row for item in items for row in _rows(item, scope))
    if not rows:
        raise InvalidQuery("UNPIVOT needs at least one column.", span_of(pivot))
    for _, parts in rows:
        if len(parts) != len(values):
            raise InvalidQuery(
                f"UNPIVOT makes {len(values)} columns of values, and here are {len(parts)}.",
                span_of(parts[0]),
            )
    return Unpivoting(name, tuple(values), rows, bool(pivot.args.get("include_nulls")))


def _rows(item: exp.Expr, scope: Scope) -> list[tuple[str, tuple[exp.Expr, ...]]]:
    """Return what an item of ON stands for: itself, or the columns of a star."""
    alias = item.args["alias"].name if isinstance(item, exp.Alias | exp.PivotAlias) else None
    inner = item.this if alias is not None else item
    if isinstance(inner, exp.Tuple):
        parts = tuple(inner.expressions)
        return [(alias or "_".join(_name(part, scope) for part in parts), parts)]
    if isinstance(inner, exp.Star) or columns_in(inner, scope.session) is not None:
        listed = select_list(exp.Select(expressions=[copied(inner)]), scope)
        for made in listed:
            use_all(made.node)  # its copy is bound
        return [
            (alias or i.name, (exp.column(i.column.name, quoted=True) if i.column else i.node,))
            for i in listed
        ]
    return [(alias or _name(inner, scope), (inner,))]


def _name(node: exp.Expr, scope: Scope) -> str:
    """Return the name of the one column of an expression, spelled as the table has it."""
    names = {column.name for column in node.find_all(exp.Column)}
    if len(names) != 1:
        raise InvalidQuery("UNPIVOT takes expressions of one column.", span_of(node))
    name = names.pop()
    return next((spelled for spelled, _ in scope.star if spelled.lower() == name.lower()), name)


def _bound(asked: Unpivoting, scope: Scope) -> list[tuple[str, list[Expr]]]:
    """Bind the values of each row; raises `TypeMismatch` for text among other values, which have no common type in a list either."""
    inside = scope.inside("UNPIVOT")
    rows = [(name, [inside.bind(copied(part)) for part in parts]) for name, parts in asked.rows]
    for bound in zip(*(values for _, values in rows), strict=True):
        known = [e for e in bound if e.type != NULL]
        for other in known:
            if (other.type == VARCHAR) != (known[0].type == VARCHAR):
                raise TypeMismatch(
                    f"UNPIVOT does not mix {known[0].type} and {other.type}: cast one of them.",
                    other.span,
                )
    return rows
