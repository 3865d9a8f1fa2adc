"""The tokens of an expression, taken one by one, and what has been read of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from .name_tokens import Word, identifier

_BEHIND_LISTS = frozenset(
    [
        ")",
        "]",
        "}",
        "select",
        "from",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "union",
        "intersect",
        "except",
        "qualify",
    ]
)


class Unreadable(Exception):
    """The text has something whose DuckDB name is not known."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An expression as text; `number`: a numeric constant, `word` and `parts`: AND or OR and its operands."""

    text: str
    number: bool = False
    word: str = ""
    parts: tuple[str, ...] = ()


class Reader(ABC):
    """Tokens and a place in them; `parameter` is the number of the next `?`."""

    def __init__(self, tokens: list[Word], text: str, parameter: int) -> None:
        self.tokens = tokens
        self.text = text
        self.parameter = parameter
        self.place = 0

    @abstractmethod
    def expression(self) -> Shown:
        """Read an expression, as far as its operators reach."""

    def shown(self) -> str:
        return self.expression().text

    def at_end(self) -> bool:
        return self.place == len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        """Return a word or sign in lower case; empty for others, and at the end."""
        place = self.place + ahead
        return self.tokens[place].lower if place < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place].kind if place < len(self.tokens) else ""

    def take(self) -> Word:
        if self.at_end():
            raise Unreadable("the end")
        self.place += 1
        return self.tokens[self.place - 1]

    def accept(self, *expected: str) -> bool:
        """Take these words if they come next."""
        if all(self.peek(i) == word for i, word in enumerate(expected)):
            self.place += len(expected)
            return True
        return False

    def accept_one(self, *expected: str) -> str:
        """Take one of these words if it comes next, and return it."""
        return self.take().lower if self.peek() in expected else ""

    def expect(self, *expected: str) -> None:
        if not self.accept(*expected):
            raise Unreadable(expected)

    def name(self) -> str:
        if self.kind() not in ("word", "quoted"):
            raise Unreadable("no name")
        return identifier(self.take())

    def listed(self, item: Callable[[], str]) -> list[str]:
        """Return items with commas between them, and maybe one behind the last."""
        found = [item()]
        while self.accept(","):
            if self.at_end() or self.peek() in _BEHIND_LISTS:
                break
            found.append(item())
        return found

    def in_parentheses(self, item: Callable[[], str]) -> list[str]:
        """Return the items of a list in parentheses, none of an empty one."""
        self.expect("(")
        if self.accept(")"):
            return []
        found = self.listed(item)
        self.expect(")")
        return found
