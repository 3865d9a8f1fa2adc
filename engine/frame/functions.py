"""Functions for dataframe calls: `sum_("b")`, `when(...).then(...).otherwise(...)`, `coalesce("a", 0)`.

An `Expression` knows no table yet; a `Frame` binds it to its columns, through the same type rules as SQL.  `fn` has
SQL's functions, and a connection's Python functions, under their names; `udf` makes a Python function one of SQL's.  `expressions` has what
an expression can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from typing import Any

from ..errors import InvalidQuery, Unsupported, WrongArguments, shown
from ..fence import fenced
from ..plan import derived, infer
from ..plan.expr import Expr
from ..plan.functions import aggregate_name, constants, scalar_name, window_name
from ..plan.types import BOOLEAN
from ..plan.udf.declaration import checked, declared, declared_aggregate
from ..plan.udf.python_function import (
    PythonAggregate,
    PythonFunction,
    Way,
    check_plain,
    python_call,
    python_fold,
)
from ..records import dataclass
from .expressions.expression import (
    Expression,
    as_column,
    as_expression,
    call,
    col as col,
    lit as lit,
    plain,
)
from .expressions.operator_methods import aggregated
from .expressions.unbound import Operand, Resolve, call_name
from .expressions.window_binding import window_function


@fenced
def aggregate(function: str, *args: Operand, distinct: bool = False) -> Expression:
    """Return an aggregate function; strings name columns, but for constants such as the separator of string_agg."""
    return plain(aggregated(function, args, distinct))


@fenced
def sum_(value: Operand) -> Expression:
    """SUM: exact for integers and decimals, `OutOfRange` beyond 38 digits."""
    return aggregate("sum", value)


@fenced
def avg(value: Operand) -> Expression:
    return aggregate("avg", value)


@fenced
def min_(value: Operand) -> Expression:
    return aggregate("min", value)


@fenced
def max_(value: Operand) -> Expression:
    return aggregate("max", value)


@fenced
def count(value: Operand = None, distinct: bool = False) -> Expression:
    """COUNT of the values that are not NULL, or without an argument of all rows."""
    if value is None:
        return aggregate("count_star").alias("count_star()")
    return aggregate("count", value, distinct=distinct)


@fenced
def coalesce(*values: Operand) -> Expression:
    """The first of the values that is not NULL; as the first of them a string names a column, then it is a constant."""
    return call("coalesce", *(as_column(v) if i == 0 else v for i, v in enumerate(values)))


@fenced
@dataclass(frozen=True, eq=False)
class When(Expression):
    """CASE under construction: further `when(...)` add branches; without `otherwise` the rest is NULL."""

    branches: tuple[tuple[Expression, Expression], ...] = ()

    def when(self, condition: str | Expression) -> Then:
        return Then(self.branches, as_column(condition))

    def otherwise(self, value: Operand) -> Expression:
        return _case(self.branches, as_expression(value))


@fenced
@dataclass(frozen=True)
class Then:
    """A condition that waits for its value."""

    branches: tuple[tuple[Expression, Expression], ...]
    condition: Expression

    def then(self, value: Operand) -> When:
        branches = (*self.branches, (self.condition, as_expression(value)))
        return When(_case(branches, lit(None)).bind, "case", branches=branches)


@fenced
def when(condition: str | Expression) -> Then:
    """Begin a CASE: `when(c).then(x).when(d).then(y).otherwise(z)`; a string as a condition names a column."""
    return Then((), as_column(condition))


def _case(branches: Sequence[tuple[Expression, Expression]], default: Expression) -> Expression:
    def bind(resolve: Resolve) -> Expr:
        return infer.case(
            [infer.coerce(c.bind(resolve), BOOLEAN) for c, _ in branches],
            [v.bind(resolve) for _, v in branches],
            default.bind(resolve),
        )

    return Expression(bind, "case")


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
