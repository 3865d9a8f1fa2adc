"""RE2's syntax read into a tree: the part of it that an automaton can walk.

What is left out (word boundaries, several lines, Unicode classes, flags amid a pattern) raises `NoAutomaton`, and so does what RE2 itself
refuses: its own error is the better one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeAlias

from ...records import dataclass

Range: TypeAlias = tuple[int, int]  # first and last code point

LAST = 0x10FFFF
MOST_REPEATS = 1000  # that RE2 takes
KELVIN, LONG_S = 0x212A, 0x017F  # what folds to k and s, beside K and S
DIGIT: tuple[Range, ...] = ((0x30, 0x39),)
WORD: tuple[Range, ...] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: tuple[Range, ...] = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
NAMED = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "digit": DIGIT,
    "lower": ((0x61, 0x7A),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


class NoAutomaton(Exception):
    """What no automaton of ours stands for."""


@dataclass(frozen=True)
class Chars:
    """One of some code points."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True)
class InOrder:
    """Parts one after another; without any, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of several parts, an earlier one rather than a later one."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """A part `least` to `most` times, without end if that is None; as often as possible, or as seldom where it is not `greedy`."""

    part: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True)
class Captured:
    """A part whose place is kept under a number from 1 on."""

    part: Node
    number: int


@dataclass(frozen=True)
class Edge:
    """The beginning or the end of a text."""

    at_end: bool


Node: TypeAlias = "Chars | InOrder | Choice | Repeat | Captured | Edge"


def parse(pattern: str) -> tuple[Node, int]:
    """Return the tree of a pattern and how many groups it has. Raises `NoAutomaton`."""
    reader = _PatternReader(pattern)
    tree = reader.choice()
    if reader.at < len(pattern) or _copies(tree) > MOST_REPEATS:
        reader.refuse()
    return tree, reader.groups


def _copies(node: Node) -> int:
    """How many times a part stands in another, at most: RE2 counts nested repeats by number together."""
    match node:
        case InOrder(parts) | Choice(parts):
            return max(map(_copies, parts), default=1)
        case Repeat(part, least, most, _):
            return max(least, most or 0, 1) * _copies(part)
        case Captured(part, _):
            return _copies(part)
    return 1


def negated(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the code points outside of some ranges."""
    found, begin = [], 0
    for first, last in sorted(ranges):
        if first > begin:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    if begin <= LAST:
        found.append((begin, LAST))
    return tuple(found)


def _folded(ranges: Iterable[Range]) -> list[Range]:
    """Add the other case of ASCII letters, and the two letters beyond ASCII that fold to some of them."""
    found = []
    for first, last in ranges:
        if last >= 0x80:
            raise NoAutomaton
        found.append((first, last))
        for low, high, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
            begin, end = max(first, low), min(last, high)
            if begin <= end:
                found.append((begin + shift, end + shift))
    for letter, other in (("k", KELVIN), ("s", LONG_S)):
        if any(first <= ord(letter) <= last for first, last in found):
            found.append((other, other))
    return found


