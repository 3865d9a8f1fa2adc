"""error(text): what a query says of a row that must not be."""

from __future__ import annotations

from .....errors import ExecutionError
from .....plan.expr import Call
from ..vectors import Kernel, Vector, null_constant
from .each_value import python_value, python_values


def _error(call: Call, args: tuple[Vector, ...]) -> Vector:
    (text,) = args
    values = [python_value(text)] if text.is_constant else python_values(text)
    for value in values:
        if value is not None:
            raise ExecutionError(str(value))
    return null_constant(call.type)


KERNELS: dict[str, Kernel] = {"error": _error}
