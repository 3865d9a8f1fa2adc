"""Numba's decorators, with a note of what they were put before: CUDA kernels have the same functions (`functions_udf_cuda`)."""

from __future__ import annotations

from collections.abc import Callable

from numba import extending
from numba.core.extending import _Intrinsic

Define = Callable[..., object]

OVERLOADS: list[tuple[Define, Define]] = []  # a function and what chooses its code by types
INTRINSICS: list[_Intrinsic] = []


def overload(function: Define) -> Callable[[Define], Define]:
    """Have a function chosen by the types of its arguments."""

    def register(choose: Define) -> Define:
        OVERLOADS.append((function, choose))
        made: Define = extending.overload(function)(choose)
        return made

    return register


def intrinsic(define: Define) -> _Intrinsic:
    """Have a function written as LLVM's instructions, by what both targets' compilers have alike."""
    made = extending.intrinsic(define)
    INTRINSICS.append(made)
    return made
