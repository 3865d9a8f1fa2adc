"""Subquery expressions become joins below the node that reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field

from ...errors import Span
from ...plan import expr as ex, logical as rel
from ...plan.functions import NEGATED, SCALAR
from ...plan.join_kinds import JoinKind
from ...plan.node import transform_up
from ...plan.types import BIGINT, BOOLEAN, Kind
from ...plan.window.window_call import Window
from ...records import dataclass
from ..plan_properties import at_most_one_row, exactly_one_row, unique_keys
from ..rewrite import narrow, pass_on
from .flatten import flatten, marked, not_false
from .unnest import Outer, materialized, with_defaults

UNORDERED = (Kind.BOOLEAN, Kind.INTERVAL, Kind.NULL)  # types without MIN and MAX

Take = Callable[[rel.Logical], rel.Logical]


@dataclass
class Attachment:
    """Joins subqueries to `plan` one after the other; `take` gives the plan of a subquery without subqueries of its own."""

    plan: rel.Logical
    take: Take
    _answers: dict[ex.Expr, ex.Expr] = field(default_factory=dict)

    def without_subqueries(self, expr: ex.Expr) -> ex.Expr:
        """Return `expr` reading the columns of the joins instead; equal subqueries are joined once."""
        return transform_up(expr, self._answer)

    def _answer(self, expr: ex.Expr) -> ex.Expr | None:
        if not isinstance(expr, ex.Subquery):
            return None
        if expr not in self._answers:
            match expr:
                case ex.ScalarSubquery():
                    self._answers[expr] = self._scalar(self.take(expr.plan), expr.span)
                case ex.Exists():
                    self._answers[expr] = self._exists(self.take(expr.plan))
                case ex.Quantified():
                    self._answers[expr] = self._quantified(expr)
        return self._answers[expr]

    def _scalar(self, plan: rel.Logical, span: Span | None) -> ex.Expr:
        match plan:
            case rel.Project(input=rel.Values(made=(), rows=((),)), items=((_, expr),)):
                return expr  # (SELECT e) without a FROM
        column = plan.columns[0]
        kind: JoinKind = JoinKind.LEFT if at_most_one_row(plan) else JoinKind.SINGLE
        if exactly_one_row(plan):
            kind = JoinKind.INNER
        self.plan = unnested(rel.Join(self.plan, plan, kind, span=span))
        return ex.ColumnRef(column)

    def _exists(self, plan: rel.Logical) -> ex.Expr:
        found = existence(plan)
        if isinstance(found, ex.Literal):
            return found
        mark = ex.new_column("exists", BOOLEAN)
        self.plan = join(self.plan, found, JoinKind.MARK, mark=mark)
        return ex.ColumnRef(mark)

    def _quantified(self, expr: ex.Quantified) -> ex.Expr:
        expr, negated = as_any(expr)
        plan = self.take(expr.plan)
        answer = self._any(expr, plan)
        return ex.Call("not", (answer,), BOOLEAN, expr.span) if negated else answer

    def _any(self, expr: ex.Quantified, plan: rel.Logical) -> ex.Expr:
        """Return the three-valued value of operands <op> ANY (plan)."""
        if exactly_one_row(plan) and len(expr.operands) == 1:
            return ex.Call(
                expr.op, (expr.operands[0], self._scalar(plan, expr.span)), BOOLEAN, expr.span
            )
        if is_by_extremes(expr):
            return self._by_extremes(expr.op, expr.operands[0], plan)
        mark = ex.new_column("any", BOOLEAN)
        test = comparison(expr, plan)
        if expr.op == "eq" and len(expr.operands) == 1 and not _reads(plan, self.plan):
            self.plan = rel.Join(self.plan, plan, JoinKind.MARK, test, null_aware=True, mark=mark)
        else:
            self.plan = _unnested_marks(marked(self.plan, plan, [], test, mark))
        return ex.ColumnRef(mark)

    def _by_extremes(self, op: str, operand: ex.Expr, plan: rel.Logical) -> ex.Expr:
        """X < ANY (plan) is x < max(plan) where that is TRUE; FALSE or NULL follow from the counts."""
        value = ex.ColumnRef(plan.columns[0])
        functions = {"upper": ("max",), "lower": ("min",)}.get(SCALAR[op].bound, ("min", "max"))
        extremes = [
            (ex.new_column(f, value.type), ex.AggregateCall(f, (value,), value.type))
            for f in functions
        ]
        rows, values = ex.new_column("rows", BIGINT), ex.new_column("values", BIGINT)
        calls = (
            *extremes,
            (rows, ex.AggregateCall("count_star", (), BIGINT)),
            (values, ex.AggregateCall("count", (value,), BIGINT)),
        )
        self.plan = join(self.plan, rel.Aggregate(plan, (), calls), JoinKind.INNER)
        tests = [ex.Call(op, (operand, ex.ColumnRef(c)), BOOLEAN) for c, _ in extremes]
        is_true = tests[0] if len(tests) == 1 else ex.Call("or", tuple(tests), BOOLEAN)
        none = ex.Call("eq", (ex.ColumnRef(rows), ex.Literal(0, BIGINT)), BOOLEAN)
        known = ex.Call("is_not_null", (operand,), BOOLEAN)
        no_nulls = ex.Call("eq", (ex.ColumnRef(rows), ex.ColumnRef(values)), BOOLEAN)
        is_false = ex.Call("or", (none, ex.Call("and", (known, no_nulls), BOOLEAN)), BOOLEAN)
        return ex.Case((is_true, is_false), (ex.TRUE, ex.FALSE), ex.Literal(None, BOOLEAN), BOOLEAN)


def filter_by(plan: rel.Logical, predicate: ex.Expr, take: Take) -> rel.Logical:
    """Return Filter(predicate, plan) without subqueries; a subquery that is a whole condition becomes a semi or anti join."""
    columns = plan.columns
    parts = list(ex.conjuncts(predicate))
    plain = [p for p in parts if not p.subqueries]
    current = rel.Filter(plan, ex.conjunction(plain)) if plain else plan
    for part in parts:
        if not part.subqueries:
            continue
        joined = _semi_or_anti(current, part, take)
        if joined is None:
            attachment = Attachment(current, take)
            condition = attachment.without_subqueries(part)
            joined = rel.Filter(attachment.plan, condition)
        current = joined
    return narrow(current, columns)


def _semi_or_anti(plan: rel.Logical, part: ex.Expr, take: Take) -> rel.Logical | None:
    """Return the join that a condition is by itself, or None."""
    negated = False
    while isinstance(part, ex.Call) and part.function == "not":
        part, negated = part.args[0], not negated
    kind: JoinKind = JoinKind.ANTI if negated else JoinKind.SEMI
    match part:
        case ex.Exists():
            found = existence(take(part.plan))
            if isinstance(found, ex.Literal):
                keeps = bool(found.truth) != negated
                return plan if keeps else rel.Filter(plan, ex.FALSE)
            return join(plan, found, kind)
        case ex.Quantified():
            expr, turned = as_any(part)
            kind = JoinKind.ANTI if negated != turned else JoinKind.SEMI
            return _by_comparison(plan, expr, kind, take)
    return None


def _by_comparison(
    plan: rel.Logical, expr: ex.Quantified, kind: JoinKind, take: Take
) -> rel.Logical | None:
    if is_by_extremes(expr) or exactly_one_row(expr.plan):
        return None
    attachment = Attachment(plan, take)
    operands = tuple(attachment.without_subqueries(e) for e in expr.operands)
    expr = dataclasses.replace(expr, operands=operands)
    right = take(expr.plan)
    test = comparison(expr, right)
    if kind is JoinKind.SEMI:
        joined = join(attachment.plan, right, JoinKind.SEMI, test)
    elif expr.op == "eq" and len(operands) == 1 and not _reads(right, attachment.plan):
        joined = rel.Join(attachment.plan, right, JoinKind.ANTI, test, null_aware=True)
    else:
        joined = join(attachment.plan, right, JoinKind.ANTI, not_false(test))
    return joined


def is_by_extremes(expr: ex.Quantified) -> bool:
    return (
        expr.op != "eq" and len(expr.operands) == 1 and expr.operands[0].type.kind not in UNORDERED
    )


def as_any(expr: ex.Quantified) -> tuple[ex.Quantified, bool]:
    """X <op> ALL (q) is not (x <negated op> ANY (q)), in three-valued logic too."""
    if expr.quantifier == "any":
        return expr, False
    return dataclasses.replace(expr, op=NEGATED[expr.op], quantifier="any"), True


def comparison(expr: ex.Quantified, plan: rel.Logical) -> ex.Call:
    """Return the comparison of the operands with one row of the subquery; rows are equal when all their values are."""
    pairs = zip(expr.operands, plan.columns, strict=True)
    tests = tuple(ex.Call(expr.op, (a, ex.ColumnRef(c)), BOOLEAN, expr.span) for a, c in pairs)
    if len(tests) == 1:
        return tests[0]
    return ex.Call("and" if expr.op == "eq" else "or", tests, BOOLEAN)


def existence(plan: rel.Logical) -> rel.Logical | ex.Literal:
    """Return what is left to ask of a plan when only the presence of a row counts."""
    while True:
        match plan:
            case _ if exactly_one_row(plan):
                return ex.TRUE
            case rel.Limit(count=0):
                return ex.FALSE
            case rel.Project() | rel.Sort() | rel.Distinct() | rel.Limit(offset=0) | Window():
                plan = plan.children[0]
            case rel.Aggregate(input=x, grouping_sets=sets):
                if sets is not None and () in sets:
                    return ex.TRUE
                plan = x
            case _:
                return plan


def _reads(right: rel.Logical, left: rel.Logical) -> bool:
    return not rel.free_columns(right).isdisjoint(left.columns)


def _unnested_marks(plan: rel.Logical) -> rel.Logical:
    """Unnest the two mark joins of `marked`."""
    second = plan.children[0]
    assert isinstance(second, rel.Join)
    first = second.left
    assert isinstance(first, rel.Join)
    inner = unnested(first)
    return plan.with_children([unnested(dataclasses.replace(second, left=inner))])


def join(
    left: rel.Logical,
    right: rel.Logical,
    kind: JoinKind,
    condition: ex.Expr | None = None,
    mark: ex.Column | None = None,
) -> rel.Logical:
    return unnested(rel.Join(left, right, kind, condition, mark=mark))


def unnested(node: rel.Join) -> rel.Logical:
    """Return a join whose right side may read the left one as joins of independent sides."""
    outer = Outer(node.left, frozenset(rel.free_columns(node.right)) & frozenset(node.left.columns))
    if not outer.columns:
        return node
    inlined = _inlined(node)
    if inlined is not None:
        return inlined
    parts = list(ex.conjuncts(node.condition))
    bound = flatten(node.right, outer)
    keeps_default = not (parts or bound.pending or node.kind.is_membership)
    if bound.default is not None and keeps_default:
        belongs = [bound.belongs(c, ex.ColumnRef(c)) for c in bound.where]
        default = {c: bound.default[c] for c in node.right.columns}
        return with_defaults(node.left, bound.plan, ex.conjunction(belongs), default)
    bound = materialized(bound, outer)
    parts += [bound.belongs(c, ex.ColumnRef(c)) for c in bound.where]
    parts += bound.pending
    kind = node.kind
    own = set(bound.where.values())
    if kind is JoinKind.SINGLE and any(key <= own for key in unique_keys(bound.plan)):
        kind = JoinKind.LEFT
    condition = ex.conjunction(parts) if parts else None
    joined = dataclasses.replace(node, right=bound.plan, kind=kind, condition=condition)
    return narrow(joined, node.columns)


def _inlined(node: rel.Join) -> rel.Logical | None:
    """Join(L, Project(e, one row)) -> Project(L, e): a lateral SELECT without a FROM."""
    match node:
        case rel.Join(
            kind=JoinKind.INNER | JoinKind.LEFT | JoinKind.SINGLE,
            condition=None,
            right=rel.Project(input=rel.Values(made=(), rows=((),)), items=items),
        ):
            return rel.Project(node.left, (*pass_on(node.left.columns), *items))
    return None
