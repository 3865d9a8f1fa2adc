"""SQL's functions, and a connection's Python functions, under their names: `fn.upper("name")`, `fn.median("price")`.

The Python functions that names stand for while a frame's expressions are bound: those of its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from ..errors import Unsupported
from ..fence import fenced
from ..plan import derived
from ..plan.expr import Expr
from ..plan.functions import aggregate_name, constants, scalar_name, window_name
from ..plan.udf.python_function import (
    PythonAggregate,
    PythonFunction,
    check_plain,
    python_call,
    python_fold,
)
from .expressions.expression import Expression, as_column, as_expression, call, plain
from .expressions.unbound import Operand
from .expressions.window_binding import window_function
from .functions import aggregate


@fenced
class _Functions:
    """`fn.upper("name")`: functions under their names; arguments are expressions and constants.

    A string names a column in the first argument that is not a constant by its nature, as the unit of date_trunc, the separator of
    concat_ws and the base of log are; in the others it is a text.  `lit("...")` is a text anywhere.  In aggregates every string
    names a column, and `distinct=True` is DISTINCT.  Window functions, as `fn.row_number()`, take `.over(...)`.
    """

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("__"):
            raise AttributeError(name)
        if scalar_name(name) is None:
            if aggregate_name(name) is not None:
                return partial(aggregate, name)
            if window_name(name) is not None:
                return partial(window, name)
        return partial(scalar, name)


@fenced
def scalar(function: str, *args: Operand) -> Expression:
    """Return a scalar function, the first column argument of which a string may name."""
    fixed = constants(derived.signature(function))
    place = min((i for i in range(len(args)) if i not in fixed), default=0)
    operands = [as_column(a) if i == place else a for i, a in enumerate(args)]
    return call(function, *operands, how=_bound)


def _bound(function: str, args: Sequence[Expr]) -> Expr:
    python = named_function(function)
    if python is None:
        return derived.function(function, args)
    if isinstance(python, PythonAggregate):
        return python_fold(python, args)
    check_plain(python)
    return python_call(python, args)


@fenced
def window(function: str, *args: Operand, ignore_nulls: bool = False) -> Expression:
    """Return a window function that is no aggregate; the first argument may name a column."""
    known = window_name(function)
    assert known is not None
    if known == "fill":  # which is made of lag and lead by the key of its window
        raise Unsupported(
            "fill() is not supported in dataframe calls: ask SQL for fill(x) OVER (ORDER BY key)."
        )
    operands = [
        as_column(a) if i == 0 and known != "ntile" else as_expression(a)
        for i, a in enumerate(args)
    ]
    return plain(window_function(known, operands, ignore_nulls))


fn = _Functions()


Named = PythonFunction | PythonAggregate

_NONE: Mapping[str, Named] = {}
_named: ContextVar[Mapping[str, Named]] = ContextVar("functions", default=_NONE)


@contextmanager
def with_functions(functions: Mapping[str, Named]) -> Iterator[None]:
    """Have names stand for these functions inside, by names in lower case."""
    token = _named.set(functions)
    try:
        yield
    finally:
        _named.reset(token)


def named_function(name: str) -> Named | None:
    """Return the function of a name, in any case."""
    return _named.get().get(name.lower())
