"""The shape of a row in the table of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from ..types import DataType

# Argument types -> (types to cast the arguments to, result type); None when the function does not take them.
# Raises nothing: the caller words the error.
Resolve = Callable[[Sequence[DataType]], tuple[tuple[DataType, ...], DataType] | None]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its name in plans, SQL spellings, types, NULL rule, and how each backend computes it.

    `cpu` and `gpu` name the backend's way: "pc.<name>" is that function of pyarrow.compute, "plc.<module>.<name>" that one
    of pylibcudf, called with the columns; anything else is a key of the backend's own table KERNELS.  The default
    is the function's name in KERNELS.
    """

    name: str
    resolve: Resolve
    signature: str  # for error messages: "substring(VARCHAR, BIGINT[, BIGINT])"
    aliases: tuple[str, ...] = ()
    kind: OneOf["scalar", "aggregate", "operator"] = "scalar"
    nulls: OneOf["propagate", "own"] = "propagate"  # propagate: NULL in any argument gives NULL
    cpu: str = ""
    gpu: str = ""
