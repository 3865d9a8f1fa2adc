"""SQL text to sqlglot trees whose nodes know their place in the text, by DuckDB's ranks of operators.

sqlglot takes `~a + 1` for `(~a) + 1`, `a || b << c` for `(a || b) << c` and `a ^@ b || c` for `a ^@ (b || c)`; `ranks` says how DuckDB
reads them.  Its tree does not
tell `a ^@ b` from starts_with(a, b), nor where an item begins and ends that has no name or literal in it, such as count(*), so
neither can be mended in the tree: the parser's class remains until the grammar's reading marks both.  sqlglot's compiled build, the
package sqlglotc, cannot be extended so: it is refused by name.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar

import sqlglot.errors
from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.duckdb import DuckDBParser

from fuseline.errors import ParseError, Span, Unsupported
from fuseline.sql.grammar.ranks import SUMS, climb, complement, leads_to_text
from fuseline.sql.parsing.dropped import dropped, mend_empty_formats, refuse_empty_group
from fuseline.sql.parsing.known_calls import FUNCTION_PARSERS, FUNCTIONS, WORDS
from fuseline.sql.parsing.pieces import Piece, span_of
from fuseline.sql.parsing.tokens import DUCKDB, LESS, for_parser, tokenize
from fuseline.sql.parsing.unread import Tree, tree_of

from .known_calls import is_of_sqlglot, parse_error, stands_in_main, with_methods
from .misread import misread_in
from .pieces import give_places, written_as

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Kinds = Collection[TokenType] | None

COMPILED = "Fuseline cannot use sqlglot's compiled build: pip uninstall sqlglotc."
if str(sys.modules[DuckDBParser.__module__].__file__).endswith(".so"):
    raise Unsupported(COMPILED)

_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)
_BINARY: dict[str, type[exp.Expr]] = {
    "||": exp.DPipe, "^@": exp.StartsWith, "&&": exp.ArrayOverlaps, "@>": exp.ArrayContainsAll, "<@": exp.ArrayContainedBy,
    "->": exp.JSONExtract, "->>": exp.JSONExtractScalar,
    "&": exp.BitwiseAnd, "|": exp.BitwiseOr, "<<": exp.BitwiseLeftShift, ">>": exp.BitwiseRightShift,
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "//": exp.IntDiv, "%": exp.Mod,
    "^": exp.Pow, "**": exp.Pow,
}  # fmt: skip
_RANKED = (TokenType.CARET_AT, TokenType.DAMP, TokenType.AT_GT, TokenType.LT_AT)
_TOKENIZER = DuckDB.Tokenizer
_SIGNS = frozenset(
    kind
    for text, kind in {**_TOKENIZER.KEYWORDS, **_TOKENIZER.SINGLE_TOKENS}.items()
    if text in _BINARY or text in "<>~"
)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_BEHIND_LIMIT = (TokenType.R_PAREN, TokenType.OFFSET, SENTINEL_NONE.token_type)  # LIMIT 10 %
_OPERANDS = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
_PIVOTS = (TokenType.PIVOT, TokenType.UNPIVOT)
_WRAPPED = (*_PIVOTS, TokenType.SHOW, TokenType.DESC)  # queries that are none for sqlglot
_BEHIND_PIVOT = (
    *(TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH),
    *(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT),
)


class Parser(DuckDBParser):
    """Operators are ranked as in DuckDB, and items note their text."""

    has_methods = False
    behind_type = -1  # the place of the token behind the last type that may have a constant there

    UNARY_PARSERS: ClassVar = {
        **DuckDBParser.UNARY_PARSERS,
        # sqlglot leaves no trace of it
        TokenType.PLUS: lambda self: self.expression(exp.Unary(this=self._parse_unary())),
        TokenType.TILDE: lambda self: self._parse_behind_prefix(),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {
        **DuckDBParser.NO_PAREN_FUNCTION_PARSERS,
        "@": lambda self: self.expression(exp.Abs(this=climb(self, SUMS))),
        **{n: lambda self, kind=kind: self._parse_word(kind) for n, kind in WORDS.items()},  # type: ignore[misc]
    }
    COMPARISON: ClassVar = {**DuckDBParser.COMPARISON, LESS: exp.LT}
    RANGE_PARSERS: ClassVar = {
        kind: parse for kind, parse in DuckDBParser.RANGE_PARSERS.items() if kind not in _RANKED
    }

    FUNCTIONS: ClassVar = FUNCTIONS
    FUNCTION_PARSERS: ClassVar = FUNCTION_PARSERS
    COLUMN_OPERATORS: ClassVar = {  # which bind as they rank
        kind: parse
        for kind, parse in DuckDBParser.COLUMN_OPERATORS.items()
        if kind not in (TokenType.ARROW, TokenType.DARROW)
    }
    LAMBDAS: ClassVar = {  # without `x -> y`, which is an operator of JSON
        kind: make for kind, make in DuckDBParser.LAMBDAS.items() if kind is not TokenType.ARROW
    }
    CONSTRAINT_PARSERS: ClassVar = {
        **DuckDBParser.CONSTRAINT_PARSERS,
        "DEFAULT": lambda self: self.expression(
            exp.DefaultColumnConstraint(this=self._parse_noted(self._parse_bitwise))
        ),
    }

    PLACEHOLDER_PARSERS: ClassVar = {  # without `:name`, which x[:name] is none of
        kind: parse
        for kind, parse in DuckDBParser.PLACEHOLDER_PARSERS.items()
        if kind is not TokenType.COLON
    }

    STATEMENT_PARSERS: ClassVar = {
        **DuckDBParser.STATEMENT_PARSERS,
        **dict.fromkeys(_PIVOTS, lambda self: self._parse_pivot_query()),
    }

    def _parse_word(self, kind: type[exp.Expr]) -> exp.Expr | None:
        """Parse a word that is a function, unless a column has its name; with parentheses it is that alone."""
        if self._curr.token_type is TokenType.L_PAREN:
            self._retreat(self._index - 1)
            return self._parse_function(optional_parens=False)
        node = self.expression(kind())
        node.meta.update(start=self._prev.start, end=self._prev.end, is_word=True)
        return node

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """Parse an argument: a lambda's body keeps its columns."""
        index = self._index
        if self._curr.text.lower() != "lambda" or self._curr.token_type is not TokenType.VAR:
            return super()._parse_lambda(alias)
        self._advance()
        parameters = self._parse_csv(self._parse_lambda_arg)
        if not self._match(TokenType.COLON):
            self._retreat(index)
            return None
        body = self._parse_expression()
        return self.expression(exp.Lambda(this=body, expressions=parameters))

    def _parse_map(self) -> exp.Expr:  # type: ignore[override]
        """Parse MAP {...} with what is subscripted behind it, which sqlglot takes for a part of the braces."""
        node: exp.Expr = super()._parse_map()
        outermost = node.this
        if not isinstance(node, exp.ToMap) or not isinstance(outermost, exp.Bracket):
            return node
        outermost.pop()
        subscript = outermost
        while isinstance(inner := subscript.this, exp.Bracket):
            subscript = inner
        node.set("this", subscript.this)
        subscript.set("this", node)
        return outermost

    def _parse_check_constraint(self) -> exp.CheckColumnConstraint | None:
        if self._curr.token_type is not TokenType.L_PAREN:
            return None
        inside = self._parse_wrapped(lambda: self._parse_noted(self._parse_expression))
        return self.expression(exp.CheckColumnConstraint(this=inside))

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        return self._parse_csv(self._parse_item), None

    def _parse_named_window(self) -> exp.Expr | None:
        return self._parse_noted(super()._parse_named_window)

    def _parse_returning(self) -> exp.Returning | None:
        if not self._match(TokenType.RETURNING):
            return None
        return self.expression(exp.Returning(expressions=self._parse_csv(self._parse_item)))

    def _parse_item(self) -> exp.Expr | None:
        return self._parse_noted(self._parse_expression)

    def _parse_noted(self, parse: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        """Parse something and note how it is written."""
        first = self._index
        item = parse()
        tokens = self._tokens[first : self._index]
        if item is not None and tokens and not isinstance(item, exp.Alias):
            item.meta["written"] = written_as(self.sql, tokens)
        return item

    def _parse_field(
        self, any_token: bool = False, tokens: Kinds = None, anonymous_func: bool = False
    ) -> exp.Expr | None:
        if anonymous_func and stands_in_main(self._tokens, self._index):
            self.has_methods = True
            call = self._parse_function()
            return None if call is None else exp.Paren(this=call)
        field = super()._parse_field(any_token, tokens, anonymous_func)
        if anonymous_func and isinstance(field, exp.Anonymous):
            self.has_methods = True
            return exp.Paren(this=field)  # before a call sqlglot takes columns apart
        return field

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        """Parse DATE '2024-01-31'::varchar as a cast of the date: sqlglot would make a date of what the text is cast to."""
        node = super()._parse_type(parse_interval, fallback_to_identifier)
        is_typed = node is not None and self._index == self.behind_type + 1
        return self._parse_column_ops(node) if is_typed else node

    def _parse_types(self, check_func: bool = False, **how: bool) -> exp.Expr | None:  # type: ignore[override]
        found = super()._parse_types(check_func=check_func, **how)
        if found is not None and check_func:
            self.behind_type = self._index
        return found

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        if isinstance(this, exp.Literal) and self._index == self.behind_type + 1:
            return this
        node = super()._parse_column_ops(this)
        return with_methods(node) if node is not None and self.has_methods else node

    def _parse_paren(self) -> exp.Expr | None:
        first = self._index
        if self._next and self._next.token_type in _WRAPPED and self._match(TokenType.L_PAREN):
            query = self.expression(exp.Subquery(this=self._parse_wrapped_select()))
            self._match_r_paren()
            return query
        node = super()._parse_paren()
        if isinstance(node, exp.Paren) and isinstance(node.this, exp.Describe | exp.Summarize):
            return exp.Subquery(this=node.this)
        if isinstance(node, exp.Tuple) and not node.expressions:  # no other node has its place
            node.meta["start"] = self._tokens[first].start
            node.meta["end"] = self._tokens[self._index - 1].end
        return node

    def _parse_about(self) -> exp.Expr | None:
        """Parse SHOW and DESC in parentheses, which sqlglot takes for names."""
        if self._match(TokenType.SHOW):
            return self._parse_show()
        return self._parse_describe() if self._match(TokenType.DESC) else None

    def _parse_show(self) -> exp.Expr:
        style = "SHOW ALL" if self._match(TokenType.ALL) else "SHOW"
        return self.expression(exp.Describe(this=self._parse_table_parts(), style=style))

    def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:
        if (about := self._parse_about()) is not None:
            return about
        if self._match_set(_PIVOTS):
            return self._parse_pivot_query()
        return super()._parse_wrapped_select(table)

    def _parse_pivot_query(self) -> exp.Expr:
        """Parse a PIVOT statement behind its first word; ORDER BY, LIMIT and set operations may follow it as any query."""
        pivot = self._parse_simplified_pivot(self._prev.token_type is TokenType.UNPIVOT)
        if self._curr.token_type not in _BEHIND_PIVOT:
            return pivot
        query = self.expression(exp.Subquery(this=pivot))
        return self._parse_query_modifiers(self._parse_set_operations(query)) or query

    def _parse_ordered(
        self, parse_method: Callable[[], exp.Expr | None] | None = None
    ) -> exp.Ordered | None:
        """Note whether NULLS FIRST or LAST is written; a name "all" in quotes is one."""
        is_quoted = self._curr.token_type is TokenType.IDENTIFIER
        parse = parse_method or self._parse_disjunction
        # In parentheses sqlglot does not look at the name
        item = super()._parse_ordered(
            (lambda: self.expression(exp.Paren(this=parse()))) if is_quoted else parse
        )
        if item is not None and is_quoted:
            item.set("this", item.this.this)
        if item is not None and self._tokens[self._index - 2].text.upper() == "NULLS":
            item.meta["places_nulls"] = True
        return item

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self._match(TokenType.ESCAPE):
            return this
        return self.expression(exp.Escape(this=this, expression=self._parse_bitwise()))

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        if self._curr.token_type is TokenType.L_PAREN and self._has_aliases():  # of PIVOT's values
            values = self._parse_wrapped_csv(self._parse_expression)
            return self.expression(exp.In(this=this, expressions=values))
        if self._curr.token_type is not TokenType.L_BRACKET:
            return super()._parse_in(this, alias)
        # x IN [a, b] looks into a list, whose NULLs are values, and sqlglot takes it for x IN (a, b)
        return self.expression(exp.In(this=this, field=self._parse_bitwise()))

    def _has_aliases(self) -> bool:
        """Whether AS stands in the parentheses that open here, and not deeper."""
        depth = 0
        for token in self._tokens[self._index :]:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if depth == 0 or token.token_type in (TokenType.SELECT, TokenType.FROM, TokenType.WITH):
                return False
            if depth == 1 and token.token_type is TokenType.ALIAS:
                return True
        return False

    def _parse_ddl_select(self) -> exp.Expr | None:
        if self._match_set(_PIVOTS):
            return self._parse_pivot_query()
        return super()._parse_ddl_select()

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        node = super()._parse_is(this)
        if isinstance(this, _DISTINCT) and isinstance(node, _DISTINCT):
            node.set("this", this)  # without sqlglot's parentheses, which hide a chain
        return node

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """Parse comparisons, and those with `->` between them, which binds weaker than they do."""
        node = super()._parse_equality(parse_is)
        while parse_is and self._match(TokenType.ARROW):
            side = super()._parse_equality(parse_is)
            if isinstance(side, exp.Comprehension):  # [x -> 'a' for x in l]
                inner = self.expression(exp.JSONExtract(this=node, expression=side.this))
                side.set("this", inner)
                return side
            node = self.expression(exp.JSONExtract(this=node, expression=side))
        return node

    def leads_to_text(self) -> bool:
        behind = self._tokens[self._index + 1 :]
        return leads_to_text((token.text, token.token_type in _OPERANDS) for token in behind)

    def _parse_bitwise(self) -> exp.Expr | None:
        return climb(self)

    def _parse_behind_prefix(self) -> exp.Expr | None:
        self._retreat(self._index - 1)
        return complement(self)

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


_PARSING: ContextVar[bool] = ContextVar("parsing", default=False)
# What sqlglot warns of while this file parses, such as syntax that it keeps as text, is refused with an error of ours.
logging.getLogger("sqlglot").addFilter(lambda _: not _PARSING.get())


def parse(piece: Piece) -> Tree:
    """Return the tree of one statement, with the place of every node; raises `ParseError`."""
    written = tokenize(piece)
    misread = misread_in(written, piece)
    tokens = for_parser(written, piece)
    parser = Parser(dialect=DUCKDB)
    quiet = _PARSING.set(True)
    try:
        trees = parser.parse(tokens, piece.sql)
    except sqlglot.errors.ParseError as error:
        wrong = parse_error(error, tokens, piece) if misread is None else misread.error
        raise wrong from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # sqlglot builds some calls without a look at their arguments
        if misread is not None:
            raise misread.error from None
        if not is_of_sqlglot(error):
            raise
        message = "Syntax error: a part of this statement, such as a call, lacks something."
        raise ParseError(message, Span(piece.start, piece.end)) from error
    finally:
        _PARSING.reset(quiet)
    root = trees[0] if trees else None
    if root is None:
        raise ParseError("There is no statement here.", Span(piece.start, piece.end))
    tree = tree_of(root)
    give_places(tree.nodes, piece.start, tokens)
    if tree.chain is not None:
        message = "Comparisons are not chained: combine them with AND, or put one in parentheses."
        raise ParseError(message, span_of(tree.chain))
    refuse_empty_group(tree.nodes, piece)
    mend_empty_formats(tree.nodes, piece.text)
    fault = dropped(tokens, tree.nodes, piece)
    return dataclasses.replace(tree, fault=fault, misread=misread)
