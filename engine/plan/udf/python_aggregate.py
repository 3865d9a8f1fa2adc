"""An aggregate in Python: a state, the step that a row makes of it, how states of parts merge, and what the result is.

A call is an expression over lists of its arguments' values, which plans gather for each group; a compiled loop goes over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...errors import Span, Unsupported, WrongArguments, check_name, shown
from .. import infer
from ..expr import Expr, SortKey
from ..node import walk
from ..types import BIGINT, BOOLEAN, DOUBLE, DataType
from .code_image import CodeImage
from .declaration import checked, type_of
from .python_function import PythonCall, PythonFunction, reads_one_text, taken_arguments

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

    CHILDREN: ClassVar = ("args",)
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


_TYPES = {bool: BOOLEAN, int: BIGINT, float: DOUBLE}


def declared_aggregate(
    name: str,
    parameters: Sequence[object],
    result: object,
    initial: Any,
    functions: tuple[Callable[..., object], Callable[..., object], Callable[..., object]],
) -> PythonAggregate:
    """Return an aggregate; raises `TypeMismatch`, `WrongArguments` and `Unsupported` with the remedy."""
    check_name(name, "function")
    if not parameters:
        raise WrongArguments(f"{name} has no parameters: give the types of its arguments.")
    state = initial if isinstance(initial, tuple) else (initial,)
    unfit = next((v for v in state if type(v) not in _TYPES), None)
    if unfit is not None or not state:
        raise Unsupported(
            f"The state of {name} is a number or a tuple of numbers and truth values, not {shown(initial)}."
        )
    types = tuple(type_of(p, f"A parameter of {name}") for p in parameters)
    returned = type_of(result, name)
    made = []
    for function in functions:
        if not callable(function):
            raise WrongArguments(f"step, merge and finish are functions, not {shown(function)}.")
        made.append(checked(PythonFunction(name, function, types, returned, "compiled")))
    step, merge, finish = made
    scalar = not isinstance(initial, tuple)
    return PythonAggregate(name, types, returned, state, scalar, step, merge, finish)
