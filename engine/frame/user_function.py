"""`@fuseline.udf(...)`: a Python function as one of SQL's, in frames by itself and in SQL under a name that a connection gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any

from ..errors import InvalidQuery, WrongArguments, shown
from ..fence import fenced
from ..plan.expr import Expr
from ..plan.udf.declaration import checked, declared, declared_aggregate
from ..plan.udf.python_function import (
    PythonAggregate,
    PythonFunction,
    Way,
    check_plain,
    python_call,
    python_fold,
)
from .expressions.expression import Expression, as_column, as_expression
from .expressions.unbound import Operand, Resolve, call_name


@fenced
class UserFunction:
    """A Python function that queries call: over expressions it is one, over plain values it is what it was before."""

    def __init__(self, function: PythonFunction) -> None:
        update_wrapper(self, function.python)
        self.python_function = function

    def __call__(self, *args: Any) -> Any:
        """Return an expression for arguments of which one is; a string beside it names a column if it is the first."""
        if not any(isinstance(a, Expression) for a in args):
            return self.python_function.python(*args)
        return expression(self.python_function, args)

    def over(self, *columns: Operand) -> Expression:
        """Return the call over columns by name: `f.over("x", "y")` is `f(col("x"), col("y"))`."""
        return expression(self.python_function, [as_column(c) for c in columns])

    def __repr__(self) -> str:
        return f"<fuseline.udf {self.python_function} -> {self.python_function.result}>"


def expression(function: PythonFunction, args: Sequence[Operand]) -> Expression:
    """Return the call of a function over expressions and constants."""
    check_plain(function)
    operands = [as_expression(a) for a in args]

    def bind(resolve: Resolve) -> Expr:
        return python_call(function, [o.bind(resolve) for o in operands])

    return Expression(bind, call_name(function.name, [o.name for o in operands]))


@fenced
def udf(
    *parameters: object,
    returns: object = None,
    vectorized: bool = False,
    null_handling: object = "default",
    side_effects: bool = False,
    name: str | None = None,
) -> Any:
    """Make a Python function one of SQL's: `@udf("BIGINT", returns="DOUBLE")`, or `@udf` where annotations tell the types.

    It is compiled into the kernels of queries: numbers and truth values as they are, dates as days and timestamps as microseconds since
    1970.  With `vectorized` it gets Arrow arrays instead, of any type, a batch of rows at a time, and returns one.  A NULL argument makes
    NULL, unless null_handling="special" gives it to a vectorized function.
    """
    if len(parameters) == 1 and callable(parameters[0]) and not isinstance(parameters[0], type):
        return _made(parameters[0], None, returns, vectorized, null_handling, side_effects, name)
    types = list(parameters) if parameters else None
    return partial(
        _made,
        parameters=types,
        returns=returns,
        vectorized=vectorized,
        null_handling=null_handling,
        side_effects=side_effects,
        name=name,
    )


@fenced
def _made(
    function: Callable[..., object],
    parameters: Sequence[object] | None,
    returns: object,
    vectorized: bool,
    null_handling: object,
    side_effects: bool,
    name: str | None,
) -> UserFunction:
    if not callable(function):
        raise WrongArguments(f"@udf stands before a function, not {shown(function)}.")
    known = name or str(getattr(function, "__name__", ""))
    if known == "<lambda>":
        raise InvalidQuery("A lambda has no name: give it as udf(..., name=...).")
    traits = {"takes_nulls": null_handling == "special", "side_effects": side_effects}
    if null_handling not in ("default", "special"):
        raise WrongArguments(
            f'null_handling= is "default" or "special", not {shown(null_handling)}.'
        )
    way: Way = "vectorized" if vectorized else "compiled"
    return UserFunction(checked(declared(known, function, parameters, returns, way, traits)))


@fenced
class UserAggregate:
    """A Python aggregate that queries call; over expressions it is one."""

    def __init__(self, aggregate: PythonAggregate) -> None:
        self.python_aggregate = aggregate

    def __call__(self, *args: Operand) -> Expression:
        """Return the aggregate of expressions, or of columns by name: it belongs into agg(...)."""
        operands = [as_column(a) for a in args]

        def bind(resolve: Resolve) -> Expr:
            return python_fold(self.python_aggregate, [o.bind(resolve) for o in operands])

        name = call_name(self.python_aggregate.name, [o.name for o in operands])
        return Expression(bind, name)

    def __repr__(self) -> str:
        return f"<fuseline.udaf {self.python_aggregate} -> {self.python_aggregate.result}>"


@fenced
def udaf(
    *parameters: object,
    returns: object,
    initial: object,
    step: Callable[..., object],
    merge: Callable[..., object],
    finish: Callable[..., object] | None = None,
    name: str = "",
) -> UserAggregate:
    """Make an aggregate of Python functions, which are compiled: `finish` of the state that `step(state, value, ...)` makes row by row.

    The state begins as `initial`, a number or a tuple of numbers, and keeps its types; `merge(a, b)` joins the states of two parts of a group.
    Rows with a NULL argument are left out; of none the result is that of `initial`.  Without `finish` it is the state.
    """
    known = name or str(getattr(step, "__name__", "")).removesuffix("_step")
    functions = (step, merge, finish or _itself)
    return UserAggregate(declared_aggregate(known, parameters, returns, initial, functions))


def _itself(state):  # type: ignore[no-untyped-def]
    return state
