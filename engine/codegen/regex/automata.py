"""Automata of patterns as tables that a kernel walks: one that says whether a text matches, and one that says where.

A state is the list of places in the program at which a search can be, in RE2's order: the first way to match counts.  Whether there is a
match needs no order, which makes fewer states.  Where it lies is known by registers, a row of them for each place of a state: a move
says from which row each comes and which of its tags are set (V. Laurikari's tagged automata, 2000, with U. Trafimovich's lookahead of a
byte, 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from .read_pattern import NoAutomaton, parse
from .search_program import AtEdge, Match, Save, SearchProgram, Split, Take, program_of

MOST_STATES = 1_000
MOST_ROWS = 12  # of registers
MOST_TAGS = 8
DEAD, FOUND = 0, 1  # states of an automaton that says whether a text matches
BYTES = 256

# Place in the program, thread that it comes from, tags that are set; of members its row of registers, and tags that wait
Thread: TypeAlias = tuple[int, int, int]
Members: TypeAlias = tuple[Thread, ...]


@dataclass(frozen=True, eq=False)
class Automaton:
    """Tables of an automaton.

    `classes` has the column of each byte, `moves` the next state for a state and a column, in rows of `columns`; DEAD ends a search.
    `ends` says for each state whether a text that ends there matches.  A search begins at `start`.
    With `tags`, `copies` has for each move the place of its list in `lists`, 0 for registers that stay; `ends` has such places, too.  A list
    is the number of its rows, whether one more is the match, and for each the row before, a bit for each tag that is set to the place before
    the last byte, and to that behind it.  `starts` are state and list at the beginning of a text and amid it.
    """

    classes: npt.NDArray[np.uint8]
    columns: int
    moves: npt.NDArray[np.uint16]
    ends: npt.NDArray[np.int32]
    start: int
    tags: int = 0
    copies: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    lists: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    starts: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(4, np.int32))


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Automaton | None:
    """Return an automaton that says whether a text has a match; None for a pattern beyond it."""
    try:
        return _Matcher(program_of(pattern, None)).made()
    except (NoAutomaton, RecursionError):
        return None


@lru_cache(maxsize=256)
def finder(pattern: str, groups: tuple[int, ...]) -> Automaton | None:
    """Return an automaton that says where the first match and some of its groups lie; None for a pattern beyond it."""
    if 2 * len(groups) + 2 > MOST_TAGS:
        return None
    try:
        return _Finder(program_of(pattern, groups), 2 * len(groups) + 2).made()
    except (NoAutomaton, RecursionError):
        return None


def groups_of(pattern: str) -> int | None:
    """Return how many groups a pattern has; None for one that is not read here."""
    try:
        return parse(pattern)[1]
    except (NoAutomaton, RecursionError):
        return None


def _classes(program: SearchProgram) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Return the column of each byte, and a byte of each column: bytes that no instruction tells apart share one."""
    begins = {0}
    for step in program.code:
        if isinstance(step, Take):
            begins.update(edge for first, last, _ in step.ways for edge in (first, last + 1))
    firsts = sorted(begin for begin in begins if begin < BYTES)
    columns = np.zeros(BYTES, np.uint8)
    for column, first in enumerate(firsts):
        columns[first:] = column
    return columns, firsts


def _followed(
    program: SearchProgram, threads: Iterable[Thread], *, at_begin: bool, at_end: bool
) -> list[Thread]:
    """Return the threads that wait for a byte, in order, as far as a match: what comes after it is of no interest.

    Those that wait for the end of the text are among them unless this is it.
    """
    found: list[Thread] = []
    seen: set[int] = set()
    waiting = list(threads)[::-1]
    while waiting:
        at, row, tags = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        program.count_step()
        match program.code[at]:
            case Split(to, other):
                waiting += [(other, row, tags), (to, row, tags)]
            case Save(tag, to):
                waiting.append((to, row, tags | 1 << tag))
            case AtEdge(of_end, to):
                if at_end if of_end else at_begin:
                    waiting.append((to, row, tags))
                if of_end and not at_end:
                    found.append((at, row, tags))
                if at_end and not of_end:
                    raise NoAutomaton  # a state does not know that the text is empty
            case Match():
                return [*found, (at, row, tags)]
            case Take():
                found.append((at, row, tags))
    return found


