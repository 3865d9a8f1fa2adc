"""Python functions in CPU kernels: made of their images, with Python's arithmetic, and called so that nothing they raise leaves the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import cgutils, types as numba_types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.errors import TypingError
from numba.core.untyped_passes import InlineClosureLikes

from ...records import dataclass
from ..udf.python_image import Compile, python_of
from .functions_udf_math_cpu import REPLACED
from .functions_udf_noted_cpu import intrinsic, overload
from .functions_udf_pass_cpu import CheckedArithmetic, ToldArithmetic

types: Any = numba_types  # of which Numba's stubs know few
SINGLE_MAX = 3.4028234663852886e38


def _compiler(step: type) -> type[CompilerBase]:
    """Return Numba's compiler with a step more."""

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            made = DefaultPassBuilder.define_nopython_pipeline(self.state)
            made.add_pass_after(step, InlineClosureLikes)
            made.finalize()
            return [made]

    return Compiler


@intrinsic
def attempt(context, function, arguments):  # type: ignore[no-untyped-def]
    """The value of a function for a tuple of arguments, and whether it raised: then the value is zero."""
    signature = function.get_call_type(context, tuple(arguments), {})
    given = signature.return_type
    last = given[0] if isinstance(given, types.BaseTuple) and len(given) else given
    if isinstance(last, types.Optional | types.NoneType):
        raise TypingError("It may return None.")
    result = types.Tuple((signature.return_type, types.boolean))

    def generate(context: Any, builder: Any, own: Any, given: Any) -> Any:
        values = cgutils.unpack_tuple(builder, given[1])
        found = own.args[0].dispatcher.overloads[signature.args]
        converted = [
            context.cast(builder, value, source, target)
            for value, source, target in zip(values, own.args[1], signature.args, strict=True)
        ]
        context.active_code_library.add_linking_library(found.library)
        status, value = context.call_internal_no_propagate(
            builder, found.fndesc, signature, converted
        )
        return context.make_tuple(builder, result, (value, status.is_error))

    return result(function, arguments), generate


def whole_result(value: Any, low: Any, high: Any) -> Any:
    """A result as a whole number, and whether its type does not hold it."""


def real_result(value: Any, low: Any, high: Any) -> Any:
    """A result as a double."""


def single_result(value: Any, low: Any, high: Any) -> Any:
    """A result as a float of 32 bits."""


def truth_result(value: Any, low: Any, high: Any) -> Any:
    """A result as a truth value."""


@overload(whole_result)
def _whole_result(value, low, high):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Boolean):
        return lambda value, low, high: (np.int64(value), False)
    if isinstance(value, types.Integer) and (value.signed or value.bitwidth < 64):
        return lambda value, low, high: (np.int64(value), (value < low) | (value > high))
    return None


@overload(real_result)
def _real_result(value, low, high):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Float | types.Integer | types.Boolean):
        return lambda value, low, high: (np.float64(value), False)
    return None


@overload(single_result)
def _single_result(value, low, high):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Float | types.Integer | types.Boolean):

        def single(value, low, high):  # type: ignore[no-untyped-def]
            wide = np.float64(value)
            size = -wide if wide < 0.0 else wide
            return np.float32(wide), (size > SINGLE_MAX) & (size != np.inf)

        return single
    return None


@overload(truth_result)
def _truth_result(value, low, high):  # type: ignore[no-untyped-def]
    if isinstance(value, types.Boolean):
        return lambda value, low, high: (value, False)
    return None


RESULTS = {
    "whole": (whole_result, np.int64(0)),
    "real": (real_result, np.float64(0)),
    "single": (single_result, np.float32(0)),
    "truth": (truth_result, False),
}
GIVEN = {"whole": "np.int64", "real": "np.float64", "single": "np.float64", "truth": "bool"}


def _argument(name: str, kind: str) -> str:
    """An argument as Python has it, of which the compiler knows between which numbers it lies: it does so if it is not NULL."""
    bare, *limits = kind.split(":")
    if not limits:
        return f"{GIVEN[bare]}({name}), "
    low, high = (f"np.int32({limit})" for limit in limits)
    return f"np.int64(min(max(np.int32({name}), {low}), {high})), "


@dataclass(frozen=True, slots=True)
class Compilers:
    """How a target compiles functions: with operators that raise, with such as tell, and as they are."""

    checked: Compile
    told: Compile
    plain: Compile


CPU = Compilers(
    # Operators that raise where Python's integers would go on, and where Python would raise
    njit(error_model="python", pipeline_class=_compiler(CheckedArithmetic)),
    # For a function without loops, which gives its value and whether it failed
    njit(error_model="python", pipeline_class=_compiler(ToldArithmetic)),
    njit,
)


def python_function(
    image: str,
    parameters: str,
    result: str,
    low: int,
    high: int,
    has_loops: bool,
    target: Compilers = CPU,
) -> Any:
    """Return a function of whether to call the one of an image, and of its arguments; it gives a value and whether it failed."""
    kinds = parameters.split()
    names = [f"a{i}" for i in range(len(kinds))]
    given = "".join(map(_argument, names, kinds))
    settle, zero = RESULTS[result]
    text = f"""def call({", ".join(["reached", *names])}):
    if not reached:
        return zero, False
    found, raised = attempt(inner, ({given}))
    value, bad = {"(found, False)" if has_loops else "found"}
    result, beyond = settle(value, {low}, {high})
    return result, raised | bad | beyond
"""
    inner = python_of(image, target.checked, REPLACED, target.checked if has_loops else target.told)
    namespace = {"np": np, "attempt": attempt, "inner": inner, "settle": settle, "zero": zero}
    exec(compile(text, "<python function>", "exec"), namespace)
    return target.plain(namespace["call"])


@njit(inline="always")
def value_of(found):  # type: ignore[no-untyped-def]
    return found[0]


@njit(inline="always")
def failed_of(found):  # type: ignore[no-untyped-def]
    return found[1]
