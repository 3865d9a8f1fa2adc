"""sqlglot's parser of DuckDB's dialect, with DuckDB's ranks of operators, and the text of each item of a SELECT list.

sqlglot takes `~a + 1` for `(~a) + 1`, `a || b << c` for `(a || b) << c` and `a ^@ b || c` for `a ^@ (b || c)`; and it reads
`a < b < c`, which DuckDB refuses.  sqlglot's compiled build, the package sqlglotc, cannot be extended so: it is refused by name.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import ParseError, Span, Unsupported

COMPILED = "Fuseline cannot use sqlglot's compiled build: pip uninstall sqlglotc."
if str(sys.modules[DuckDBParser.__module__].__file__).endswith(".so"):
    raise Unsupported(COMPILED)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, slots=True)
class Written:
    """An item as written, and the number of the first `?` in it."""

    text: str
    first_parameter: int


class Parser(DuckDBParser):
    """`shift` is where the parsed text begins in the whole one."""

    UNARY_PARSERS: ClassVar = {
        **DuckDBParser.UNARY_PARSERS,
        # sqlglot leaves no trace of it
        TokenType.PLUS: lambda self: self.expression(exp.Unary(this=self._parse_unary())),
        TokenType.TILDE: lambda self: self.expression(exp.BitwiseNot(this=self._parse_term())),
    }
    RANGE_PARSERS: ClassVar = {
        kind: parse
        for kind, parse in DuckDBParser.RANGE_PARSERS.items()
        if kind is not TokenType.CARET_AT
    }
    shift = 0

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        return self._parse_csv(self._parse_item), None

    def _parse_item(self) -> exp.Expr | None:
        first = self._index
        item = self._parse_expression()
        tokens = self._tokens[first : self._index]
        if item is not None and tokens and not isinstance(item, exp.Alias):
            item.meta["written"] = _written(self.sql, tokens)
        return item

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        first = self._index
        return self._refuse_chain(super()._parse_equality(parse_is), first)

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        first = self._index
        return self._refuse_chain(super()._parse_comparison(this), first)

    def _refuse_chain(self, node: exp.Expr | None, first: int) -> exp.Expr | None:
        """Raise for `a < b < c`, as DuckDB does."""
        chained = False
        if isinstance(node, _COMPARISONS):
            chained = isinstance(node.this, (*_COMPARISONS, *_DISTINCT))
            chained = chained or isinstance(node.expression, _COMPARISONS)
        if chained:
            raise self._chain(first)
        return node

    def _chain(self, first: int) -> ParseError:
        return ParseError(
            "Comparisons are not chained: combine them with AND, or put one in parentheses.",
            self._since(first),
        )

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        first = self._index
        node = super()._parse_is(this)
        if isinstance(this, _DISTINCT) and isinstance(node, _DISTINCT):
            raise self._chain(first)
        return node

    def _since(self, first: int) -> Span:
        """Return the place of the tokens from `first` to the last one read."""
        start, end = self._tokens[first].start, self._tokens[self._index - 1].end + 1
        return Span(self.shift + start, self.shift + end)

    def _parse_bitwise(self) -> exp.Expr | None:
        """`||` and `^@`, which bind less than the operators of bits."""
        left = self._parse_bits()
        while True:
            if self._match(TokenType.DPIPE):
                right = self._parse_bits()
                left = self.expression(exp.DPipe(this=left, expression=right, safe=True))
            elif self._match(TokenType.CARET_AT):
                left = self.expression(exp.StartsWith(this=left, expression=self._parse_bits()))
            elif self._match_set(self.JSON_OPERATORS):
                operator = self.JSON_OPERATORS[self._prev.token_type]
                left = operator(self, left, self._parse_bits())
            else:
                return left

    def _parse_bits(self) -> exp.Expr | None:
        left = self._parse_term()
        while True:
            if self._match_set(self.BITWISE):
                operator = self.BITWISE[self._prev.token_type]
            elif self._match_pair(TokenType.LT, TokenType.LT):
                operator = exp.BitwiseLeftShift
            elif self._match_pair(TokenType.GT, TokenType.GT):
                operator = exp.BitwiseRightShift
            else:
                return left
            left = self.expression(operator(this=left, expression=self._parse_term()))


def _written(sql: str, tokens: Sequence[Token]) -> Written:
    # Tokens of typed constants change places before they are parsed.
    start, end = min(t.start for t in tokens), max(t.end for t in tokens) + 1
    numbers = (
        int(number.text)
        for sign, number in itertools.pairwise(tokens)
        if sign.token_type is TokenType.PARAMETER and sql[sign.start] == "?"
    )
    return Written(sql[start:end], next(numbers, 1))


def written(item: exp.Expr) -> Written | None:
    """Return how an item of a SELECT list is written."""
    found = item.meta.get("written")
    return found if isinstance(found, Written) else None
