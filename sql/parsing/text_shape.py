"""The shape of a text: its tokens with a mark in the place of each number and string, so that texts of one shape differ in these alone.

Reads tokens without a parser.  Where it takes two tokens for one, or one for two, texts have other shapes and nothing else happens: what is
no literal to the parser, at the same place and with the same value, is tied to its own text (`TextSlots.mark`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING

from sqlglot import exp

from fuseline.errors import FuselineError, Span
from fuseline.plan.expr import Literal, Value
from fuseline.plan.literals import literal, number
from fuseline.plan.shapes.guards import PlanGuards
from fuseline.plan.types import VARCHAR

from ...records import dataclass

if TYPE_CHECKING:
    from .pieces import Piece, Written
    from .unread import Tree

MOST_CHARACTERS = 20_000
MOST_SLOTS = 64  # each pair may be compared while planning
_TOKEN = re.compile(
    r"(?:\s+|--[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)*+"
    r"(?:(?P<escaped>(?:[eEbBxX]|[uU]&)'(?:[^'\\]|\\.|'')*')"
    r"|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>\"(?:[^\"]|\"\")*\")"
    r"|(?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"
    r"|(?P<word>\$?[^\W\d]\w*|\$\d+)"
    r"|(?P<number>(?:\d\w*(?:\.\d*)?|\.\d+)(?:(?<=[eE])[+-]\d+|[eE][+-]?\d+)?)"
    r"|(?P<sign>[(),;.\[\]{}]|(?:(?!--|/\*)[-+*/<>=~!@#%^&|:`\\?])+)|\Z)",
    re.DOTALL,
)
_LITERALS = ("text", "number")
LONGEST_NUMBER = 4_000  # characters; Python reads no integer of more than 4,300 digits
_NUMBER = re.compile(r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_STARTS = frozenset(["select", "with", "from", "values", "(", "insert"])
_PLAIN = (
    int,
    float,
    str,
    Decimal,
    date,
    datetime,
)  # types of parameters that a plan may serve several values of

Parameters = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class TextShape:
    """A text that is one query or INSERT: what it has in common with others, and its own literals, parameters among them.

    `places` are those of its tokens, `tokens` says which of them is the literal of each slot of the text; parameters have the slots behind.
    """

    text: str
    key: Hashable
    literals: tuple[Literal, ...]
    places: tuple[tuple[int, int], ...]
    tokens: tuple[int, ...]
    parameters: Mapping[int | str, int]

    @property
    def values(self) -> list[Value]:
        return [each.value for each in self.literals]

    def like(self, other: TextShape, span: Span) -> Span:
        """Return the place in this text of what stands at a place of another of the same shape."""
        if span.view is not None:
            return span
        first = bisect_right(other.places, span.start, key=itemgetter(1))  # ends behind the start
        last = bisect_left(other.places, span.end, key=itemgetter(1))
        if max(first, last) >= len(self.places):
            return Span(0, len(self.text))
        (start, _), (own, own_end) = other.places[first], self.places[first]
        begin = min(own + max(span.start - start, 0), own_end)
        whole = other.places[last][1] == span.end
        (start, _), (own, own_end) = other.places[last], self.places[last]
        return Span(begin, own_end if whole else min(own + span.end - start, own_end))


def text_shape(text: str, params: Parameters) -> TextShape | None:
    """Return the shape of a text that is one query or INSERT of a moderate length; None for others."""
    if len(text) > MOST_CHARACTERS:
        return None
    key: list[Hashable] = []
    literals: list[Literal] = []
    places: list[tuple[int, int]] = []
    tokens: list[int] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            return None
        end = found.end()
        kind = found.lastgroup
        if kind is None:  # nothing but blanks before the end
            continue
        token = found[kind]
        made = _literal(kind, token) if kind in _LITERALS else None
        if made is not None:
            tokens.append(len(places))
            literals.append(made)
        key.append(token if made is None else made.type)
        places.append((found.start(kind), end))
    if key[-1:] == [";"]:
        key.pop()
    if end < len(text) or not key or ";" in key or str(key[0]).lower() not in _STARTS:
        return None
    given = _given(params, len(literals))
    if given is None or len(literals) + len(given.literals) > MOST_SLOTS:
        return None
    slots = (*literals, *given.literals)
    return TextShape(
        text, (tuple(key), given.key), slots, tuple(places), tuple(tokens), given.places
    )


def _literal(kind: str | None, token: str) -> Literal | None:
    if kind == "text":
        return Literal(token[1:-1].replace("''", "'"), VARCHAR)
    if kind != "number" or len(token) > LONGEST_NUMBER or not _NUMBER.fullmatch(token):
        return None
    try:
        return number(token, leading_zero=not token.startswith("."))
    except (FuselineError, ArithmeticError):
        return None


@dataclass(frozen=True, slots=True)
class _GivenParameters:
    """Parameters: those with a slot, and what is a part of the shape."""

    literals: Sequence[Literal]
    key: Hashable
    places: Mapping[int | str, int]


def _given(params: Parameters, first: int) -> _GivenParameters | None:
    if params is None:
        return _GivenParameters((), None, {})
    if isinstance(params, Mapping):
        named: list[tuple[int | str, object]] = list(params.items())
    else:
        named = list(enumerate(params, 1))
    literals: list[Literal] = []
    key: list[Hashable] = []
    places: dict[int | str, int] = {}
    for name, value in named:
        if type(value) not in _PLAIN:
            return None
        try:
            made = literal(value)
        except FuselineError:
            return None
        places[name] = first + len(literals)
        literals.append(made)
        key.append((name, made.type))
    return _GivenParameters(literals, (type(params) is dict, tuple(key)), places)


@dataclass(frozen=True, slots=True)
class NamedPiece:
    """Tokens `first` to `last` of a text, of which the name of a column is made."""

    first: int
    last: int
    text: str
    name: str
    make: Callable[[str], str]

    def text_in(self, shape: TextShape) -> str:
        return shape.text[shape.places[self.first][0] : shape.places[self.last][1]]

    def has_its_name(self, shape: TextShape) -> bool:
        """Whether the same tokens of another text make the same name."""
        text = self.text_in(shape)
        return text == self.text or self.make(text) == self.name


@dataclass
class TextSlots:
    """The slots of a text that is being bound, and pieces of it that became names of columns."""

    shape: TextShape
    guards: PlanGuards = field(init=False)
    names: list[NamedPiece] = field(default_factory=list)
    reads_rows = False  # whether the plan depends on rows that it does not read

    def __post_init__(self) -> None:
        self.guards = PlanGuards(self.shape.values, [each.type for each in self.shape.literals])

    def __deepcopy__(self, memo: object) -> TextSlots:
        return self  # of the nodes of sqlglot, which copies what they carry

    def mark(self, tree: Tree, piece: Piece) -> None:
        """Have the literals of a tree read from their slots; tie the plan to the texts of those that are none in it."""
        if piece.text is not self.shape.text:
            return
        assert piece.start == 0, "a shape is of one statement"
        starts = {self.shape.places[t][0]: n for n, t in enumerate(self.shape.tokens)}
        met: set[int] = set()
        for node in tree.nodes:
            if type(node) is exp.Literal:
                slot = starts.get(node.meta.get("first", -1))
                if slot is not None and self._is_whole(node, slot):
                    node.__class__ = SlotNode
                    node.meta["slot"] = slot, self
                    met.add(slot)
        for slot in range(len(self.shape.tokens)):
            if slot not in met:
                self.guards.note_same(slot)

    def _is_whole(self, node: exp.Literal, slot: int) -> bool:
        start, end = self.shape.places[self.shape.tokens[slot]]
        written = self.shape.text[start:end]
        if node.meta.get("last") != end:
            return False
        if node.is_string:
            return written[0] == "'" and node.args["this"] == self.shape.literals[slot].value
        return node.args["this"] == written

    def note_name(self, item: Written, name: str, make: Callable[[str], str]) -> None:
        """Tie the plan to the name of a column that has none but how it is written."""
        first = bisect_left(self.shape.places, (item.start, 0))
        last = bisect_left(self.shape.places, (item.start + len(item.text), 0)) - 1
        piece = NamedPiece(first, last, item.text, name, make)
        # Of a view or a macro it is another text
        if first <= last < len(self.shape.places) and piece.text_in(self.shape) == item.text:
            self.names.append(piece)

    def parameter(self, key: int | str, span: Span | None) -> Literal | None:
        """Return the literal for a parameter, None for one that has no slot."""
        place = self.shape.parameters.get(key)
        return None if place is None else self.guards.slots[place].at(span)


class SlotNode(exp.Literal):
    """A literal of the tree that has a slot: who reads its text ties the plan to it."""

    __slots__ = ()

    def slot(self, span: Span | None) -> Literal:
        """Return the typed literal."""
        number, slots = self.meta["slot"]
        found: Literal = slots.guards.slots[number].at(span)
        return found

    def _read(self) -> str:
        number, slots = self.meta["slot"]
        slots.guards.note_same(number)
        text: str = self.args["this"]
        return text

    @property
    def this(self) -> str:
        return self._read()

    def text(self, key: str) -> str:
        return self._read() if key == "this" else ""

    def __eq__(self, other: object) -> bool:
        self._read()
        return super().__eq__(other)

    def __hash__(self) -> int:
        self._read()
        return super().__hash__()


SlotNode.key = "literal"  # which sqlglot has made of the class's name
