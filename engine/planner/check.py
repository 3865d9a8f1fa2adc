"""Validation of plans between steps: a wrong rule is found where it went wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ..plan import logical as rel, physical as p
from ..plan.copies import commons_of
from ..plan.expr import Call, Case, Column, ColumnRef, Expr, InList, Subquery
from ..plan.functions import COMPARISONS
from ..plan.join_kinds import JoinKind
from ..plan.node import walk, walk_once
from ..plan.pipeline_steps import columns_read
from ..plan.types import BOOLEAN
from ..plan.window.window_call import Over, Window


class InvalidPlanError(AssertionError):
    """A step of the planner broke a plan; no query should ever show it."""


def check_logical(
    plan: rel.Logical,
    step: str,
    *,
    subqueries: bool,
    columns: tuple[Column, ...] | None = None,
    outer: frozenset[Column] = frozenset(),
) -> None:
    """Raise `InvalidPlanError` when `plan`, made by `step`, is no valid plan.

    Every column that is read is made below (or by a query around it), no id is made twice, operands have the types
    that their function wants, and the plan makes `columns`.  `subqueries` allows what `decorrelate` removes.
    """
    if columns is not None and plan.columns != columns:
        _fail(step, f"the columns {_names(plan.columns)} are not {_names(columns)}")
    for common in commons_of(plan):
        _check(common.plan, step, subqueries, frozenset(), set())
    made: set[Column] = set()
    _check(plan, step, subqueries, outer, made)


def _check(
    node: rel.Logical, step: str, subqueries: bool, outer: frozenset[Column], made: set[Column]
) -> None:
    if isinstance(node, rel.Join):
        lateral = outer | frozenset(node.left.columns) if subqueries else outer
        _check(node.left, step, subqueries, outer, made)
        _check(node.right, step, subqueries, lateral, made)
        visible = outer | frozenset((*node.left.columns, *node.right.columns))
    else:
        for child in node.children:
            _check(child, step, subqueries, outer, made)
        visible = outer.union(*(frozenset(c.columns) for c in node.children))
    for column in made_by(node):
        if column in made:
            _fail(step, f"{_name(column)} is made twice, the second time by {type(node).__name__}")
        made.add(column)
    for expr in node.expressions:
        _check_expression(expr, step, type(node).__name__, visible, subqueries, made)
    _check_node(node, step)


def _check_expression(
    expr: Expr,
    step: str,
    where: str,
    visible: frozenset[Column],
    subqueries: bool,
    made: set[Column],
) -> None:
    for e in walk(expr):
        if isinstance(e, ColumnRef) and e.column not in visible:
            _fail(step, f"{where} reads {_name(e.column)}, which nothing below it makes")
        if isinstance(e, Subquery):
            if not subqueries:
                _fail(step, f"{where} still holds a subquery")
            _check(e.plan, step, subqueries, visible, made)
        if isinstance(e, Over):
            _fail(step, f"{where} holds a window call")
        _check_types(e, step)


def _check_types(e: Expr, step: str) -> None:
    match e:
        case Call(function=function, args=args) if function in COMPARISONS:
            if args[0].type != args[1].type:
                _fail(step, f"{function} compares {args[0].type} with {args[1].type}")
        case Call(function="and" | "or" | "not", args=args):
            if any(a.type != BOOLEAN for a in args):
                _fail(step, f"{e.function} over {', '.join(str(a.type) for a in args)}")
        case Case(results=results, default=default):
            if any(r.type != e.type for r in (*results, default)):
                _fail(step, f"CASE of {e.type} has a result of another type")
        case InList(operand=operand, values=values):
            if any(v.type != operand.type for v in values):
                _fail(step, f"IN compares {operand.type} with another type")


def _check_node(node: rel.Logical, step: str) -> None:
    match node:
        case rel.Filter(predicate=predicate) if predicate.type != BOOLEAN:
            _fail(step, f"a filter by a {predicate.type}")
        case rel.Project(items=items):
            _check_items(items, step)
        case rel.Aggregate(keys=keys, aggregates=aggregates):
            _check_items((*keys, *aggregates), step)
        case Window(calls=calls):
            _check_items(calls, step)
        case rel.Values(made=made, rows=rows):
            for row in rows:
                if [e.type for e in row] != [c.type for c in made]:
                    _fail(step, f"a row of VALUES does not fit {_names(made)}")
        case rel.CommonScan(common=common, made=made, sources=sources):
            missing = [c for c in sources if c not in common.plan.columns]
            if missing or [c.type for c in made] != [c.type for c in sources]:
                _fail(step, f"{_names(made)} of {common.name} are not {_names(sources)}")
        case rel.SetOperation(left=left, right=right, made=made):
            types = [c.type for c in made]
            if [c.type for c in left.columns] != types or [c.type for c in right.columns] != types:
                _fail(step, f"{node.kind} of {_names(left.columns)} and {_names(right.columns)}")
        case rel.Join(kind=kind, null_aware=True, condition=condition):
            fits = isinstance(condition, Call) and condition.function == "eq"
            if kind not in (JoinKind.ANTI, JoinKind.MARK) or not fits:
                _fail(step, f"a null-aware {kind} join whose condition is not one equality")


def _check_items(items: Iterable[tuple[Column, Expr]], step: str) -> None:
    for column, expr in items:
        if column.type != expr.type:
            _fail(step, f"{_name(column)} is {column.type}, its expression {expr.type}")


def made_by(node: rel.Logical) -> tuple[Column, ...]:
    """Return the columns whose ids this node introduces."""
    match node:
        case (
            rel.Scan(made=made)
            | rel.CommonScan(made=made)
            | rel.Values(made=made)
            | rel.SetOperation(made=made)
        ):
            return made
        case rel.Range(made=column):
            return (column,)
        case rel.Project(items=items):
            below = node.input.columns
            return tuple(c for c, _ in items if c not in below)
        case rel.Aggregate(keys=keys, aggregates=aggregates):
            below = node.input.columns
            made = (*(c for c, _ in keys), *(c for c, _ in aggregates))
            found = tuple(c for c in made if c not in below)
            return found if node.grouping_id is None else (*found, node.grouping_id)
        case Window(calls=calls):
            return tuple(c for c, _ in calls)
        case rel.Unnest(made=made):
            return made
        case rel.Join(mark=Column() as mark):
            return (mark,)
    return ()


def check_physical(plan: p.Physical, step: str, columns: tuple[Column, ...]) -> None:
    """Raise `InvalidPlanError` when an operator reads a column that its inputs do not have."""
    if plan.columns != columns:
        _fail(step, f"the columns {_names(plan.columns)} are not {_names(columns)}")
    for node in walk_once(plan):
        if isinstance(node, p.Pipeline):
            _check_body(node, step)
            continue
        inputs = node.children
        visible = {getattr(node, "mark", None), *(c for child in inputs for c in child.columns)}
        read = (*(getattr(node, "keep", None) or ()), *columns_read(node))
        missing = [c for c in read if c not in visible]
        if missing:
            _fail(step, f"{type(node).__name__} reads {_names(missing)}, which its input has not")
        if isinstance(node, p.ConcatRows | p.HashSetOperation) and any(
            [c.type for c in child.columns] != [c.type for c in node.made] for child in inputs
        ):
            _fail(step, f"{type(node).__name__} over inputs of different types")


def _check_body(node: p.Pipeline, step: str) -> None:
    """A body reads its inputs only where it says so, and all of it is on the pipeline's device."""
    check_physical(node.body, step, node.columns)
    for part in walk(node.body):
        if isinstance(part, p.Stored) and part.made != node.inputs[part.number].columns:
            _fail(step, f"Stored {part.number} makes {_names(part.made)}, its input other columns")
        if not part.children and not isinstance(part, p.ParquetScan | p.MemoryScan | p.Stored):
            _fail(step, f"a pipeline reads {type(part).__name__}")
        if part.device != node.device:
            _fail(step, f"a pipeline on the {node.device} holds {type(part).__name__} of another")


def _fail(step: str, what: str) -> None:
    raise InvalidPlanError(f"After {step}: {what}.")


def _name(column: Column) -> str:
    return f"{column.name}#{column.id}"


def _names(columns: Iterable[Column]) -> str:
    return "(" + ", ".join(f"{_name(c)} {c.type}" for c in columns) + ")"