class _Matcher:
    """Makes the automaton that says whether there is a match."""

    def __init__(self, program: SearchProgram) -> None:
        self.program = program
        self.states: dict[frozenset[int], int] = {}
        self.members: list[frozenset[int]] = []

    def state(self, places: Iterable[int], at_begin: bool) -> int:
        threads = _followed(
            self.program, [(at, 0, 0) for at in places], at_begin=at_begin, at_end=False
        )
        if threads and isinstance(self.program.code[threads[-1][0]], Match):
            return FOUND
        members = frozenset(at for at, _, _ in threads)
        if not members:
            return DEAD
        if members not in self.states:
            if len(self.members) == MOST_STATES:
                raise NoAutomaton
            self.states[members] = len(self.members) + 2
            self.members.append(members)
        return self.states[members]

    def made(self) -> Automaton:
        classes, firsts = _classes(self.program)
        start = self.state([self.program.start], True)
        rows = [[DEAD] * len(firsts), [FOUND] * len(firsts)]
        ends = [0, 1]
        for members in self.members:  # which grow meanwhile
            steps = [step for at in members if isinstance(step := self.program.code[at], Take)]
            rows.append(
                [self.state([to for s in steps for to in s.after(byte)], False) for byte in firsts]
            )
            ends.append(int(self._ends(members)))
        moves = np.array(rows, np.uint16).ravel()
        return Automaton(classes, len(firsts), moves, np.array(ends, np.int32), start)

    def _ends(self, members: frozenset[int]) -> bool:
        threads = _followed(
            self.program, [(at, 0, 0) for at in members], at_begin=False, at_end=True
        )
        return any(isinstance(self.program.code[at], Match) for at, _, _ in threads)


class _Finder:
    """Makes the automaton that says where a match lies.

    A tag is set when its thread takes the next byte, to the place before that, and threads whose tags are the same share a row: most
    moves change no register then.
    """

    def __init__(self, program: SearchProgram, tags: int) -> None:
        self.program, self.tags = program, tags
        self.states: dict[Members, int] = {(): DEAD}
        self.members: list[Members] = [()]
        self.known: dict[tuple[int, ...], int] = {}
        self.lists: list[int] = [0]  # so that no list is at 0

    def made(self) -> Automaton:
        classes, firsts = _classes(self.program)
        unset = (0, 0)
        begin = [(self.program.start, 0, 0)]
        starts = (*self._move(begin, [unset], True), *self._move(begin, [unset], False))
        moves: list[int] = []
        copies: list[int] = []
        ends: list[int] = []
        for members in self.members:  # which grow meanwhile
            before = [(row, tags) for _, row, tags in members]
            steps = [(self.program.code[at], thread) for thread, (at, _, _) in enumerate(members)]
            for byte in firsts:
                on = [
                    (to, thread, 0)
                    for step, thread in steps
                    if isinstance(step, Take)
                    for to in step.after(byte)
                ]
                state, copied = self._move(on, before)
                moves.append(state)
                copies.append(copied)
            ends.append(self._end(members))
        return Automaton(
            classes, len(firsts), np.array(moves, np.uint16), np.array(ends, np.int32), starts[0],
            self.tags, np.array(copies, np.int32), np.array(self.lists, np.int32), np.array(starts, np.int32),
        )  # fmt: skip

    def _move(
        self,
        threads: Iterable[Thread],
        before: Sequence[tuple[int, int]],
        at_begin: bool | None = None,
    ) -> tuple[int, int]:
        """Return the state of threads that go on, and the list of their registers; 0 for one that changes nothing amid a text.

        `before` has for each thread of the last state its row and the tags that the byte behind us sets; at the start of a search it is
        said whether the text begins.
        """
        found = _followed(self.program, threads, at_begin=bool(at_begin), at_end=False)
        match = found.pop() if self._matches(found) else None
        rows: dict[tuple[int, int], int] = {}
        for _, thread, _ in found:
            rows.setdefault(before[thread], len(rows))
        members = tuple((at, rows[before[thread]], tags) for at, thread, tags in found)
        if members not in self.states:
            if len(self.members) == MOST_STATES or len(rows) > MOST_ROWS:
                raise NoAutomaton
            self.states[members] = len(self.members)
            self.members.append(members)
        stays = all(source == (row, 0) for source, row in rows.items())
        if at_begin is None and match is None and stays:
            return self.states[members], 0
        return self.states[members], self._list(list(rows), before, match)

    def _list(
        self,
        rows: Sequence[tuple[int, int]],
        before: Sequence[tuple[int, int]],
        match: Thread | None,
    ) -> int:
        """Return the place of a list of rows and of the match, if there is one."""
        words = [len(rows), int(match is not None)]
        for row, tags in rows:
            words += (row, tags, 0)
        if match is not None:
            _, thread, now = match
            words += (*before[thread], now)
        key = tuple(words)
        if key not in self.known:
            self.known[key] = len(self.lists)
            self.lists += words
        return self.known[key]

    def _end(self, members: Members) -> int:
        """Return the list of a match at the end of the text, 0 without one."""
        waiting = [(at, thread, tags) for thread, (at, _, tags) in enumerate(members)]
        found = _followed(self.program, waiting, at_begin=False, at_end=True)
        rows = [(row, 0) for _, row, _ in members]
        return self._list([], rows, found[-1]) if self._matches(found) else 0

    def _matches(self, threads: Sequence[Thread]) -> bool:
        return bool(threads) and isinstance(self.program.code[threads[-1][0]], Match)
