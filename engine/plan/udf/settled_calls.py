"""The Python functions of a plan as they are when it is planned: with the code that kernels are made of, or why Python is called.

Of some Python aggregates kernels fold the state: sums, counts and extremes of what the step has for each row, finished by a function of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from ...errors import Unsupported
from ...records import dataclass
from .. import infer
from ..copies import commons_of, nodes_of, replace_nodes, with_commons
from ..expr import AggregateCall, Cast, Column, ColumnRef, Expr, Literal, new_column
from ..logical import Aggregate, Filter, Logical
from ..node import transform_up, walk
from ..types import BIGINT, DOUBLE, DataType
from .code_image import CodeImage, NotCompilable, content_of, image_of
from .python_function import AggregatePart, PythonAggregate, PythonCall, PythonFold, PythonFunction

Kinds = Callable[[PythonFold], "tuple[str, ...] | None"]  # what folds each part of a state
Settle = Callable[[Expr], "Expr | None"]
STEP, FINISH = "Step of the Python aggregate", "Finish of the Python aggregate"


def folded_by_kernels(plan: Logical, kinds: Kinds, settle: Settle, in_64_bits: bool) -> Logical:
    """PythonFold(list(x)) over Aggregate(list(x))  ->  finish(sum(part(x)), ...) over Aggregate(sum(part(x)), ...).

    What a fold reads is gathered in no list then.  `in_64_bits`: a sum of whole numbers that leaves these is an error, as on a GPU;
    else Python finishes its group.
    """
    made = _KernelFolds(kinds, settle, in_64_bits)
    for node in nodes_of(plan):
        below = _aggregate_below(node)
        if below is not None:
            for fold in _folds_of(node):
                made.add(fold, dict(below.aggregates))
    return replace_nodes(plan, made.rewritten) if made.finished else plan


def _aggregate_below(node: Logical) -> Aggregate | None:
    """Return the aggregation whose columns a node reads: HAVING passes all on."""
    if len(node.children) != 1 or isinstance(node, Aggregate):
        return None
    below = node.children[0]
    while isinstance(below, Filter):
        below = below.input
    return below if isinstance(below, Aggregate) else None


def _folds_of(node: Logical) -> Iterator[PythonFold]:
    for expr in node.expressions:
        yield from (part for part in walk(expr) if isinstance(part, PythonFold))


@dataclass
class _KernelFolds:
    """The folds of a plan that kernels do: what finishes each, and which calls it takes, by the first list that it would read."""

    kinds: Kinds
    settle: Settle
    in_64_bits: bool
    finished: dict[PythonFold, tuple[Expr, frozenset[Column]]] = field(default_factory=dict)
    calls: dict[Column, list[tuple[Column, AggregateCall]]] = field(default_factory=dict)

    def add(self, fold: PythonFold, lists: Mapping[Column, AggregateCall]) -> None:
        columns = [a.column for a in fold.args if isinstance(a, ColumnRef) and a.column in lists]
        if fold in self.finished or len(columns) < len(fold.args):
            return
        read = [lists[column] for column in columns]
        plain = all(c.function == "list" and not c.distinct and not c.order for c in read)
        kinds = self.kinds(fold) if plain else None
        if kinds is None:
            return
        rows = tuple(call.args[0] for call in read)
        made = [self._part(fold, i, kind, rows, read[0].filter) for i, kind in enumerate(kinds)]
        found = self._settled(_finish(fold, [value for _, _, value in made]))
        self.finished[fold] = found, frozenset(column for column, _, _ in made)
        self.calls.setdefault(columns[0], []).extend((column, call) for column, call, _ in made)

    def _part(
        self, fold: PythonFold, place: int, kind: str, rows: tuple[Expr, ...], filter: Expr | None
    ) -> tuple[Column, AggregateCall, Expr]:
        """Return the call that folds a part of the state, its column, and the part as `finish` takes it."""
        aggregate = fold.function
        initial = aggregate.initial[place]
        data_type = DOUBLE if isinstance(initial, float) else BIGINT
        step = _step(aggregate, place, data_type)
        call = self._settled(PythonCall(step, rows, data_type, span=fold.span))
        folded = cast("AggregateCall", infer.aggregate(kind, [call], filter=filter))
        column = new_column(f"{aggregate.name}_{kind}", folded.type)
        value: Expr = ColumnRef(column)
        if self.in_64_bits and folded.type != data_type:
            value = Cast(value, data_type, span=fold.span)
        none = Literal(initial, data_type)
        return column, folded, value if kind == "count" else infer.call("coalesce", [value, none])

    def _settled(self, call: PythonCall) -> Expr:
        return self.settle(call) or call

    def rewritten(self, node: Logical) -> Logical | None:
        if isinstance(node, Aggregate):
            more = [call for column, _ in node.aggregates for call in self.calls.get(column, ())]
            return replace(node, aggregates=(*node.aggregates, *more)) if more else None
        if _aggregate_below(node) is None:
            return None
        there = set(node.children[0].columns)

        def finished(expr: Expr) -> Expr | None:
            found = self.finished.get(expr) if isinstance(expr, PythonFold) else None
            return found[0] if found is not None and found[1] <= there else None

        return node.map_expressions(lambda e: transform_up(e, finished))


def _step(aggregate: PythonAggregate, place: int, data_type: DataType) -> AggregatePart:
    """Return what the step makes of a row and the first state, for a part of that."""
    known = {"step": aggregate.step.python, "start": aggregate.start}
    part = "" if aggregate.scalar else f"[{place}]"
    python = _function(len(aggregate.parameters), f"step(start, {{}}){part}", known)
    return AggregatePart(
        aggregate.name, python, aggregate.parameters, data_type, "compiled", role=STEP
    )


def _finish(fold: PythonFold, parts: Sequence[Expr]) -> PythonCall:
    """Return the call that makes the result of the parts of a state, which merges the first one: an extreme may be that of no row."""
    aggregate = fold.function
    known = {
        "finish": aggregate.finish.python,
        "merge": aggregate.merge.python,
        "start": aggregate.start,
    }
    state = "{}" if aggregate.scalar else "({},)"
    python = _function(len(parts), f"finish(merge(start, {state}))", known)
    types = tuple(part.type for part in parts)
    made = AggregatePart(aggregate.name, python, types, aggregate.result, "compiled", role=FINISH)
    return PythonCall(made, tuple(parts), aggregate.result, span=fold.span)


def _function(count: int, body: str, known: Mapping[str, object]) -> Callable[..., object]:
    """Return a function of so many arguments, which a body names in its place for them."""
    names = ", ".join(f"a{i}" for i in range(count))
    namespace = dict(known)
    exec(f"def made({names}):\n    return {body.format(names)}", namespace)
    return cast("Callable[..., object]", namespace["made"])


# Returns why the compiler refuses the function of a call, which has an image
Refusal = Callable[[PythonCall | PythonFold], str | None]
DeviceRefusal = Callable[[PythonCall], str | None]  # the same for a GPU


@dataclass(frozen=True)
class FunctionCompiler:
    """What compilers know of Python functions: why one is refused, also for a GPU where a plan is for one, and how states of aggregates fold."""

    refusal: Refusal
    kinds: Kinds
    device_refusal: DeviceRefusal | None = None

    def settled(self, expr: Expr) -> Expr | None:
        """Return a call as it is now, or a fold, of which nobody knows yet who runs it; None for another expression."""
        if isinstance(expr, PythonFold):
            found = [_image(function) for function in expr.function.functions]
            why = next((why for image, why in found if image is None), None)
            if why is not None:
                raise _of_aggregate(expr, why)
            return replace(expr, images=tuple(image for image, _ in found if image is not None))
        if not isinstance(expr, PythonCall):
            return None
        image, why = _image(expr.function)
        made = replace(expr, image=image, why=why)
        # The terms of a step are known
        part = expr.function if isinstance(expr.function, AggregatePart) else None
        is_step = part is not None and part.role == STEP
        refused = None if image is None or is_step else self.refusal(made)
        if refused is not None:
            made = replace(expr, image=None, why=refused)
        if made.image is None and part is not None:
            raise _of_aggregate(expr, made.why)
        if made.image is None and expr.function.way == "compiled":
            error = Unsupported(
                f"The Python function {expr.function.name} {made.why}, so that it cannot be compiled: "
                "write vectorized=True, with which Python runs it over arrays."
            )
            error.at(expr.span)
            raise error
        if made.image is None or self.device_refusal is None:
            return made
        return replace(made, not_on_gpu=self.device_refusal(made) or "")

    def check_loops(self, plan: Logical) -> None:
        """Raise `Unsupported` for an aggregate that no kernel folds, and whose loop over lists does not compile."""
        for fold in _parts_of(plan):
            if isinstance(fold, PythonFold) and (why := self.refusal(fold)) is not None:
                raise _of_aggregate(fold, why)


def _of_aggregate(expr: PythonFold | PythonCall, why: str) -> Unsupported:
    error = Unsupported(f"The Python aggregate {expr.function.name} {why}: it has to compile.")
    error.at(expr.span)
    return error


def settled(plan: Logical, compiler: FunctionCompiler) -> Logical:
    """Return a plan with its calls of Python functions settled; raises `Unsupported` for one that has to be compiled and cannot."""
    if not functions_of(plan):
        return plan
    on_gpu = compiler.device_refusal is not None

    def in_node(node: Logical) -> Logical:
        return node.map_expressions(lambda e: transform_up(e, compiler.settled))

    def rewrite(part: Logical) -> Logical:
        found = replace_nodes(part, in_node)
        found = folded_by_kernels(found, compiler.kinds, compiler.settled, on_gpu)
        compiler.check_loops(found)
        return found

    return with_commons(plan, rewrite)


def functions_of(plan: Logical) -> tuple[PythonFunction, ...]:
    """Return the Python functions that a plan calls, those of its subqueries included, each once."""
    found: dict[PythonFunction, None] = {}
    for part in (plan, *(common.plan for common in commons_of(plan))):
        for each in _parts_of(part):
            if isinstance(each, PythonCall):
                found.setdefault(each.function)
            elif isinstance(each, PythonFold):
                found |= dict.fromkeys(each.function.functions)
    return tuple(found)


def _parts_of(plan: Logical) -> Iterator[Expr]:
    for node in nodes_of(plan):
        for expr in node.expressions:
            yield from walk(expr)


def contents_of(functions: Sequence[PythonFunction]) -> tuple[object, ...]:
    """Return what the values of functions depend on now, for those that may be compiled, or why they are not; each run of a plan asks."""
    return tuple(map(_content, functions))


def _content(function: PythonFunction) -> object:
    try:
        return function.uncompiled or content_of(function.python)
    except NotCompilable as reason:
        return reason.message


def _image(function: PythonFunction) -> tuple[CodeImage | None, str]:
    if function.uncompiled is not None:
        return None, function.uncompiled
    try:
        return image_of(function.python), ""
    except NotCompilable as reason:
        return None, reason.message
