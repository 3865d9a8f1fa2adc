"""Python functions and aggregates as users declare them, and their types: SQL's names, Python's annotations, Arrow's types."""

from __future__ import annotations

import inspect
import types as python_types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from ... import errors as err
from .. import types as ty
from ..arrow.arrow_types import from_arrow
from ..coercion import parse_type
from .code_image import mutation
from .python_function import PythonAggregate, PythonFunction, Way

_PYTHON: Mapping[object, ty.DataType] = {
    bool: ty.BOOLEAN,
    int: ty.BIGINT,
    float: ty.DOUBLE,
    str: ty.VARCHAR,
    bytes: ty.BLOB,
    date: ty.DATE,
    time: ty.TIME,
    datetime: ty.TIMESTAMP,
    timedelta: ty.INTERVAL,
}
_WAYS: Mapping[str, Way] = {"native": "native", "arrow": "vectorized"}


def type_of(given: object, of_what: str) -> ty.DataType:
    """Return the type that a SQL name, a Python or Arrow type stands for; raises `TypeMismatch` or `UnknownName`."""
    if isinstance(given, ty.DataType):
        found = given
    elif isinstance(given, str):
        found = _named(given)
    elif given in _PYTHON:
        found = _PYTHON[given]
    else:
        found = _built(given, of_what)
    if found.kind in (ty.Kind.NULL, ty.Kind.OTHER):
        raise err.TypeMismatch(f"{of_what} has no values of the type {found}.")
    return found


def _named(name: str) -> ty.DataType:
    bare = name.strip()
    return ty.list_of(_named(bare[:-2])) if bare.endswith("[]") else parse_type(bare)


def _built(given: object, of_what: str) -> ty.DataType:
    origin, inner = typing.get_origin(given), typing.get_args(given)
    if origin in (typing.Union, python_types.UnionType):
        known = [part for part in inner if part is not type(None)]
        if len(known) == 1:
            return type_of(known[0], of_what)
    if origin is list and len(inner) == 1:
        return ty.list_of(type_of(inner[0], of_what))
    if origin is dict and len(inner) == 2:
        return ty.map_of(*(type_of(part, of_what) for part in inner))
    module = type(given).__module__.partition(".")[0]
    if module == "pyarrow":
        return from_arrow(typing.cast("Any", given))
    if module in ("duckdb", "_duckdb"):  # a type as DuckDB's package has it
        return _named(str(given))
    if getattr(given, "__module__", "") == "numpy":
        name = getattr(given, "__name__", "")
        known_names = {"bool": "boolean", "bool_": "boolean", "str_": "varchar"}
        return parse_type(known_names.get(name, _NUMPY.get(name, name)))
    why = ": give its digits, as 'DECIMAL(18, 2)'" if given is Decimal else ""
    raise err.TypeMismatch(
        f"{of_what} has the type {err.shown(given)}, which stands for no SQL type{why or ': give the name of one'}."
    )


_NUMPY = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "utinyint",
    "uint16": "usmallint",
    "uint32": "uinteger",
    "uint64": "ubigint",
    "float32": "float",
    "float64": "double",
}


def declared(
    name: str,
    python: Callable[..., object],
    parameters: Sequence[object] | None,
    result: object,
    way: Way,
    traits: Mapping[str, bool],
) -> PythonFunction:
    """Return a function with the types that are given, or else those of its annotations; raises `TypeMismatch`."""
    err.check_name(name, "function")
    if not callable(python):
        raise err.WrongArguments(f"A function is something to call, not {err.shown(python)}.")
    own = _signature(python)
    hints = _hints(python)
    if result is None:
        result = hints.get("return")
        if result is None:
            raise err.TypeMismatch(
                f"{name} does not say which type it returns: give it as returns= or return_type=, or annotate it."
            )
    given = _parameters(name, parameters, own, hints)
    types = None if given is None else tuple(type_of(p, f"A parameter of {name}") for p in given)
    if types is not None and own is not None:
        _check_count(name, own, len(types))
    return PythonFunction(name, python, types, type_of(result, name), way, **traits)


