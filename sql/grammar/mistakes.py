"""What was probably meant by a text that the grammar does not take: a change of one token with which it reads on.

Each common mistake is a change: another word for one that is nearly it, quotes around a reserved word, a comma or a parenthesis
that is missing.  A change is offered only when the recognizer gets on with it, so no sentence here is a guess.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from math import inf

from fuseline.sql.parsing.keywords import RESERVED

from ...records import dataclass
from .machine import GrammarMachine
from .parts import END, NUMBER, OTHER_RESERVED, OTHER_WORD, QUOTED

_LONGEST = 20_000  # keys of a text in which mistakes are looked for: each change is a reading of it
_PROGRESS = 3  # keys that a change has to gain where it does not mend all of the text
_NEAR = 0.65
_CLAUSES = ("from", "where", "group", "having", "window", "qualify", "order", "limit", "offset")
_SHOWN = {"group": "GROUP BY", "order": "ORDER BY"}
_SIGNS = {("=", "<"): "<=", ("=", ">"): ">=", ("!", "="): "!=", ("<", ">"): "<>"}
_OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Mistake:
    """A sentence about the key at `place`."""

    place: int
    sentence: str
    gain: float


@dataclass(frozen=True)
class MisreadKeys:
    """Keys that the machine takes up to `wrong`; `words` are the tokens' texts in lower case, key by key."""

    machine: GrammarMachine
    keys: Sequence[str]
    words: Sequence[str]
    wrong: int

    def gain(self, start: int, stop: int, new: Sequence[str]) -> float:
        """Return how many keys behind the wrong one are taken with `new` from `start` to `stop`; infinite for all."""
        changed = [*self.keys[:start], *new, *self.keys[stop:]]
        end = self.machine.run(changed)
        if end is None:
            return inf
        return end - (start + len(new)) + stop - self.wrong


def mistake(misread: MisreadKeys) -> Mistake | None:
    """Return the likeliest mistake; the first of those that mend the whole text, else the one that gains most."""
    if len(misread.keys) > _LONGEST:
        return None
    best: Mistake | None = None
    for look in _LOOKS:
        for found in look(misread):
            if found.gain == inf:
                return found
            if found.gain >= _PROGRESS and (best is None or found.gain > best.gain):
                best = found
    return best


def _order(misread: MisreadKeys) -> Iterator[Mistake]:
    """`group by a where b`: a clause behind one that belongs behind it."""
    word = misread.keys[misread.wrong]
    if word not in _CLAUSES:
        return
    depth, last = 0, None
    for before in reversed(misread.keys[: misread.wrong]):
        depth += (before == ")") - (before == "(")
        if depth < 0 or before in ("select", "union"):
            return
        if depth == 0 and before in _CLAUSES and last is not None:
            if _CLAUSES.index(before) > _CLAUSES.index(word):
                first, second = (_SHOWN.get(each, each.upper()) for each in (word, before))
                yield Mistake(misread.wrong, f"{first} stands before {second}.", inf)
            return
        last = before


def _misspelled(misread: MisreadKeys) -> Iterator[Mistake]:
    """`gruop by`: a word beside the wrong place that is nearly one of the grammar."""
    known = [key for key in dict.fromkeys(misread.machine.keys.values()) if key.isidentifier()]
    for place in (misread.wrong, misread.wrong - 1, misread.wrong - 2):
        word = misread.words[place] if 0 <= place < len(misread.words) else ""
        if (
            len(word) < 2
            or not word.isidentifier()
            or word in RESERVED
            or _is_no_word(misread, place)
        ):
            continue
        letters = sorted(word)
        near = [key for key in known if sorted(key) == letters]
        # A word of the grammar is none at this place, as VALUE of UNPIVOT behind INSERT INTO t
        if word not in known or place == misread.wrong:
            near += difflib.get_close_matches(word, known, n=5, cutoff=_NEAR)
        for key in dict.fromkeys(near):
            if key != word:
                gain = misread.gain(place, place + 1, [key])
                by = " BY" if misread.keys[place + 1] == "by" else ""
                yield Mistake(place, f"Did you mean {key.upper()}{by}?", gain)


def _is_no_word(misread: MisreadKeys, place: int) -> bool:
    return misread.keys[place] in (QUOTED, "'", NUMBER, END)


