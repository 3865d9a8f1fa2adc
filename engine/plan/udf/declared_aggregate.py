"""A Python aggregate of its parts: types, state, step, merge and finish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported, WrongArguments, check_name, shown
from ..types import BIGINT, BOOLEAN, DOUBLE
from .declaration import checked, type_of
from .python_aggregate import PythonAggregate
from .python_function import PythonFunction

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
