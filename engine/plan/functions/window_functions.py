"""Window functions: of a row's place in its partition, or of the values of rows at places of its frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf

from ..types import BIGINT, DOUBLE, DataType
from .row import FunctionRow, Resolve, fixed, of_any

Resolved = tuple[tuple[DataType, ...], DataType] | None


Reach = OneOf["frame", "peers", "partition"]


def _row(
    name: str,
    resolve: Resolve,
    signature: str,
    *aliases: str,
    reach: Reach = "partition",
    is_rank: bool = False,
    orderable: bool = True,
) -> FunctionRow:
    return FunctionRow(
        name,
        resolve,
        signature,
        aliases,
        "window",
        nulls="own",
        reach=reach,
        is_rank=is_rank,
        orderable=orderable,
    )


def _nth(types: Sequence[DataType]) -> Resolved:
    return ((types[0], BIGINT), types[0]) if len(types) == 2 else None


def _shifted(types: Sequence[DataType]) -> Resolved:
    """The value, by how many rows, and what there is beyond the partition."""
    if not 1 <= len(types) <= 3:
        return None
    return (types[0], BIGINT, types[0])[: len(types)], types[0]


WINDOW_FUNCTIONS = (
    _row("row_number", fixed(result=BIGINT), "row_number()", reach="peers", is_rank=True),
    _row("rank", fixed(result=BIGINT), "rank()", reach="peers", is_rank=True),
    _row(
        "dense_rank",
        fixed(result=BIGINT),
        "dense_rank()",
        "rank_dense",
        reach="peers",
        orderable=False,
    ),
    _row("percent_rank", fixed(result=DOUBLE), "percent_rank()"),
    _row("cume_dist", fixed(result=DOUBLE), "cume_dist()"),
    _row("ntile", fixed(BIGINT, result=BIGINT), "ntile(BIGINT)"),
    _row("lag", _shifted, "lag(any[, BIGINT[, any]])"),
    _row("lead", _shifted, "lead(any[, BIGINT[, any]])"),
    # Made of lag and lead
    _row("fill", of_any(), "fill(any)", orderable=False),
    # Aggregates of the first and last row are these over a window
    _row("first_value", of_any(), "first_value(any)", "first", "arbitrary", reach="frame"),
    _row("last_value", of_any(), "last_value(any)", "last", reach="frame"),
    _row("nth_value", _nth, "nth_value(any, BIGINT)", reach="frame"),
)
