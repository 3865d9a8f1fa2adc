"""The rules of the grammar as parts, and the keys of tokens that each may begin with and be followed by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fuseline.sql.parsing.keywords import NO_LABELS, RESERVED

from ...records import dataclass

# Tokens as keys: words and signs of the grammar are keys themselves, the others one of these.
QUOTED, STRING, NUMBER, OTHER_SIGN, END = '"', "'", "1", "other sign", "end of text"
OTHER_WORD, OTHER_RESERVED, OTHER_NO_LABEL = "other word", "other reserved", "other no alias"

_BEHIND = "behind "  # and a rule's name stand for the keys that follow that rule

_WITHOUT_COMMAS = ("extract", "position")
_TERM = re.compile(r"'([^']+)'|([A-Z]+)|([a-z_]+)|([()/?*+])")

Keys = frozenset[str]


@dataclass(frozen=True, slots=True)
class GrammarPart:
    """A term of a rule: a set of keys, a rule's name, or others joined by `kind`."""

    kind: str  # "keys", "rule", "row", or a sign of the notation: / ? * +
    parts: tuple[GrammarPart, ...] = ()
    keys: Keys = frozenset()
    rule: str = ""


class GrammarRules:
    """The rules as parts, and the keys that each part may begin with."""

    def __init__(self, text: str) -> None:
        literals = frozenset(found[1] for found in _TERM.finditer(text) if found[1])
        words = frozenset(literal for literal in literals if literal[0].isalpha())
        # The keys of words and signs; those without one here are OTHER_WORD or OTHER_SIGN.
        self.keys = dict.fromkeys(RESERVED, OTHER_RESERVED)
        self.keys |= dict.fromkeys(NO_LABELS, OTHER_NO_LABEL)
        self.keys |= {literal: literal for literal in literals}
        any_word = words | {QUOTED, OTHER_WORD, OTHER_NO_LABEL, OTHER_RESERVED}
        self._kinds = {
            "NAME": any_word - RESERVED - {OTHER_RESERVED},
            "FUNCTION": any_word - RESERVED - {OTHER_RESERVED, *_WITHOUT_COMMAS},
            "LABEL": any_word,
            "ALIAS": any_word - RESERVED - NO_LABELS - {OTHER_RESERVED, OTHER_NO_LABEL},
            "STRING": frozenset([STRING]),
            "NUMBER": frozenset([NUMBER]),
        }
        self._firsts: dict[str, tuple[Keys, bool]] = {}
        self.rules: dict[str, GrammarPart] = {}
        for name, terms in _split(text):
            waiting = list(reversed(terms))
            self.rules[name] = self._choice(waiting)

    def _choice(self, waiting: list[tuple[str, str]]) -> GrammarPart:
        options = [self._row(waiting)]
        while waiting and waiting[-1] == ("sign", "/"):
            waiting.pop()
            options.append(self._row(waiting))
        if all(option.kind == "keys" for option in options):
            return GrammarPart("keys", keys=frozenset().union(*(option.keys for option in options)))
        return options[0] if len(options) == 1 else GrammarPart("/", tuple(options))

    def _row(self, waiting: list[tuple[str, str]]) -> GrammarPart:
        parts = []
        while waiting and waiting[-1] not in (("sign", "/"), ("sign", ")")):
            kind, text = waiting.pop()
            if kind == "literal":
                part = GrammarPart("keys", keys=frozenset([text]))
            elif kind == "kind":
                part = GrammarPart("keys", keys=self._kinds[text])
            elif kind == "rule":
                part = GrammarPart("rule", rule=text)
            else:  # an opening parenthesis
                part = self._choice(waiting)
                waiting.pop()
            if waiting and waiting[-1] in (("sign", "?"), ("sign", "*"), ("sign", "+")):
                part = GrammarPart(waiting.pop()[1], (part,))
            parts.append(part)
        return parts[0] if len(parts) == 1 else GrammarPart("row", tuple(parts))

    def first(self, part: GrammarPart) -> tuple[Keys, bool]:
        """Return the keys that a part may begin with, and whether it may be empty."""
        match part.kind:
            case "keys":
                return part.keys, False
            case "rule":
                if part.rule not in self._firsts:
                    self._firsts[part.rule] = self.first(self.rules[part.rule])
                return self._firsts[part.rule]
            case "row":
                return self._first_of_row(part.parts)
            case "/":
                firsts = [self.first(option) for option in part.parts]
                return frozenset().union(*(keys for keys, _ in firsts)), any(e for _, e in firsts)
        keys, empty = self.first(part.parts[0])
        return keys, empty or part.kind != "+"

    def follows(self) -> dict[str, Keys]:
        """Return the keys that may follow each rule."""
        found: dict[str, Keys] = dict.fromkeys(self.rules, frozenset())
        found["statement"] = frozenset([END])
        marks = {_BEHIND + name: name for name in self.rules}
        for name, part in self.rules.items():
            self._spread(part, frozenset([_BEHIND + name]), found)
        ending = {name: [marks[k] for k in keys & marks.keys()] for name, keys in found.items()}
        before: dict[str, Keys] = {}
        while found != before:
            before = dict(found)
            for name, others in ending.items():
                found[name] = found[name].union(*(found[other] for other in others))
        return {name: keys - marks.keys() for name, keys in found.items()}

    def _spread(self, part: GrammarPart, after: Keys, found: dict[str, Keys]) -> None:
        if part.kind == "rule":
            found[part.rule] |= after
        elif part.kind == "row":
            for each, following in self.with_following(part.parts, after):
                self._spread(each, following, found)
        else:
            if part.kind in "*+":
                after |= self.first(part)[0]
            for each in part.parts:
                self._spread(each, after, found)

    def with_following(
        self, parts: Sequence[GrammarPart], after: Keys
    ) -> list[tuple[GrammarPart, Keys]]:
        """Return the parts of a row, each with the keys that may follow it."""
        found = []
        for part in reversed(parts):
            found.append((part, after))
            keys, empty = self.first(part)
            after = keys | after if empty else keys
        return found[::-1]

    def _first_of_row(self, parts: Iterable[GrammarPart]) -> tuple[Keys, bool]:
        found: Keys = frozenset()
        for part in parts:
            keys, empty = self.first(part)
            found |= keys
            if not empty:
                return found, False
        return found, True


def _split(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each rule's name and its terms as pairs of kind and text."""
    for rule in re.split(r"\n+(?=\w)", text.strip()):
        name, body = rule.split("<-", 1)
        terms = []
        for literal, kind, reference, sign in _TERM.findall(body):
            if literal:
                terms.append(("literal", literal))
            elif kind:
                terms.append(("kind", kind))
            else:
                terms.append(("rule", reference) if reference else ("sign", sign))
        yield name.strip(), terms
