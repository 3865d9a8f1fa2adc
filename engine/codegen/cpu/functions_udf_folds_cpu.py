"""Python aggregates in CPU kernels: a loop over the values of one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from ..udf.python_image import python_of
from .functions_udf_cpu import CPU, GIVEN, RESULTS, attempt, truth_result, whole_result
from .functions_udf_math_cpu import REPLACED

BLOCK = (
    1 << 16
)  # values of a group that make a state of their own, which merges with that of those before
_FIRST = {"whole": "np.int64({})", "real": "np.float64({})", "truth": "{}"}
_STATES = {
    "whole": "whole_state({})[0]",
    "real": "np.float64({})",
    "truth": "truth_state({}, 0, 0)[0]",
}


@njit
def whole_state(value):  # type: ignore[no-untyped-def]
    """A part of a state that began as a whole number, and stays one."""
    return whole_result(value, -(2**63), 2**63 - 1)


@njit
def truth_state(value, low, high):  # type: ignore[no-untyped-def]
    """A part of a state that began as a truth value."""
    return truth_result(value, low, high)


def python_fold(
    images: tuple[str, str, str],
    initial: Sequence[str],
    states: str,
    scalar: bool,
    parameters: str,
    result: str,
    low: int,
    high: int,
) -> Any:
    """Return a function of a range of values, of which those that count go into a state; it gives the result and whether one failed."""
    kinds, parts = parameters.split(), states.split()
    step, merge, finish = (python_of(image, CPU.checked, REPLACED) for image in images)
    settle, zero = RESULTS[result]
    first = [_FIRST[kind].format(v) for kind, v in zip(parts, initial, strict=True)]
    if scalar:
        start, kept = first[0], _STATES[parts[0]].format("made")
    else:
        start = f"({', '.join(first)},)"
        kept = f"({''.join(_STATES[k].format(f'made[{i}]') + ', ' for i, k in enumerate(parts))})"
    names = [f"a{i}" for i in range(len(kinds))]
    given = "".join(
        f"{GIVEN[kind]}({name}[row]), " for kind, name in zip(kinds, names, strict=True)
    )
    text = f"""def fold({", ".join(["first", "last", "counts", *names])}):
    total = {start}
    for block in range(first, last, {BLOCK}):
        state = {start}
        for row in range(block, min(block + {BLOCK}, last)):
            if counts[row]:
                made, raised = attempt(step, (state, {given}))
                if raised:
                    return zero, True
                state = {kept}
        if block == first:
            total = state
        else:
            made, raised = attempt(merge, (total, state))
            if raised:
                return zero, True
            total = {kept}
    value, raised = attempt(finish, (total,))
    if raised:
        return zero, True
    return settle(value, {low}, {high})
"""
    namespace = {
        "np": np,
        "attempt": attempt,
        "step": step,
        "merge": merge,
        "finish": finish,
        "settle": settle,
        "zero": zero,
        "whole_state": whole_state,
        "truth_state": truth_state,
    }
    exec(compile(text, "<python aggregate>", "exec"), namespace)
    return njit(namespace["fold"])