class _PatternReader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.groups = pattern, 0, 0
        self.fold = self.all_lines = False
        if pattern.startswith("(?") and (end := pattern.find(")")) > 0:
            flags = pattern[2:end]
            if flags and set(flags) <= {"i", "s"}:
                self.fold, self.all_lines, self.at = "i" in flags, "s" in flags, end + 1

    def refuse(self) -> NoReturn:
        raise NoAutomaton

    def seen(self, text: str) -> bool:
        """Whether the pattern goes on with a text, which is then behind us."""
        found = self.pattern.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def next(self) -> str:
        if self.at == len(self.pattern):
            self.refuse()
        self.at += 1
        return self.pattern[self.at - 1]

    def choice(self) -> Node:
        parts = [self.chain()]
        while self.seen("|"):
            parts.append(self.chain())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def chain(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else InOrder(tuple(parts))

    def repeated(self, part: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return part
        least, most = bounds
        greedy = not self.seen("?")
        if isinstance(part, Edge) or self.bounds() is not None:
            self.refuse()
        return Repeat(part, least, most, greedy)

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.seen(sign):
                return bounds
        if not self.seen("{"):
            return None
        text = self.until("}")
        low, comma, high = text.partition(",")
        if not (low.isdecimal() and low.isascii()) or (high and not high.isdecimal()):
            self.refuse()  # RE2 takes most of these as plain characters
        least = int(low)
        most = least if not comma else int(high) if high else None
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            self.refuse()
        return least, most

    def until(self, sign: str) -> str:
        end = self.pattern.find(sign, self.at)
        if end < 0:
            self.refuse()
        text = self.pattern[self.at : end]
        self.at = end + len(sign)
        return text

    def atom(self) -> Node:
        letter = self.next()
        match letter:
            case "(":
                return self.group()
            case "[":
                return self.char_class()
            case ".":
                return Chars(((0, LAST),) if self.all_lines else negated([(10, 10)]))
            case "^":
                return Edge(at_end=False)
            case "$":
                return Edge(at_end=True)
            case "\\":
                return self.escaped()
            case "*" | "+" | "?" | "{" | "]" | "}":
                self.refuse()
        return self.chars([(ord(letter), ord(letter))])

    def chars(self, ranges: Iterable[Range]) -> Chars:
        return Chars(tuple(_folded(ranges) if self.fold else ranges))

    def group(self) -> Node:
        number = 0
        if not self.seen("?:"):
            if self.seen("?P<") or self.seen("?<"):
                name = self.until(">")
                if not name.isidentifier():  # a look behind among them
                    self.refuse()
            elif self.seen("?"):
                self.refuse()
            self.groups += 1
            number = self.groups
        part = self.choice()
        if not self.seen(")"):
            self.refuse()
        return Captured(part, number) if number else part

    def escaped(self) -> Node:
        if self.seen("A"):
            return Edge(at_end=False)
        if self.seen("z"):
            return Edge(at_end=True)
        return self.chars(self.escape())

    def escape(self) -> tuple[Range, ...]:
        """What follows a backslash, in a class or outside of one."""
        letter = self.next()
        if letter.lower() in CLASSES:
            ranges = CLASSES[letter.lower()]
            if letter.islower():
                return ranges
            if self.fold:
                self.refuse()
            return negated(ranges)
        if letter in CONTROLS:
            code = CONTROLS[letter]
        elif letter == "x":
            digits = self.until("}") if self.seen("{") else self.next() + self.next()
            try:
                code = int(digits, 16)
            except ValueError:
                self.refuse()
        elif letter.isascii() and letter.isprintable() and not letter.isalnum() and letter != "_":
            code = ord(letter)
        else:
            self.refuse()
        if code > LAST or 0xD800 <= code < 0xE000:
            self.refuse()
        return ((code, code),)

    def char_class(self) -> Chars:
        turned = self.seen("^")
        ranges: list[Range] = []
        begun = False
        while not (begun and self.seen("]")):
            begun = True
            ranges += self.class_part()
        found = _folded(ranges) if self.fold else ranges
        return Chars(negated(found) if turned else tuple(found))

    def class_part(self) -> tuple[Range, ...]:
        """A range, a letter, or a class by name."""
        if self.seen("[:"):
            name = self.until(":]")
            if name not in NAMED:
                self.refuse()
            return NAMED[name]
        found = self.class_letter()
        if len(found) > 1 or found[0][0] != found[0][1]:
            return found
        ahead = self.pattern[self.at : self.at + 2]
        if not ahead.startswith("-") or ahead == "-]":
            return found
        self.at += 1
        ((last, other),) = ends if len(ends := self.class_letter()) == 1 else self.refuse()
        if last != other or last < found[0][0]:
            self.refuse()
        return ((found[0][0], last),)

    def class_letter(self) -> tuple[Range, ...]:
        if self.seen("\\"):
            return self.escape()
        letter = ord(self.next())
        return ((letter, letter),)
