"""Operators, from the weakest, OR, to the strongest, `::`, as DuckDB's grammar ranks them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from fuseline.sql.grammar.ranks import SUMS, climb, complement, leads_to_text
from fuseline.sql.names.reader import words

from .operands import operand
from .queries import is_query, query
from .reader import Reader, Shown, Unreadable

_COMPARISONS = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_LIKE = {"like": "~~", "~~": "~~", "ilike": "~~*", "~~*": "~~*", "glob": "~~~", "~~~": "~~~"}
_NOT_LIKE = {"!~~": "~~", "!~~*": "~~*"}
_OPERANDS = ("word", "quoted", "text", "escaped", "dollar", "number")
_WITH_ESCAPE = {"~~": "like_escape", "~~*": "ilike_escape"}


def result_name(text: str, first_parameter: int = 1) -> str:
    """Return DuckDB's name for the expression that is written as `text`; what cannot be read is its own name.

    `first_parameter` is the number that the first `?` of it has in the query.

    >>> result_name("SUM( Price ) filter (where a<>1) + ~5")
    '(sum(Price) FILTER (WHERE (a != 1)) + (~(5)))'
    """
    try:
        reader = OperatorReader(words(text), text, first_parameter)
        shown = reader.shown()
        if not reader.at_end():
            return text.strip()
    except (Unreadable, RecursionError):
        return text.strip()
    return shown


class OperatorReader(Reader):
    """Each method reads the operators of one rank; its operands are of the next one."""

    def expression(self) -> Shown:
        return self._chain("or", lambda: self._chain("and", self._negation))

    def _chain(self, word: str, side: Callable[[], Shown]) -> Shown:
        first = side()
        if self.peek() != word:
            return first
        parts = _parts(first, word)
        while self.accept(word):
            parts += _parts(side(), word)
        return Shown("(" + f" {word.upper()} ".join(parts) + ")", word=word, parts=parts)

    def _negation(self) -> Shown:
        if self.accept("not"):
            return Shown(f"(NOT {self._negation().text})")
        left = self._tests()
        while self.accept("->"):
            left = Shown(f"({left.text} -> {self._tests().text})")
        return left

    def _tests(self) -> Shown:
        """IS [NOT] NULL, UNKNOWN, TRUE, FALSE, DISTINCT FROM."""
        left = self._comparison()
        while True:
            if self.accept("isnull"):
                left = Shown(f"({left.text} IS NULL)")
            elif self.accept("notnull") or self.accept("not", "null"):
                left = Shown(f"({left.text} IS NOT NULL)")
            elif self.accept("is"):
                left = Shown(self._test(left.text))
            else:
                return left

    def _test(self, left: str) -> str:
        negated = self.accept("not")
        if self.accept_one("null", "unknown"):
            return f"({left} IS {'NOT ' if negated else ''}NULL)"
        if self.accept("distinct", "from"):
            return f"({left} IS {'NOT ' if negated else ''}DISTINCT FROM {self._comparison().text})"
        value = self.accept_one("true", "false")
        if not value:
            raise Unreadable("is")
        # To be TRUE is not to be distinct from it: NOT changes sides.
        return f"(CAST({left} AS BOOLEAN) IS {'' if negated else 'NOT '}DISTINCT FROM {value})"

    def _comparison(self) -> Shown:
        left = self._memberships()
        while self.peek() in _COMPARISONS:
            symbol = _COMPARISONS[self.take().lower]
            if self.peek() in ("any", "some", "all") and self.peek(1) == "(":
                every = self.take().lower == "all"
                # DuckDB makes NOT ANY of the opposite of ALL.
                shown = (
                    f"({left.text} {_OPPOSITE[symbol] if every else symbol} ANY{self._listed()})"
                )
                left = Shown(f"(NOT {shown})" if every else shown)
            else:
                side = self._negation if self.peek() == "not" else self._memberships
                left = Shown(f"({left.text} {symbol} {side().text})")
        return left

    def _listed(self) -> str:
        """Read the query behind ANY, or the list, which is one of its elements."""
        if is_query(self, 1):
            return self._query()
        return f"(SELECT unnest({', '.join(self.in_parentheses(self.shown))}))"

    def _query(self) -> str:
        self.expect("(")
        found = query(self)
        self.expect(")")
        return f"({found})"

    def _memberships(self) -> Shown:
        """IN, BETWEEN, LIKE and regular expressions."""
        left = self._others()
        while True:
            negated = self.peek() == "not" and self.peek(1) in (
                "in",
                "between",
                "similar",
                *_LIKE,
            )
            if negated:
                self.take()
            found = self._member(left.text, negated)
            if found is None:
                return left
            left = Shown(found)

    def _member(self, left: str, negated: bool) -> str | None:
        if self.accept("in"):
            shown = self._in(left)
        elif self.accept("between"):
            low = self._others().text
            self.expect("and")
            shown = f"({left} BETWEEN {low} AND {self._others().text})"
        elif self.accept("similar", "to"):
            shown = f"regexp_full_match({left}, {self._others().text})"
        elif self.peek() in ("~", "!~", "~*", "!~*"):
            sign = self.take().lower
            negated, options = sign[0] == "!", ", 'i'" if sign[-1] == "*" else ""
            shown = f"regexp_matches({left}, {self._others().text}{options})"
        elif self.peek() in _LIKE:
            return self._like(left, _LIKE[self.take().lower], negated)
        elif self.peek() in _NOT_LIKE:
            return self._like(left, _NOT_LIKE[self.take().lower], True)
        else:
            return None
        return f"(NOT {shown})" if negated else shown

    def _in(self, left: str) -> str:
        if self.peek() == "(" and is_query(self, 1):
            before = self.place, self.parameter
            with suppress(Unreadable):  # `((select 1)) / 2` is no query
                return f"({left} = ANY{self._query()})"
            self.place, self.parameter = before
        if self.peek() != "(":
            return f"contains({self._others().text}, {left})"
        return f"({left} IN ({', '.join(self.in_parentheses(self.shown))}))"

    def _like(self, left: str, symbol: str, negated: bool) -> str:
        pattern = self._others().text
        if self.accept("escape"):
            call = f"{_WITH_ESCAPE[symbol]}({left}, {pattern}, {self._others().text})"
            return f"(NOT {call})" if negated else call
        if symbol == "~~~":  # GLOB has no operator for its opposite
            return f"(NOT ({left} ~~~ {pattern}))" if negated else f"({left} ~~~ {pattern})"
        return f"({left} {'!' if negated else ''}{symbol} {pattern})"

    def _others(self) -> Shown:
        return climb(self)

    def sign(self, ahead: int = 0) -> str:
        return self.peek(ahead)

    def take_sign(self) -> None:
        self.take()

    def complement(self, operand: Shown) -> Shown:
        return Shown(f"(~({operand.text}))")

    def combine(self, symbol: str, left: Shown, right: Shown) -> Shown:
        return Shown(f"({left.text} {symbol} {right.text})")

    def leads_to_text(self) -> bool:
        behind = self.tokens[self.place + 1 :]
        return leads_to_text((word.lower or word.text, word.kind in _OPERANDS) for word in behind)

    def operand(self) -> Shown:
        left = self._prefix()
        while True:
            if self.accept("collate"):
                left = Shown(f"{left.text} COLLATE {self.name()}")
            elif self.accept("at", "time", "zone"):
                left = Shown(f"timezone({self._prefix().text}, {left.text})")
            else:
                return left

    def _prefix(self) -> Shown:
        sign = self.peek()
        if sign not in ("-", "+", "~", "@"):
            return operand(self)
        if sign == "~":  # behind another prefix
            return complement(self)
        self.take()
        if sign == "@":
            return Shown(f"(@({climb(self, SUMS).text}))")
        inner = self._prefix()
        if sign == "-" and inner.number:
            negative = inner.text.startswith("-")
            return Shown(inner.text[1:] if negative else f"-{inner.text}", number=True)
        return Shown(f"({sign}({inner.text}))")


def _parts(shown: Shown, word: str) -> tuple[str, ...]:
    """Return the operands of a chain of the same word, which DuckDB writes without parentheses."""
    return shown.parts if shown.word == word else (shown.text,)
