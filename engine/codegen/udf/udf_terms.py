"""Calls of Python functions as terms: of their bytecode, or of a function that Numba compiles.

Where one raises, or gives what its type does not hold, the kernel is in doubt.  Then the operators run: they call Python itself for such rows, which says what went wrong, or has a value that 64 bits had not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...plan.expr import Call, Case, Expr
from ...plan.functions import SCALAR
from ...plan.types import BOOLEAN
from ...plan.udf.python_function import PythonCall, has_python, reads_one_text
from ..expressions.arithmetic import checked, doubt
from ..loop import Function, Machine, Number, Term, true_and
from ..program_builder import ProgramBuilder
from ..ranges import IntegerRange
from ..typed_values import NotFusable, Value, truth
from .bytecode_terms import MOST_INSTRUCTIONS, FunctionWalk, Mixed, function_of
from .function_text import bounds, device_function, machine_of_kind, register_kind
from .python_operators import NoTerm, as_real, as_whole, is_real, value_of_constant

Translate = Callable[[Expr, ProgramBuilder], Value]
LookUp = Callable[[Expr, ProgramBuilder], "Value | None"]  # in a table of a dictionary's values


def _whole(given: object) -> Value:
    return as_whole(value_of_constant(given))


def _real(given: object) -> Value:
    return given.real if isinstance(given, Mixed) else as_real(value_of_constant(given))


def _truth(given: object) -> Value:
    value = value_of_constant(given)
    if value.term.type is not Machine.BOOL:
        raise NoTerm
    return value


# What a result becomes by the type that is declared; a FLOAT is left to the compiler of functions
_RESULTS: Mapping[str, Callable[[object], Value]] = {
    "whole": _whole,
    "real": _real,
    "truth": _truth,
}


def python_value(
    expr: Expr, kernel: ProgramBuilder, translate: Translate, look_up: LookUp
) -> Value | None:
    """Return the value of a Python function's call, None of another expression; raises `NotFusable` where no kernel holds a call."""
    _check_reached(expr)
    return _called(expr, kernel, translate, look_up) if isinstance(expr, PythonCall) else None


def _called(
    call: PythonCall, kernel: ProgramBuilder, translate: Translate, look_up: LookUp
) -> Value:
    if call.image is None:
        found = look_up(call, kernel) if reads_one_text(call) else None
        if found is None:
            raise NotFusable(f"{call.function.name} is called by Python: {call.why}")
        return found
    args = [translate(arg, kernel) for arg in call.args]
    return _as_terms(call, args, kernel) or _compiled(call, args, kernel)


def _as_terms(call: PythonCall, args: Sequence[Value], kernel: ProgramBuilder) -> Value | None:
    """Return the value of a call as an expression of SQL would have it, None where the function has no such terms."""
    assert call.image is not None
    settle = _RESULTS.get(register_kind(call.type))
    if settle is None or call.image.has_loops or not all(map(_has_register, args)):
        return None
    block = kernel.blocks[-1]
    statements, doubts = len(block.statements), len(kernel.doubts)
    parameters = len(kernel.parameters)
    valid = [a.valid for a in args if a.valid is not None]
    bare = [as_real(a) if is_real(a) else Value(a.term, None, a.interval) for a in args]
    given = tuple(replace(a, term=kernel.name(a.term, "argument")) for a in bare)
    try:
        walk = FunctionWalk(kernel, tuple(valid), [MOST_INSTRUCTIONS])
        found = settle(walk.value(function_of(call.image.text), given, settle))
    except NoTerm:
        del block.statements[statements:], kernel.doubts[doubts:], kernel.parameters[parameters:]
        return None
    term = kernel.name(found.term, call.function.name)
    if call.type == BOOLEAN:
        return truth(term, true_and(valid))
    return checked(Value(term, true_and(valid), found.interval), call.type, kernel)


def _has_register(value: Value) -> bool:
    whole = value.term.type in (Machine.I32, Machine.I64)
    return not whole or (value.interval is not None and value.interval.fits_i64)


def _compiled(call: PythonCall, args: Sequence[Value], kernel: ProgramBuilder) -> Value:
    """Return the value of a call of the function that Numba compiles: with loops, say, for which there are no terms."""
    assert call.image is not None
    if not all(map(_has_register, args)):
        raise NotFusable(f"an argument of {call.function.name} may leave 64 bits")
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
        case Call(function=function, args=args) if SCALAR[function].nulls in ("all", "own"):
            late = args[1:]
    if any(map(has_python, late)):
        raise NotFusable("a Python function is called for the rows alone that get to it")
