"""Calls of compiled Python functions as terms: where one raises, or gives what its type does not hold, the kernel is in doubt.

Then the operators run: they call Python itself for such rows, which says what went wrong, or has a value that 64 bits had not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...plan.expr import Call, Case, Expr
from ...plan.functions import SCALAR
from ...plan.types import BOOLEAN
from ...plan.udf.python_function import PythonCall, has_python
from ..expressions.arithmetic import doubt
from ..loop import Function, Machine, Number, Term, true_and
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import NotFusable, Value, truth
from .function_text import bounds, device_function, machine_of_kind, register_kind

Translate = Callable[[Expr, ProgramBuilder], Value]


def python_value(expr: Expr, kernel: ProgramBuilder, translate: Translate) -> Value | None:
    """Return the value of a Python function's call, None of another expression; raises `NotFusable` where no kernel holds a call."""
    _check_reached(expr)
    return _called(expr, kernel, translate) if isinstance(expr, PythonCall) else None


def _called(call: PythonCall, kernel: ProgramBuilder, translate: Translate) -> Value:
    if call.image is None:
        raise NotFusable(f"{call.function.name} is called by Python: {call.why}")
    args = [translate(arg, kernel) for arg in call.args]
    made = partial(device_function, call, intervals=[a.interval for a in args])
    name = kernel.python(call.function.name, made)
    valid = true_and([a.valid for a in args if a.valid is not None])
    reached: Term = Number(True, Machine.BOOL)
    if call.image.has_loops:  # which may not end for rows that no one asked about
        reached = true_and([t for t in (kernel.keep, valid) if t is not None]) or reached
    machine = machine_of_kind(register_kind(call.type))
    given = (reached, *(a.term for a in args))
    found = kernel.name(Function(name, given, machine), f"{call.function.name}_found")
    doubt(Function("failed_of", (found,), Machine.BOOL), [valid], kernel)
    term = Function("value_of", (found,), machine)
    if call.type == BOOLEAN:
        return truth(term, valid)
    whole = register_kind(call.type) == "whole"
    return Value(term, valid, IntegerRange(*bounds(call.type)) if whole else None)


def _check_reached(expr: Expr) -> None:
    """Raise `NotFusable` for a Python function that only some rows get to, where a kernel would call it for all."""
    late: Sequence[Expr] = ()
    match expr:
        case Case():
            late = expr.children
        case Call(function=function, args=args) if SCALAR[function].nulls == "own":
            late = args[1:]
    if any(map(has_python, late)):
        raise NotFusable("a Python function is called for the rows alone that get to it")
