"""Where the nodes of sqlglot's tree begin and end in the text, and how items are written there, from which their names are made."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp


def _parameter_places(tokens: list[Token]) -> dict[str, tuple[int, int]]:
    """Return where each parameter stands first, since sqlglot forgets it."""
    places: dict[str, tuple[int, int]] = {}
    for sign, name in itertools.pairwise(tokens):
        if sign.token_type in (TokenType.PARAMETER, TokenType.COLON):
            places.setdefault(name.text, (sign.start, name.end))
    return places


def give_places(nodes: Sequence[exp.Expr], shift: int, tokens: list[Token]) -> None:
    """Give every node the places of its first and last token; sqlglot keeps them on names and literals alone."""
    if any(isinstance(node, exp.Placeholder) for node in nodes):
        parameters = _parameter_places(tokens)
        for node in nodes:
            if isinstance(node, exp.Placeholder) and node.name in parameters:
                node.meta["start"], node.meta["end"] = parameters[node.name]
    for node in reversed(nodes):  # children come before their parents
        meta = node.meta
        if "start" in meta:
            _extend(meta, meta["start"] + shift, meta["end"] + shift + 1)
        if node.parent is not None and "first" in meta:
            _extend(node.parent.meta, meta["first"], meta["last"])


def _extend(meta: dict[str, int], first: int, last: int) -> None:
    if "first" not in meta or first < meta["first"]:
        meta["first"] = first
    if "last" not in meta or last > meta["last"]:
        meta["last"] = last


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
