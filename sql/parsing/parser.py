"""sqlglot's parser of DuckDB's dialect, with DuckDB's ranks of operators, and the text of each item of a SELECT list.

sqlglot takes `~a + 1` for `(~a) + 1`, `a || b << c` for `(a || b) << c` and `a ^@ b || c` for `a ^@ (b || c)`.  Its tree does not
tell `a ^@ b` from starts_with(a, b), nor where an item begins and ends that has no name or literal in it, such as count(*), so
neither can be mended in the tree: this class remains until the grammar's reading marks both.  sqlglot's compiled build, the package
sqlglotc, cannot be extended so: it is refused by name.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import Unsupported

COMPILED = "Fuseline cannot use sqlglot's compiled build: pip uninstall sqlglotc."
if str(sys.modules[DuckDBParser.__module__].__file__).endswith(".so"):
    raise Unsupported(COMPILED)

_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, slots=True)
class Written:
    """An item as written, and the number of the first `?` in it."""

    text: str
    first_parameter: int


class Parser(DuckDBParser):
    """Operators are ranked as in DuckDB, and items note their text."""

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

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        return self._parse_csv(self._parse_item), None

    def _parse_item(self) -> exp.Expr | None:
        first = self._index
        item = self._parse_expression()
        tokens = self._tokens[first : self._index]
        if item is not None and tokens and not isinstance(item, exp.Alias):
            item.meta["written"] = _written(self.sql, tokens)
        return item

    def _parse_paren(self) -> exp.Expr | None:
        first = self._index
        node = super()._parse_paren()
        if isinstance(node, exp.Tuple) and not node.expressions:  # no other node has its place
            node.meta["start"] = self._tokens[first].start
            node.meta["end"] = self._tokens[self._index - 1].end
        return node

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        node = super()._parse_is(this)
        if isinstance(this, _DISTINCT) and isinstance(node, _DISTINCT):
            node.set("this", this)  # without sqlglot's parentheses, which hide a chain
        return node

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
