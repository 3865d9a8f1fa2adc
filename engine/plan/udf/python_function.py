"""Functions and aggregates of the user's in Python, and their calls in a plan.

An aggregate is a state, the step that a row makes of it, how states of parts merge, and what the result is.  Its call is an expression over
lists of its arguments' values, which plans gather for each group; a compiled loop goes over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import ClassVar, Literal as OneOf

from ...errors import Span, TypeMismatch, Unsupported
from ...records import dataclass
from .. import infer
from ..casts import coerce, is_text_literal, literal_types
from ..coercion import implicit
from ..expr import Expr, Literal, SortKey, columns_of, conjunction, conjuncts
from ..node import Once, walk
from ..types import NULL, DataType, Kind
from .code_image import CodeImage

Way = OneOf["compiled", "native", "vectorized"]


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """A scalar function in Python, its types and what may be done with it; each is equal to itself alone.

    `way`: compiled, into kernels or refused; native, compiled where that keeps its values and else called for each row; vectorized, called
    with Arrow arrays.  `parameters` None takes any number of arguments of any types.  Without `takes_nulls` a NULL argument makes NULL
    and the function may not return None.
    """

    name: str
    python: Callable[..., object]
    parameters: tuple[DataType, ...] | None
    result: DataType
    way: Way
    takes_nulls: bool = False
    side_effects: bool = False
    null_on_error: bool = False

    @Once
    def unfit(self) -> str | None:
        """Why no kernel holds a function of these types, as a verb and what follows it."""
        if self.parameters is None:
            return "takes any number of arguments: only Python does."
        for data_type in (*self.parameters, self.result):
            if data_type.is_integer or data_type.is_float or data_type.kind is Kind.BOOLEAN:
                continue
            if data_type.is_temporal and self.way == "compiled":
                continue
            if data_type.is_decimal:
                return f"has a {data_type}, with which compiled functions do not compute: declare DOUBLE, or write vectorized=True."
            return f"has a {data_type}, which is not compiled: write vectorized=True, and it gets arrays of it."
        return None

    @Once
    def uncompiled(self) -> str | None:
        """Why Python is called, whatever the code is: a verb and what follows it."""
        if self.way == "vectorized":
            return "is vectorized: Python runs it over arrays"
        if self.side_effects:
            return "has side effects: Python is called for each row"
        if self.takes_nulls:
            return "takes NULLs: Python is called for each row"
        return None if self.unfit is None else self.unfit.partition(":")[0]

    def __str__(self) -> str:
        listed = "..." if self.parameters is None else ", ".join(map(str, self.parameters))
        return f"{self.name}({listed})"


@dataclass(frozen=True, eq=False)
class AggregatePart(PythonFunction):
    """A function that a plan makes of those of an aggregate; `role` says what it does there, and its sums may be wider than what functions take."""

    role: str = ""
    unfit: ClassVar[None] = None


@dataclass(frozen=True)
class PythonCall(Expr):
    """A call of a Python function.

    `drawn` tells calls of a function with side effects from each other: the number of the row and that of the place in the text, on which
    its value is taken to depend.  `image` is the code that kernels are made of; without one Python is called, for the reason `why`.
    `not_on_gpu` is why those of a GPU do not have it, where the plan is for one.
    """

    function: PythonFunction
    args: tuple[Expr, ...]
    type: DataType
    drawn: tuple[Expr, ...] = ()
    image: CodeImage | None = None
    why: str = field(default="", compare=False)
    not_on_gpu: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)


def python_call(
    function: PythonFunction,
    args: Sequence[Expr],
    span: Span | None = None,
    drawn: tuple[Expr, ...] = (),
) -> PythonCall:
    """Return the call of a function, its arguments cast to its types as those of other functions are; raises `TypeMismatch`."""
    if function.parameters is None:
        untyped = next((a for a in args if a.type == NULL), None)
        if untyped is not None:
            raise TypeMismatch(f"{function} takes no NULL without a type: cast it.", untyped.span)
        return PythonCall(function, tuple(args), function.result, drawn, span=span)
    given = taken_arguments(str(function), function.parameters, args, span)
    return PythonCall(function, given, function.result, drawn, span=span)


def taken_arguments(
    what: str, parameters: Sequence[DataType], args: Sequence[Expr], span: Span | None
) -> tuple[Expr, ...]:
    """Return arguments cast to the types of parameters, as far as SQL does so by itself; raises `TypeMismatch`."""
    types = literal_types(args)
    taken = len(args) == len(parameters) and all(
        _takes(a, t, p) for a, t, p in zip(args, types, parameters, strict=True)
    )
    if not taken:
        raise TypeMismatch(
            f"{what} does not take ({', '.join(map(str, types))}): cast the arguments to types that it takes.",
            span,
        )
    return tuple(coerce(a, p) for a, p in zip(args, parameters, strict=True))


def _takes(arg: Expr, given: DataType, parameter: DataType) -> bool:
    if is_text_literal(arg) or implicit(given, parameter):
        return True
    if isinstance(arg, Literal) and isinstance(arg.value, int) and parameter.is_integer:
        low, high = parameter.integer_range
        return low <= arg.value <= high
    return False


def has_python(expr: Expr) -> bool:
    """Whether an expression calls a Python function, which is called for no row that does not get to it."""
    return any(isinstance(part, PythonCall) for part in walk(expr))


def runs_in_python(expr: Expr) -> bool:
    """Whether an expression calls a Python function that is not compiled."""
    return any(isinstance(part, PythonCall) and part.image is None for part in walk(expr))


def reads_one_text(call: PythonCall) -> bool:
    """Whether Python may be called once for each different text of a column: the call reads that alone, and gives the same each time."""
    columns = columns_of(call)
    return (
        not call.drawn and len(columns) == 1 and all(c.type.kind is Kind.VARCHAR for c in columns)
    )


def keeps_order(exprs: Iterable[Expr]) -> bool:
    """Whether expressions call a function that may see in which order its rows come."""
    return any(isinstance(part, PythonCall) and part.drawn for e in exprs for part in walk(e))


def check_plain(function: PythonFunction) -> None:
    """Raise `Unsupported` for a function with side effects, since the rows of frames have no numbers."""
    if function.side_effects:
        raise Unsupported(
            f"{function.name} has side effects, so that it is called once for each row: that is not supported in frames, "
            "write it in the SELECT list of SQL."
        )


def in_turn(predicate: Expr) -> list[Expr]:
    """Return a condition in parts of which each is for the rows alone that fulfil those before: Python functions come last."""
    if not has_python(predicate):
        return [predicate]
    parts = list(conjuncts(predicate))
    plain = [part for part in parts if not has_python(part)]
    return [*([conjunction(plain)] if plain else []), *filter(has_python, parts)]


State = tuple[bool | int | float, ...]


@dataclass(frozen=True, eq=False)
class PythonAggregate:
    """An aggregate in Python, its types and functions; `scalar`: its state is a number and no tuple."""

    name: str
    parameters: tuple[DataType, ...]
    result: DataType
    initial: State
    scalar: bool
    step: PythonFunction
    merge: PythonFunction
    finish: PythonFunction

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def functions(self) -> tuple[PythonFunction, PythonFunction, PythonFunction]:
        return self.step, self.merge, self.finish

    @property
    def start(self) -> bool | float | State:
        """The state before the first row, as Python has it."""
        return self.initial[0] if self.scalar else self.initial


@dataclass(frozen=True)
class PythonFold(Expr):
    """The call of an aggregate: `args` are lists of the values of its arguments in each group, NULLs included.

    `images` are the code of step, merge and finish, once the plan is settled.
    """

    function: PythonAggregate
    args: tuple[Expr, ...]
    type: DataType
    images: tuple[CodeImage, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


def python_fold(
    aggregate: PythonAggregate,
    args: Sequence[Expr],
    span: Span | None = None,
    *,
    distinct: bool = False,
    filter: Expr | None = None,
    order: tuple[SortKey, ...] = (),
) -> PythonFold:
    """Return the call of an aggregate; raises `TypeMismatch`, and `Unsupported` for DISTINCT rows of several arguments."""
    given = taken_arguments(str(aggregate), aggregate.parameters, args, span)
    if distinct and len(given) > 1:
        raise Unsupported(
            f"DISTINCT is supported in Python aggregates of one argument, and {aggregate.name} has {len(given)}.",
            span,
        )
    lists = tuple(
        infer.aggregate("list", [a], distinct=distinct, filter=filter, order=order, span=span)
        for a in given
    )
    return PythonFold(aggregate, lists, aggregate.result, span=span)


def runs_apart(expr: Expr) -> bool:
    """Whether an expression calls what no kernel of a pipeline holds: an aggregate over lists, or a function that Python runs, but for one of a text.

    Of that a kernel looks values up, where the column has a dictionary.
    """
    calls = (part for part in walk(expr) if isinstance(part, PythonFold | PythonCall))
    return any(
        isinstance(call, PythonFold) or (call.image is None and not reads_one_text(call))
        for call in calls
    )