def _signature(python: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(python)
    except (TypeError, ValueError):  # of a function in C
        return None


def _hints(python: Callable[..., object]) -> dict[str, object]:
    try:
        return typing.get_type_hints(python)
    except Exception:  # names that stand for nothing, and whatever else an annotation may do
        return dict(getattr(python, "__annotations__", {}))


def _parameters(
    name: str,
    given: Sequence[object] | None,
    own: inspect.Signature | None,
    hints: Mapping[str, object],
) -> Sequence[object] | None:
    if given is not None:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise err.WrongArguments(
                f"The parameters of {name} are a list of types, not {err.shown(given)}."
            )
        return given
    if own is None:
        raise err.TypeMismatch(
            f"{name} has no signature in Python: give the types of its parameters."
        )
    found = list(own.parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return None
    untyped = next((p.name for p in found if p.name not in hints), None)
    if untyped is not None:
        raise err.TypeMismatch(
            f'The parameter "{untyped}" of {name} has no type: give the types of all, or annotate it.'
        )
    return [hints[p.name] for p in found]


def _check_count(name: str, own: inspect.Signature, count: int) -> None:
    try:
        own.bind(*range(count))
    except TypeError as error:
        raise err.TypeMismatch(f"{name} is given {count} types of parameters: {error}.") from None


def _word(given: object) -> str:
    """The word of an option: a text, or a member of DuckDB's enumerations."""
    return str(getattr(given, "name", given)).rpartition(".")[2].lower()


def options(
    null_handling: object, exception_handling: object, side_effects: object, kind: object
) -> tuple[Way, dict[str, bool]]:
    """Read the options of `create_function` as DuckDB has them; raises `WrongArguments`."""
    chosen = {}
    for name, given, words in (
        ("null_handling", null_handling, ("default", "special")),
        ("exception_handling", exception_handling, ("default", "return_null")),
        ("type", kind, ("native", "arrow")),
    ):
        word = words[0] if given is None else _word(given)
        if word not in words:
            raise err.WrongArguments(
                f'{name}= is "{words[0]}" or "{words[1]}", not {err.shown(given)}.'
            )
        chosen[name] = word
    traits = {
        "takes_nulls": chosen["null_handling"] == "special",
        "null_on_error": chosen["exception_handling"] == "return_null",
        "side_effects": bool(side_effects),
    }
    return _WAYS[chosen["type"]], traits


def checked(function: PythonFunction) -> PythonFunction:
    """Return a function that its way can call; raises `Unsupported` with the remedy, `InvalidQuery` for one that changes what is not its own."""
    changed = mutation(function.python)
    if changed is not None and not (function.side_effects and function.way != "compiled"):
        raise err.InvalidQuery(
            f'{function.name} changes "{changed}", which lives longer than a call, and nobody knows how often it is called: '
            "declare side_effects=True, with which it is called once for each row, by Python."
        )
    if function.way == "compiled":
        if function.side_effects or function.takes_nulls:
            what = "side effects" if function.side_effects else 'null_handling="special"'
            raise err.Unsupported(
                f"{function.name} has {what}, which a compiled function has not: write vectorized=True."
            )
        if function.unfit is not None:
            raise err.Unsupported(f"{function.name} {function.unfit}")
    if function.way == "vectorized" and function.parameters == ():
        raise err.Unsupported(
            f"{function.name} has no parameters, so that a batch would not tell how many values to give: add one."
        )
    return function


_STATES = {bool: ty.BOOLEAN, int: ty.BIGINT, float: ty.DOUBLE}


def declared_aggregate(
    name: str,
    parameters: Sequence[object],
    result: object,
    initial: Any,
    functions: tuple[Callable[..., object], Callable[..., object], Callable[..., object]],
) -> PythonAggregate:
    """Return an aggregate; raises `TypeMismatch`, `WrongArguments` and `Unsupported` with the remedy."""
    err.check_name(name, "function")
    if not parameters:
        raise err.WrongArguments(f"{name} has no parameters: give the types of its arguments.")
    state = initial if isinstance(initial, tuple) else (initial,)
    unfit = next((v for v in state if type(v) not in _STATES), None)
    if unfit is not None or not state:
        raise err.Unsupported(
            f"The state of {name} is a number or a tuple of numbers and truth values, not {err.shown(initial)}."
        )
    types = tuple(type_of(p, f"A parameter of {name}") for p in parameters)
    returned = type_of(result, name)
    made = []
    for function in functions:
        if not callable(function):
            raise err.WrongArguments(
                f"step, merge and finish are functions, not {err.shown(function)}."
            )
        made.append(checked(PythonFunction(name, function, types, returned, "compiled")))
    step, merge, finish = made
    scalar = not isinstance(initial, tuple)
    return PythonAggregate(name, types, returned, state, scalar, step, merge, finish)
