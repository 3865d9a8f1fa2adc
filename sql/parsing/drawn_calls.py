"""Calls that draw a value for each row, as kinds of what sqlglot calls Rand: whoever looks for draws finds them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable


class RandomUuid(exp.Rand):
    """uuid(), also gen_random_uuid() and uuidv4()."""


class TimedUuid(exp.Rand):
    """uuidv7()."""


DRAWN_CALLS: dict[str, Callable[..., exp.Expr]] = {
    **dict.fromkeys(("UUID", "GEN_RANDOM_UUID", "UUIDV4"), RandomUuid.from_arg_list),
    "UUIDV7": TimedUuid.from_arg_list,
}
