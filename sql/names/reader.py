"""The tokens of an expression, taken one by one, what has been read of it, and how DuckDB prints words: which names it quotes, what it
calls types and intervals.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

from fuseline.plan.text.quoted_name import KEYWORDS, quoted_name, several

from ...records import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>(?:\s|--[^\n]*|/\*.*?\*/)+)
    |(?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
    |(?P<bytes>[xXbB]'[^']*')
    |(?P<text>'(?:[^']|'')*')
    |(?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    |(?P<parameter>\?|\$\s*\w+|\#\d+)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>::|!~~\*|!~~|~~~|~~\*|~~|~\*|!~\*|!~|\^@|@>|<@|&&|\*\*|//|<=|>=|<>|!=|==|\|\||<<|>>|:=|=>|->>|->|[-+*/%^<>=~&|@!().,\[\]{}:;\#])""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)|''", re.DOTALL)
_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

# Types that the grammar knows by a word of their own; the others are printed as written.
GRAMMAR_TYPES = {
    **{
        name: name.upper()
        for name in several("smallint bigint boolean bit timestamp time interval")
    },
    **dict.fromkeys(("int", "integer"), "INTEGER"),
    **dict.fromkeys(("real", "float"), "FLOAT"),
    **dict.fromkeys(("decimal", "dec", "numeric"), "DECIMAL"),
    **dict.fromkeys(("varchar", "char", "character", "nchar"), "VARCHAR"),
}
_UNITS = ("millennium", "century", "decade", "year", "quarter", "month", "week", "day")
_TIMES = ("hour", "minute", "second", "millisecond", "microsecond")
_PLURAL = {"century": "centuries", "millennium": "millennia"}
# Words of EXTRACT that are keywords come back in the grammar's spelling.
UNITS = {
    **{unit: unit for unit in (*_UNITS, *_TIMES)},
    **{_PLURAL.get(unit, f"{unit}s"): unit for unit in (*_UNITS, *_TIMES)},
}


@dataclass(frozen=True, slots=True)
class Word:
    """A token: what it is (a group of `_TOKEN`), and its characters; a `word` is also known in lower case."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""


def words(text: str) -> list[Word]:
    """Return the tokens of an expression; raises ValueError at a character that begins none."""
    found: list[Word] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(text[place:])
        kind = match.lastgroup or ""
        kind = "dollar" if kind == "tag" else kind
        if kind != "blank":
            written = "".join(match.group().split()) if kind == "parameter" else match.group()
            found.append(Word(kind, written, match.start(), match.end()))
        place = match.end()
    return found


def quoted(name: str) -> str:
    """Return a name, in quotes where DuckDB would not read it as one without."""
    if _PLAIN.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return quoted_name(name)


def identifier(word: Word) -> str:
    """Return the name that a word or a quoted name stands for."""
    return word.text[1:-1].replace('""', '"') if word.kind == "quoted" else word.text


def constant_text(word: Word) -> str:
    """Return a string constant in plain quotes."""
    text = word.text
    if word.kind == "text":
        return text
    if word.kind == "dollar":
        tag = text.index("$", 1) + 1
        value = text[tag:-tag]
    else:
        value = _ESCAPE.sub(_unescaped, text[2:-1].encode()).decode(errors="replace")
    return "'" + value.replace("'", "''") + "'"


def _unescaped(match: re.Match[bytes]) -> bytes:
    letters = match.group(1)
    if letters is None:
        return b"'"
    if letters[:1] == b"x" and len(letters) > 1:
        return bytes([int(letters[1:], 16)])
    if letters[:1] in b"01234567":
        return bytes([int(letters, 8) & 0xFF])
    return _ESCAPED.get(letters, letters)


def interval_call(value: str, unit: str) -> str:
    """Return the function that INTERVAL value unit stands for."""
    name = UNITS[unit]
    function = f"to_{_PLURAL.get(name, name + 's')}"
    if name in ("second", "millisecond"):
        return f"{function}(CAST({value} AS DOUBLE))"
    whole = "BIGINT" if name in ("hour", "minute", "microsecond") else "INTEGER"
    return f"{function}(CAST(trunc(CAST({value} AS DOUBLE)) AS {whole}))"


def part_of(word: Word) -> str:
    """Return the part that EXTRACT names: a keyword as the grammar spells it, others as written."""
    if word.kind == "text":
        return word.text
    name = UNITS.get(word.text.lower())
    if name is None:
        return f"'{identifier(word)}'"
    plural = name in ("millisecond", "microsecond")
    return f"'{name.upper()}{'S' if plural else ''}'"


def timestamp_type(precision: str) -> str:
    """Return what TIMESTAMP(p) stands for."""
    digits = int(precision)
    if digits == 0:
        return "TIMESTAMP_S"
    return "TIMESTAMP_MS" if digits <= 3 else "TIMESTAMP" if digits <= 6 else "TIMESTAMP_NS"


_BEHIND_LISTS = several("""
    ) ] } select from where group having order limit offset union intersect except qualify
    """)


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
        self._lower = tuple([token.lower for token in tokens])
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
        return self._lower[place] if place < len(self._lower) else ""

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
        end = self.place + len(expected)
        if self._lower[self.place : end] != expected:
            return False
        self.place = end
        return True

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
