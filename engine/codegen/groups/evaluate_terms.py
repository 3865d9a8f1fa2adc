"""Terms over arrays: what accumulators come to in each group, computed by NumPy where groups are too few for a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..loop import Apply, Convert, Function, Name, Number, Select, Term
from .accumulate import Folded


def finished(folded: Folded, arrays: Sequence[Any]) -> tuple[Any, Any]:
    """Return the values of a call, given its accumulators, and where they are not NULL, None for everywhere."""
    given = dict(zip(map(str, folded.accumulators), arrays, strict=True))
    return evaluate(folded.term, given), arrays[-1] >= folded.least if folded.least else None


def evaluate(term: Term, given: Mapping[str, Any]) -> Any:
    """Return what a term over variables of these arrays is; integers of any size are Python's."""
    if isinstance(term, Name):
        return given[term.text]
    if isinstance(term, Number):
        return term.value
    operands = [evaluate(part, given) for part in term.parts]
    match term:
        case Convert(_, machine):
            return operands[0].astype(machine.value)
        case Select():
            return np.where(*operands)
        case Apply(name) | Function(name):
            return FUNCTIONS[name](*operands)
    raise AssertionError(term)


def whole(low: Any, high: Any) -> Any:
    """Join the parts of exact sums."""
    return low.astype(object) + high.astype(object) * (1 << 32)


def _mean(low: Any, *others: Any) -> Any:
    """The exact sum divided once, in 80 bits where the platform has them, as DuckDB does."""
    *high, count, unit = others
    count = np.maximum(count, 1)
    if low.dtype.kind == "f":
        return low / count
    total = low.astype(np.longdouble)
    for part in high:
        total += part.astype(np.longdouble) * np.longdouble(1 << 32)
    return (total / (count.astype(np.longdouble) * np.longdouble(unit))).astype(np.float64)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "^": np.bitwise_xor,
    "<": np.less,
    ">": np.greater,
    "!=": np.not_equal,
    "double_of_bits": lambda bits: bits.view(np.float64),
    "mean": _mean,
    "sqrt": np.sqrt,
    "whole": whole,
}
