"""Instructions of a pattern: what a thread of a search does next, a byte at a time."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from ...records import dataclass
from .read_pattern import (
    LAST,
    Captured,
    Chars,
    Choice,
    Edge,
    InOrder,
    NoAutomaton,
    Node,
    Range,
    Repeat,
    parse,
)

MOST_INSTRUCTIONS = 5_000
MOST_STEPS = 50_000  # of making an automaton: some 0.05 s
CONTINUED = (0x80, 0xBF)  # a byte of a character that is not its first
ASCII = 0x7F
# Of all other characters, in text that is valid
BEYOND_ASCII = [
    [(0xC2, 0xDF), CONTINUED],
    [(0xE0, 0xEF), CONTINUED, CONTINUED],
    [(0xF0, 0xF4), CONTINUED, CONTINUED, CONTINUED],
]
SIZES = ((ASCII, 1), (0x7FF, 2), (0xFFFF, 3), (0x10FFFF, 4))  # last code point of so many bytes
SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True)
class Take:
    """Take a byte: for each way the first and the last one it may be, and where to go on."""

    ways: tuple[tuple[int, int, int], ...]

    def after(self, byte: int) -> list[int]:
        """Return where to go on after a byte."""
        return [to for first, last, to in self.ways if first <= byte <= last]


@dataclass(frozen=True)
class Split:
    """Go on at two places, rather at the first."""

    to: int
    other: int


@dataclass(frozen=True)
class Save:
    """Keep the place in the text under a tag."""

    tag: int
    to: int


@dataclass(frozen=True)
class AtEdge:
    """Go on at the beginning or the end of the text alone."""

    at_end: bool
    to: int


@dataclass(frozen=True)
class Match:
    """The pattern has been found."""


Instruction: TypeAlias = Take | Split | Save | AtEdge | Match


@dataclass
class SearchProgram:
    """Instructions, of which a search begins with `start`; `extent`: it matters what a match is, not only that there is one."""

    extent: bool = False
    code: list[Instruction] = field(default_factory=list)
    start: int = 0
    steps: int = 0

    def add(self, instruction: Instruction) -> int:
        if len(self.code) == MOST_INSTRUCTIONS:
            raise NoAutomaton
        self.code.append(instruction)
        return len(self.code) - 1

    def count_step(self) -> None:
        """Note that an instruction was looked at. Raises `NoAutomaton` where that were too many."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise NoAutomaton


def program_of(pattern: str, groups: tuple[int, ...] | None) -> SearchProgram:
    """Return the program of a pattern that keeps where the match and some of its groups lie, or with None whether there is one.

    Tags 0 and 1 are the match, two more follow for each of `groups`. Raises `NoAutomaton`.
    """
    tree, _ = parse(pattern)
    program = SearchProgram(extent=groups is not None)
    end = program.add(Match())
    if groups is None:
        here = _added(program, tree, end, {})
    else:
        tags = {number: 2 * i + 2 for i, number in enumerate(groups)}
        here = program.add(Save(0, _added(program, tree, program.add(Save(1, end)), tags)))
    # Whoever has found nothing yet begins anew at the next byte
    program.start = program.add(Split(here, 0))
    again = program.add(Take(((0, 255, program.start),)))
    program.code[program.start] = Split(here, again)
    return program


def can_be_empty(node: Node) -> bool:
    """Whether a part may match without a byte."""
    match node:
        case Chars():
            return False
        case Edge():
            return True
        case InOrder(parts):
            return all(can_be_empty(part) for part in parts)
        case Choice(parts):
            return any(can_be_empty(part) for part in parts)
        case Repeat(part, least, _, _):
            return least == 0 or can_be_empty(part)
        case Captured(part, _):
            return can_be_empty(part)


def _added(program: SearchProgram, node: Node, to: int, tags: dict[int, int]) -> int:
    """Add the instructions of a part that goes on at `to`, and return where they begin."""
    match node:
        case Chars(ranges):
            return _chars(program, ranges, to)
        case Edge(at_end):
            return program.add(AtEdge(at_end, to))
        case InOrder(parts):
            for part in reversed(parts):
                to = _added(program, part, to, tags)
            return to
        case Choice(parts):
            begin = _added(program, parts[-1], to, tags)
            for part in reversed(parts[:-1]):
                begin = program.add(Split(_added(program, part, to, tags), begin))
            return begin
        case Captured(part, number):
            tag = tags.get(number)
            if tag is None:
                return _added(program, part, to, tags)
            inside = _added(program, part, program.add(Save(tag + 1, to)), tags)
            return program.add(Save(tag, inside))
        case Repeat():
            return _repeated(program, node, to, tags)


def _repeated(program: SearchProgram, node: Repeat, to: int, tags: dict[int, int]) -> int:
    if program.extent and can_be_empty(node.part) and (node.most is None or node.most > 1):
        raise NoAutomaton  # RE2 rewrites such loops, and ends them by rules of its own
    if node.most is None:
        loop = program.add(Split(0, to))
        inside = _added(program, node.part, loop, tags)
        program.code[loop] = _split(inside, to, node.greedy)
        to = loop
    else:
        after = to
        for _ in range(node.most - node.least):
            to = program.add(_split(_added(program, node.part, to, tags), after, node.greedy))
    for _ in range(node.least):
        to = _added(program, node.part, to, tags)
    return to


def _split(inside: int, past: int, greedy: bool) -> Split:
    return Split(inside, past) if greedy else Split(past, inside)


def _chars(program: SearchProgram, ranges: tuple[Range, ...], to: int) -> int:
    """Add the bytes of some code points as UTF-8 has them; where there is none, nothing matches."""
    known: dict[tuple[int, int, int], int] = {}
    ways: dict[tuple[int, int, int], None] = {}  # in order
    for first, last in ranges:
        for (low, high), *tail in _utf8(first, last):
            place = to
            for pair in reversed(tail):
                way = (*pair, place)
                if way not in known:
                    known[way] = program.add(Take((way,)))
                place = known[way]
            ways[low, high, place] = None
    if not ways:
        raise NoAutomaton
    return program.add(Take(tuple(ways)))


def _utf8(first: int, last: int) -> list[list[Range]]:
    """Return ranges of bytes, one after another, that make up the code points of a range."""
    if (first, last) == (ASCII + 1, LAST):
        return BEYOND_ASCII
    if first <= ASCII < last:
        return _utf8(first, ASCII) + _utf8(ASCII + 1, last)
    low, high = SURROGATES
    if first < low <= last or first <= high < last:
        return (_utf8(first, low - 1) if first < low else []) + (
            _utf8(high + 1, last) if last > high else []
        )
    if low <= first and last <= high:
        return []
    for end, _ in SIZES:
        if first <= end < last:
            return _utf8(first, end) + _utf8(end + 1, last)
    size = next(size for end, size in SIZES if last <= end)
    for tail in range(1, size):  # both ends have the same bytes, or whole runs of the last ones
        mask = (1 << 6 * tail) - 1
        if first & ~mask != last & ~mask:
            if first & mask:
                return _utf8(first, first | mask) + _utf8((first | mask) + 1, last)
            if last & mask != mask:
                return _utf8(first, (last & ~mask) - 1) + _utf8(last & ~mask, last)
    pairs = zip(chr(first).encode(), chr(last).encode(), strict=True)
    return [[(low, high) for low, high in pairs]]
