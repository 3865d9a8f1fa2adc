"""Dependent joins: a right side that reads the left row becomes one that carries those values as columns of its own.

    Join(L, R, kind, p), R reads L.a  ->  Join(L, R', kind, p and L.a = R'.a)

R' computes at once, for all values of `a`, what R computes for one.  Where R itself equates `a` with a column of its own, that column is
R'.a and nothing else is needed: the usual correlated aggregate becomes a GROUP BY.  Where it does not, R' starts from the *domain*, the
distinct values of `a` in L.  After Neumann and Kemper, "Unnesting Arbitrary Queries" (BTW 2015).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import field

from ...plan import expr as ex, logical as rel
from ...plan.copies import fresh
from ...plan.functions import EQUALITIES
from ...plan.join_kinds import JoinKind
from ...plan.types import BOOLEAN
from ...records import dataclass
from ..rewrite import pass_on, reads_only, replace_columns


@dataclass(frozen=True)
class Bound:
    """A plan that no longer reads outer columns, and how its rows belong to outer rows.

    The rows for an outer row o are those with `where[c]` = o.c for each c in `where` for which `pending`, which may read
    outer columns, is TRUE.  For c in `strict` a NULL belongs to no outer row, else NULL belongs to NULL.  With `default`, an outer row for which
    there are no rows has this one.
    """

    plan: rel.Logical
    where: Mapping[ex.Column, ex.Column] = field(default_factory=dict)
    strict: frozenset[ex.Column] = frozenset()
    pending: tuple[ex.Expr, ...] = ()
    default: Mapping[ex.Column, ex.Expr] | None = None

    @property
    def refs(self) -> dict[ex.Column, ex.Expr]:
        """What stands for each outer column inside the plan."""
        return {outer: ex.ColumnRef(own) for outer, own in self.where.items()}

    def belongs(self, outer: ex.Column, value: ex.Expr) -> ex.Expr:
        """Return the condition that the rows for `value` of an outer column meet."""
        function = "eq" if outer in self.strict else "is_not_distinct"
        return ex.Call(function, (value, ex.ColumnRef(self.where[outer])), BOOLEAN)

    def carried(self) -> list[ex.Column]:
        """Return the columns that nodes above have to pass on."""
        read = [ex.columns_of(p) for p in self.pending]
        available = self.plan.columns
        return [c for c in available if c in self.where.values() or any(c in r for r in read)]


@dataclass(frozen=True)
class Outer:
    """The left side of a dependent join and its columns that the right side reads."""

    source: rel.Logical
    columns: frozenset[ex.Column]

    def reads(self, *exprs: ex.Expr) -> frozenset[ex.Column]:
        """Return the outer columns that expressions read."""
        return frozenset().union(*(ex.columns_of(e) for e in exprs)) & self.columns

    def is_read_by(self, plan: rel.Logical) -> bool:
        return bool(rel.free_columns(plan) & self.columns)

    def domain(
        self, columns: Iterable[ex.Column]
    ) -> tuple[rel.Logical, dict[ex.Column, ex.Column]]:
        """Return the distinct values of outer columns, which may be a few more than L has, and their new names."""
        wanted = sorted(columns, key=lambda c: c.id)
        source, renamed = fresh(_source(self.source, frozenset(wanted)))
        names = {c: ex.new_column(c.name, c.type) for c in wanted}
        items = tuple((names[c], ex.ColumnRef(renamed[c])) for c in wanted)
        return rel.Distinct(rel.Project(source, items)), names


def _source(plan: rel.Logical, columns: frozenset[ex.Column]) -> rel.Logical:
    """Return the smallest part of a plan that has all values of `columns`, under the predicates that concern it alone."""
    match plan:
        case rel.Filter(input=x, predicate=predicate):
            inner = _source(x, columns)
            own = [p for p in ex.conjuncts(predicate) if reads_only(p, inner.columns)]
            return rel.Filter(inner, ex.conjunction(own)) if own else inner
        case rel.Join(left=left, right=right, kind=kind) if not kind.keeps_right:
            if columns <= frozenset(left.columns):
                return _source(left, columns)
            if kind is JoinKind.INNER and columns <= frozenset(right.columns):
                return _source(right, columns)
        case rel.Project(input=x) | rel.Sort(input=x) if columns <= frozenset(x.columns):
            return _source(x, columns)
    return plan


def bind(bound: Bound, outer: Outer, columns: Iterable[ex.Column] = ()) -> Bound:
    """Make `columns` and all that is pending part of the plan, by a join with the domain."""
    missing = (frozenset(columns) | outer.reads(*bound.pending)) - bound.where.keys()
    if not missing and not bound.pending:
        return bound
    if not missing:
        local = [replace_columns(p, bound.refs) for p in bound.pending]
        return dataclasses.replace(
            bound, plan=rel.Filter(bound.plan, ex.conjunction(local)), pending=()
        )
    domain, names = outer.domain(missing | bound.where.keys())
    refs: dict[ex.Column, ex.Expr] = {c: ex.ColumnRef(n) for c, n in names.items()}
    parts = [bound.belongs(c, refs[c]) for c in bound.where]
    parts += [replace_columns(p, refs) for p in bound.pending]
    joined = rel.Join(bound.plan, domain, JoinKind.INNER, ex.conjunction(parts) if parts else None)
    return Bound(joined, names, bound.strict, (), bound.default)


def materialized(bound: Bound, outer: Outer) -> Bound:
    """Make the default rows part of the plan: the domain, left joined with the rows that there are."""
    if bound.default is None:
        return bound
    bound = bind(bound, outer)
    assert bound.default is not None
    read = outer.reads(*bound.default.values())
    domain, names = outer.domain(read | bound.where.keys())
    refs: dict[ex.Column, ex.Expr] = {c: ex.ColumnRef(n) for c, n in names.items()}
    parts = [bound.belongs(c, refs[c]) for c in bound.where]
    default = {c: replace_columns(e, refs) for c, e in bound.default.items()}
    plan = with_defaults(domain, bound.plan, ex.conjunction(parts), default)
    return Bound(plan, names)


def with_defaults(
    left: rel.Logical, right: rel.Logical, condition: ex.Expr, default: Mapping[ex.Column, ex.Expr]
) -> rel.Logical:
    """Return a left join that gives rows without a match the values of `default` instead of NULLs."""
    if all(isinstance(e, ex.Literal) and e.is_null for e in default.values()):
        joined: rel.Logical = rel.Join(left, right, JoinKind.LEFT, condition)
        return rel.Project(joined, pass_on((*left.columns, *default)))
    right, inner = fresh(right)  # the projection on top makes the columns under their ids
    refs: dict[ex.Column, ex.Expr] = {c: ex.ColumnRef(n) for c, n in inner.items()}
    matched = ex.new_column("matched", BOOLEAN)
    marked = rel.Project(right, (*pass_on(right.columns), (matched, ex.TRUE)))
    joined = rel.Join(left, marked, JoinKind.LEFT, replace_columns(condition, refs))
    missing = ex.Call("is_null", (ex.ColumnRef(matched),), BOOLEAN)
    chosen = tuple((c, ex.Case((missing,), (e,), refs[c], c.type)) for c, e in default.items())
    return rel.Project(joined, (*pass_on(left.columns), *chosen))


def absorb(bound: Bound, outer: Outer, parts: Iterable[ex.Expr]) -> Bound:
    """Apply parts of a predicate: those that equate an outer column bind it, others that read unbound ones wait."""
    where, strict = dict(bound.where), set(bound.strict)
    own = frozenset(bound.plan.columns)
    computed: list[tuple[ex.Column, ex.Expr]] = []
    rest = []
    own = frozenset(bound.plan.columns)
    for part in parts:
        binding = _binding(part, outer, own)
        if binding is None or binding[0] in where:
            rest.append(part)
            continue
        column, value = binding
        if isinstance(value, ex.ColumnRef):
            where[column] = value.column
        else:
            where[column] = ex.new_column(column.name, column.type)
            computed.append((where[column], value))
        if isinstance(part, ex.Call) and part.function == "eq":
            strict.add(column)
    plan = bound.plan
    if computed:
        plan = rel.Project(plan, (*pass_on(plan.columns), *computed))
    refs: dict[ex.Column, ex.Expr] = {c: ex.ColumnRef(own) for c, own in where.items()}
    local = [p for p in rest if outer.reads(p) <= where.keys()]
    pending = [p for p in rest if not outer.reads(p) <= where.keys()]
    if local:
        plan = rel.Filter(plan, ex.conjunction([replace_columns(p, refs) for p in local]))
    return Bound(plan, where, frozenset(strict), (*bound.pending, *pending), bound.default)


def _binding(
    part: ex.Expr, outer: Outer, own: frozenset[ex.Column]
) -> tuple[ex.Column, ex.Expr] | None:
    """Return the outer column and the expression over `own` columns that an equality makes equal."""
    if not isinstance(part, ex.Call) or part.function not in EQUALITIES:
        return None
    for a, b in (part.args, part.args[::-1]):
        is_outer = isinstance(a, ex.ColumnRef) and a.column in outer.columns
        if is_outer and ex.columns_of(b) and reads_only(b, own):
            assert isinstance(a, ex.ColumnRef)
            return a.column, b
    return None


def without_nulls(bound: Bound) -> Bound:
    """Drop the rows that belong to no outer row, so that NULL may belong to NULL."""
    tests: list[ex.Expr] = [
        ex.Call("is_not_null", (ex.ColumnRef(bound.where[c]),), BOOLEAN) for c in bound.strict
    ]
    if not tests:
        return bound
    return dataclasses.replace(
        bound, plan=rel.Filter(bound.plan, ex.conjunction(tests)), strict=frozenset()
    )
