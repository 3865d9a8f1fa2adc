"""Sequences: what CREATE SEQUENCE says of one, the values that it has given, and the functions of SQL that ask it for some."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sized
from dataclasses import field
from typing import TYPE_CHECKING

from ...errors import SequenceError
from ...records import dataclass
from ..types import BIGINT, BOOLEAN, DataType
from ..udf.python_function import PythonFunction
from .catalog_objects import IfThere, ObjectName
from .database_changes import Writes

if TYPE_CHECKING:
    import pyarrow as pa

LEAST, MOST = BIGINT.integer_range


@dataclass(frozen=True)
class SequenceValues:
    """What a sequence counts: from `start` by steps of `increment`, from `least` to `most`, and from the other end again with `cycle`."""

    start: int = 1
    increment: int = 1
    least: int = 1
    most: int = MOST
    cycle: bool = False

    def left(self, following: int) -> int:
        """Return how many values there are from `following` on before the end; as in DuckDB one whose successor is no BIGINT is none."""
        step = self.increment
        first, last = (self.least, self.most) if step > 0 else (-self.most, -self.least)
        value, size = (following, step) if step > 0 else (-following, -step)
        if not self.cycle:
            last = min(last, (MOST if step > 0 else -LEAST) - size)
        return (last - value) // size + 1 if first <= value <= last else 0

    @property
    def first_again(self) -> int:
        return self.least if self.increment > 0 else self.most


@dataclass(frozen=True)
class Position:
    """How far a sequence is: the value that comes next, and the last one that it gave."""

    following: int
    last: int | None = None


@dataclass(eq=False)
class Sequence:
    """A sequence by its name; a value that it has given is gone, also for a transaction that is rolled back.

    `keep` writes down how far it is, before values are handed out.
    """

    name: str
    values: SequenceValues
    position: Position
    keep: Callable[[], object] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def new(cls, name: str, values: SequenceValues) -> Sequence:
        return cls(name, values, Position(values.start))

    def take(self, count: int) -> list[range]:
        """Give the next `count` values, as ranges of them; raises `SequenceError` where it has fewer left, which are gone then."""
        with self.lock:
            found: list[range] = []
            following, before = self.position.following, self.position
            step = self.values.increment
            while count:
                many = min(count, self.values.left(following))
                if not many and self.values.cycle:
                    following = self.values.first_again
                    continue
                if not many:
                    break
                found.append(range(following, following + many * step, step))
                following, count = following + many * step, count - many
            if self.values.cycle and not self.values.left(following):
                following = self.values.first_again
            if found:
                self._move(Position(following, found[-1][-1]), before)
            if count:
                raise self._ended()
            return found

    def last(self) -> int:
        """Return the value that was given last; raises `SequenceError` where there is none yet."""
        if self.position.last is None:
            raise SequenceError(
                f"The sequence \"{self.name}\" has given no value yet: ask nextval('{self.name}') first."
            )
        return self.position.last

    def set(self, value: int, is_given: bool) -> int:
        """Go on behind a value, or with it; raises `SequenceError` for one that is not between its bounds."""
        values = self.values
        with self.lock:
            if not values.least <= value <= values.most:
                raise SequenceError(
                    f'setval: {value} is not a value of the sequence "{self.name}", which counts from {values.least} to {values.most}.'
                )
            following = value + values.increment if is_given else value
            if values.cycle and not values.left(following):
                following = values.first_again
            before = self.position
            self._move(Position(following, value if is_given else before.last), before)
        return value

    def _move(self, position: Position, before: Position) -> None:
        self.position = position
        if self.keep is not None:
            try:
                self.keep()
            except BaseException:
                self.position = before
                raise

    def _ended(self) -> SequenceError:
        up = self.values.increment > 0
        end, bound = ("greatest", self.values.most) if up else ("least", self.values.least)
        return SequenceError(
            f'The sequence "{self.name}" has no further value: {bound} is its {end} one. Make it anew with another '
            f"{'MAXVALUE' if up else 'MINVALUE'}, or with CYCLE."
        )


@dataclass(frozen=True)
class CreateSequence(Writes):
    """CREATE [OR REPLACE] [TEMP] SEQUENCE [IF NOT EXISTS] name ..."""

    name: ObjectName
    values: SequenceValues
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class DropSequence(Writes):
    """DROP SEQUENCE [IF EXISTS] name [CASCADE], which takes the tables along whose defaults ask it."""

    parts: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


_NAMED = re.compile(r"\b(?:nextval|currval|setval)\s*\(\s*'((?:[^']|'')*)'", re.IGNORECASE)
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".\s]+))\s*(\.|$)')


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a name as nextval() takes it, such as 's', 'main.s' and '"my s"'; none of a text that is no name.

    >>> parts_of('shop.main."the ""best"" s"')
    ('shop', 'main', 'the "best" s')
    """
    parts: list[str] = []
    place = 0
    while place < len(name) or not parts:
        found = _PART.match(name, place)
        if found is None:
            return ()
        parts.append(found[2] or found[1].replace('""', '"'))
        place = found.end()
    return () if name.endswith(".") else tuple(parts)


def named_sequences(text: str) -> list[tuple[str, ...]]:
    """Return the names of sequences that the text of an expression asks."""
    return [parts_of(name.replace("''", "'")) for name in _NAMED.findall(text)]


SequenceStatement = CreateSequence | DropSequence


def next_values(sequence: Sequence) -> PythonFunction:
    """Return nextval() of a sequence, which takes the number of the row."""

    def python(rows: Sized) -> object:
        import numpy as np

        parts = sequence.take(len(rows))
        return np.concatenate([p.start + p.step * np.arange(len(p), dtype=np.int64) for p in parts])

    return _function("nextval", python, (BIGINT,))


def last_values(sequence: Sequence) -> PythonFunction:
    """Return currval() of a sequence, which takes the number of the row."""

    def python(rows: Sized) -> object:
        return [sequence.last()] * len(rows)

    return _function("currval", python, (BIGINT,))


def set_values(sequence: Sequence) -> PythonFunction:
    """Return setval() of a sequence, which takes values, and whether each counts as given."""

    def python(values: pa.Array, given: pa.Array) -> object:
        pairs = zip(values.to_pylist(), given.to_pylist(), strict=True)
        return [sequence.set(*pair) for pair in pairs]

    return _function("setval", python, (BIGINT, BOOLEAN))


def _function(
    name: str, python: Callable[..., object], parameters: tuple[DataType, ...]
) -> PythonFunction:
    return PythonFunction(name, python, parameters, BIGINT, "vectorized", side_effects=True)


FUNCTIONS = {"nextval": next_values, "currval": last_values, "setval": set_values}
