"""sqlglot's parser of DuckDB's dialect, with DuckDB's ranks of operators, and the text of each item of a SELECT list.

sqlglot takes `~a + 1` for `(~a) + 1`, `a || b << c` for `(a || b) << c` and `a ^@ b || c` for `a ^@ (b || c)`; `ranks` says how DuckDB
reads them.  Its tree does not
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
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import Unsupported

from ..grammar.ranks import SUMS, climb

COMPILED = "Fuseline cannot use sqlglot's compiled build: pip uninstall sqlglotc."
if str(sys.modules[DuckDBParser.__module__].__file__).endswith(".so"):
    raise Unsupported(COMPILED)

_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)
_BINARY: dict[str, type[exp.Expr]] = {
    "||": exp.DPipe, "^@": exp.StartsWith, "->": exp.JSONExtract, "->>": exp.JSONExtractScalar,
    "&": exp.BitwiseAnd, "|": exp.BitwiseOr, "<<": exp.BitwiseLeftShift, ">>": exp.BitwiseRightShift,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "//": exp.IntDiv, "%": exp.Mod,
    "^": exp.Pow, "**": exp.Pow,
}  # fmt: skip
_TOKENIZER = DuckDB.Tokenizer
_SIGNS = frozenset(
    kind
    for text, kind in {**_TOKENIZER.KEYWORDS, **_TOKENIZER.SINGLE_TOKENS}.items()
    if text in _BINARY or text in "<>~"
)
_BEHIND_LIMIT = (TokenType.R_PAREN, TokenType.OFFSET, SENTINEL_NONE.token_type)  # LIMIT 10 %


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
        TokenType.TILDE: lambda self: self._parse_behind_prefix(),
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
        return climb(self)

    def _parse_behind_prefix(self) -> exp.Expr | None:
        self._retreat(self._index - 1)
        return self._parse_bitwise()

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        return climb(self, SUMS)

    def sign(self, ahead: int = 0) -> str:
        token, after = (self._next, None) if ahead else (self._curr, self._next)
        if token.token_type not in _SIGNS:
            return ""
        if after is not None and token.token_type is after.token_type and token.text in "<>":
            return token.text * 2
        is_percent = token.text == "%" and after is not None and after.token_type in _BEHIND_LIMIT
        return "" if is_percent else token.text

    def take_sign(self) -> None:
        self._advance(len(self.sign()) if self._curr.text in "<>" else 1)

    def operand(self) -> exp.Expr | None:
        node = self._parse_at_time_zone(self._parse_unary())
        while self._match(TokenType.COLLATE):
            node = self.expression(exp.Collate(this=node, expression=self._parse_unary()))
        return node

    def complement(self, operand: exp.Expr | None) -> exp.Expr:
        return self.expression(exp.BitwiseNot(this=operand))

    def combine(self, symbol: str, left: exp.Expr | None, right: exp.Expr | None) -> exp.Expr:
        return self.expression(_BINARY[symbol](this=left, expression=right))


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
