"""The text of an item as it is written, from which its name is made."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp


@dataclass(frozen=True, slots=True)
class Written:
    """An item as written, where it begins in its statement, and the number of the first `?` in it."""

    text: str
    start: int
    first_parameter: int


def written_as(sql: str, tokens: Sequence[Token]) -> Written:
    # Tokens of typed constants change places before they are parsed.
    start, end = min(t.start for t in tokens), max(t.end for t in tokens) + 1
    numbers = (
        int(number.text)
        for sign, number in itertools.pairwise(tokens)
        if sign.token_type is TokenType.PARAMETER and sql[sign.start] == "?"
    )
    return Written(sql[start:end], start, next(numbers, 1))


def written(item: exp.Expr) -> Written | None:
    """Return how an item of a SELECT list is written."""
    found = item.meta.get("written")
    return found if isinstance(found, Written) else None