def _reserved(misread: MisreadKeys) -> Iterator[Mistake]:
    """`create table order`: a word of the grammar as a name, where neither a name is missing nor the word too much."""
    for place in (misread.wrong, misread.wrong - 1):
        word = misread.keys[place]
        if place < 0 or (word not in RESERVED and word != OTHER_RESERVED):
            continue
        name = misread.gain(place, place, [OTHER_WORD])
        gain = misread.gain(place, place + 1, [QUOTED])
        if name >= gain:
            if place < misread.wrong:
                said = f'A name is missing before "{misread.words[place]}".'
                yield Mistake(place, said, name)
        elif gain > max(
            misread.gain(place, place + 1, []),
            misread.gain(misread.wrong, misread.wrong, [OTHER_WORD]),
        ):
            said = "is a word of the grammar: as a name it has to be in double quotes."
            yield Mistake(place, f'"{misread.words[place]}" {said}', gain)


def _foreign(misread: MisreadKeys) -> Iterator[Mistake]:
    """Signs and words of other databases."""
    place = misread.wrong
    before = misread.keys[place - 1] if place else ""
    pair = before, misread.keys[place]
    if pair in _SIGNS:
        gain = misread.gain(place - 1, place + 1, [_SIGNS[pair]])
        yield Mistake(place - 1, f'Did you mean "{_SIGNS[pair]}"?', gain)
    if misread.words[place] == "`":
        yield Mistake(place, "Names are put in double quotes here.", inf)
    if pair[1] == NUMBER and misread.words[place - 1] == "top":
        said = "There is no TOP: write LIMIT at the end of the query."
        yield Mistake(place - 1, said, inf)
    clauses = [key for key in misread.keys[:place] if key in _CLAUSES]
    if pair == (NUMBER, ",") and clauses[-1:] == ["limit"]:
        yield Mistake(
            place,
            "LIMIT takes one number: the rows to leave out stand behind OFFSET.",
            inf,
        )


def _unclosed(misread: MisreadKeys) -> Iterator[Mistake]:
    """`sum(a from t`: a parenthesis that does not close before the wrong place."""
    open_places: list[int] = []
    for place, key in enumerate(misread.keys[: misread.wrong]):
        if key in _OPENING:
            open_places.append(place)
        elif open_places and key in _OPENING.values():
            open_places.pop()
    for count in range(1, min(len(open_places), 8) + 1):
        closing = [_OPENING[misread.keys[place]] for place in reversed(open_places[-count:])]
        gain = misread.gain(misread.wrong, misread.wrong, closing)
        sign = misread.keys[open_places[-count]]
        at_end = " at the end" if misread.keys[misread.wrong] == END else ""
        said = f'This "{sign}" is not closed: "{"".join(closing)}" is missing{at_end}.'
        if not at_end:
            said = f'{said[:-1]} before "{misread.words[misread.wrong]}".'
        yield Mistake(open_places[-count], said, gain)


def _comma(misread: MisreadKeys) -> Iterator[Mistake]:
    """`select a b c`: a comma that is missing, or one too many."""
    word = misread.words[misread.wrong]
    gain = misread.gain(misread.wrong, misread.wrong, [","])
    yield Mistake(misread.wrong, f'A comma is missing before "{word}".', gain)
    for place in (misread.wrong, misread.wrong - 1):
        if place >= 0 and misread.keys[place] == ",":
            gain = misread.gain(place, place + 1, [])
            yield Mistake(place, "This comma is one too many.", gain)


def _surplus(misread: MisreadKeys) -> Iterator[Mistake]:
    """`select (1))`: a sign or word that nothing stands for, or one that is written twice."""
    word = misread.keys[misread.wrong]
    if word in _OPENING.values():
        gain = misread.gain(misread.wrong, misread.wrong + 1, [])
        yield Mistake(misread.wrong, f'This "{word}" closes nothing.', gain)
    elif misread.wrong and word == misread.keys[misread.wrong - 1] and word.isalpha():
        gain = misread.gain(misread.wrong, misread.wrong + 1, [])
        yield Mistake(misread.wrong, f"{word.upper()} is written twice.", gain)


def _label(misread: MisreadKeys) -> Iterator[Mistake]:
    """`select 1 day`: AS is missing before a word that is an alias behind AS alone."""
    word = misread.words[misread.wrong]
    if word[:1].isalpha():
        gain = misread.gain(misread.wrong, misread.wrong, ["as"])
        yield Mistake(misread.wrong, f'AS is missing before "{word}".', gain)


# In this order; where two changes mend a text, the first is the likelier mistake.
_LOOKS: tuple[Callable[[MisreadKeys], Iterator[Mistake]], ...] = (
    _foreign,
    _order,
    _misspelled,
    _surplus,
    _unclosed,
    _reserved,
    _label,
    _comma,
)
