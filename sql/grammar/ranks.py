"""How DuckDB ranks binary operators and the prefixes `~`, `-`, `+` and `@`, for trees and for names of columns.

Its grammar is a parsing expression grammar with one rule a rank.  The weakest of these ranks takes any sign for an operator, and its
operands are those of `&` and `|`; the prefixes `~` and `@` begin an operand of `&` and hold all arithmetic behind them.  From this follows:

- Where an arithmetic operator has `~` directly behind it, its rule does not fit, since `~` begins no operand of it, and the weakest rule
  takes its sign: `a + b * ~c - d` is `(a + b) * (~(c - d))`, `a & b - ~c | d` is `(a & b) - ((~c) | d)`.
- `-` and `+` in front of a `~` or `@` are prefixes of such an operand, which then stands behind any operator: `- ~a + b || c` is
  `(-(~(a + b))) || c`, `a + b * @c * d` is `a + (b * (@(c * d)))`.
- Signs without a blank between them are one operator, as in PostgreSQL: `a *~b` asks for an operator `*~`.  Only `+` and `-` at the end
  of such a run are operators of their own, unless one of `~ ! @ % ^ & |` is in the run: `a*-b`, but not `a%-b`.

Comparisons lie lower still: `a = b * ~c` is `a = (b * (~c))`, and below those and IS lies `->`: `j -> 'a' = 'b'` is `j -> ('a' = 'b')`.  Where
names and constants alone stand between it and a `->>`, it ranks as that: `j -> 'a' ->> 'b' = 'c'` is `((j -> 'a') ->> 'b') = 'c'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set as AbstractSet
from typing import Protocol, TypeVar

Node = TypeVar("Node")
_SYMBOLS = ("|| ^@ && @> <@ -> ->>", "& | << >>", "+ -", "* / // %", "^ **")
ANY, BITS, SUMS = range(3)
RANKS = {symbol: rank for rank, symbols in enumerate(_SYMBOLS) for symbol in symbols.split()}
_KEEPS_SIGN = re.compile(r"[~!@%^&|]")
SIGNS = re.compile(r"[-+*/<>=~!@%^&|]+")


class OperatorSource(Protocol[Node]):
    """Where `climb` reads operators and operands from, and what it makes of them."""

    def sign(self, ahead: int = 0) -> str:
        """Return the sign that comes next, empty for other tokens."""

    def take_sign(self) -> None: ...

    def operand(self) -> Node: ...

    def complement(self, operand: Node) -> Node: ...

    def combine(self, symbol: str, left: Node, right: Node) -> Node: ...

    def leads_to_text(self) -> bool:
        """Whether `leads_to_text` says so of what is behind the sign that comes next."""


def climb(source: OperatorSource[Node], weakest: int = ANY) -> Node:
    """Read an expression of operators that rank `weakest` at least; those of one rank are read from left to right."""
    left = complement(source) if source.sign() == "~" else source.operand()
    while True:
        symbol = source.sign()
        rank = RANKS.get(symbol, -1)
        if symbol == "->" and not source.leads_to_text():
            rank = -1
        if rank >= SUMS and source.sign(1) == "~":
            rank = ANY
        if rank < weakest:
            return left
        source.take_sign()
        left = source.combine(symbol, left, climb(source, rank + 1))


def leads_to_text(tokens: Iterable[tuple[str, bool]]) -> bool:
    """Whether behind an arrow `->` the operator `->>` follows its operand; of each token its text, and whether it is a name or constant."""
    depth = 0
    for text, is_operand in tokens:
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                return False
        elif not depth and text == "->>":
            return True
        elif not (depth or is_operand or text in ("->", ".", "::")):
            return False
    return False


def complement(source: OperatorSource[Node]) -> Node:
    """Read a `~` and the arithmetic behind it."""
    source.take_sign()
    return source.complement(climb(source, SUMS))


def unknown_operator(run: str, known: AbstractSet[str]) -> str:
    """Return the first operator that a run of signs without blanks is made of and that is not known; empty where all are.

    >>> unknown_operator("*~", {"*", "~"}), unknown_operator("*-+", {"*", "+", "-"})
    ('*~', '')
    """
    while run:
        end = len(run)
        if not _KEEPS_SIGN.search(run):
            while end > 1 and run[end - 1] in "+-":
                end -= 1
        if run[:end] not in known:
            return run[:end]
        run = run[end:]
    return ""
