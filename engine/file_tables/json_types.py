"""Which types values of JSON have together, found out from a sample as DuckDB does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

import pyarrow as pa

from ..errors import TypeMismatch
from ..plan import types as ty
from ..plan.arrow.arrow_arrays import array_from
from ..plan.json.documents import Digits
from ..records import dataclass
from .text_types import CLOCK, Conversion, fits

MOST_LEVELS = 45  # of types within each other: rows are kept as Parquet, which has 48 of lists
MOST_FIELDS = 200  # of an object whose values are of one type: with more it is a MAP
LEAST_APPEARANCE = 0.1  # of a field, on average; with less an object is a MAP
_LONG_CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
_DAY = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_UUID = re.compile(r"(?i:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})")
# DuckDB tries some orders of day, month and year, and names of moments
_OTHER_DAY = re.compile(
    rf"\s*[0-9]{{1,3}}-[0-9]{{1,2}}-[0-9]{{1,4}}( {CLOCK}( [AaPp][Mm])?)?|(?i:-?infinity|epoch)"
)
_FORMS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (ty.DATE, _DAY),
        (ty.TIME, CLOCK),
        # Of one form all: DuckDB has three formats for them
        (ty.TIMESTAMP, rf"{_DAY} {_LONG_CLOCK}"),
        (ty.TIMESTAMP, rf"{_DAY} {_LONG_CLOCK}\.[0-9]+"),
        (ty.TIMESTAMP, rf"{_DAY}T{_LONG_CLOCK}"),
        (ty.TIMESTAMPTZ, rf"{_DAY}[ T]{CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)"),
    )
)
_SMALLEST, _LARGEST, _UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
# Texts that are a whole number and nothing else: no zeros before it, and no sign but a minus
_WHOLE = re.compile(r"\s*-?(?!0[0-9])[0-9][0-9a-fA-FxXbB]*\s*")


@dataclass(frozen=True)
class Guessing:
    """How types are found out: by formats of DATE and TIMESTAMP, by what makes a MAP of objects, and whether texts may be whole numbers."""

    formats: tuple[Conversion, ...] = ()
    most_fields: int | None = MOST_FIELDS  # None: no object is a MAP for what it holds
    least_appearance: float = LEAST_APPEARANCE
    whole_texts: bool = False


_NUMBERS = frozenset(["positive", "negative", "large", "double"])


@dataclass
class Shape:
    """What values in one place of their records are."""

    count: int = 0
    nulls: int = 0
    kinds: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    elements: Shape | None = None
    fields: dict[str, Shape] = field(default_factory=dict)

    def add(self, value: object) -> None:
        self.count += 1
        match value:
            case None:
                self.nulls += 1
            case bool():
                self.kinds.add("boolean")
            case int():
                self.kinds.add(_size(value))
            case float() | Digits():
                self.kinds.add("double")
            case str():
                self.kinds.add("text")
                self.texts.add(value)
            case list():
                self.kinds.add("list")
                self.elements = self.elements or Shape()
                for element in value:
                    self.elements.add(element)
            case dict():
                self.kinds.add("object")
                for name, element in value.items():
                    self.fields.setdefault(name, Shape()).add(element)

    def join(self, other: Shape) -> None:
        """Take in what other values are."""
        self.count, self.nulls = self.count + other.count, self.nulls + other.nulls
        self.kinds |= other.kinds
        self.texts |= other.texts
        if other.elements is not None:
            self.elements = self.elements or Shape()
            self.elements.join(other.elements)
        for name, part in other.fields.items():
            self.fields.setdefault(name, Shape()).join(part)

    @property
    def is_record(self) -> bool:
        """Whether all values are objects, or nothing."""
        return self.kinds == {"object"}


def _size(value: int) -> str:
    if value < 0:
        return "negative" if value >= _SMALLEST else "double"
    return "positive" if value <= _LARGEST else "large" if value <= _UNSIGNED else "double"


def type_of_shape(shape: Shape, guessing: Guessing, depth: int) -> ty.DataType:
    """Return the type of values, of the kind OTHER where it is one that queries do not have; below `depth` values are JSON."""
    if depth == 0:
        return ty.JSON
    kinds, below = shape.kinds, depth - 1
    if not kinds:
        return ty.DataType(ty.Kind.NULL)
    if kinds == {"boolean"}:
        return ty.BOOLEAN
    if kinds <= _NUMBERS:
        if "double" in kinds:
            return ty.DOUBLE
        return ty.BIGINT if kinds in ({"positive"}, {"negative"}) else ty.HUGEINT
    if kinds == {"text"}:
        return _type_of_texts(shape.texts, guessing)
    if kinds == {"list"}:
        assert shape.elements is not None
        child = ty.JSON
        if shape.elements.count:
            child = type_of_shape(shape.elements, guessing, below)
        return _other(f"{child}[]") if child.kind is ty.Kind.OTHER else ty.list_of(child)
    return _type_of_objects(shape, guessing, below) if kinds == {"object"} else ty.JSON


def _type_of_objects(shape: Shape, guessing: Guessing, depth: int) -> ty.DataType:
    if is_map(shape, guessing):
        values = Shape()
        for part in shape.fields.values():
            values.join(part)
        kind = type_of_shape(values, guessing, depth) if values.kinds else ty.JSON
        return kind if kind.kind is ty.Kind.OTHER else ty.map_of(ty.VARCHAR, kind)
    fields = [(name, type_of_shape(part, guessing, depth)) for name, part in shape.fields.items()]
    wrong = [kind for _, kind in fields if kind.kind is ty.Kind.OTHER]
    if wrong:
        return _other(f"STRUCT with {str(wrong[0]).removeprefix('STRUCT with ')}")
    try:
        return ty.struct_of(fields)
    except TypeMismatch:  # names that differ in case alone
        return _other("STRUCT with two fields of a name")


def is_map(shape: Shape, guessing: Guessing) -> bool:
    """Whether objects have so many or so rare fields that DuckDB makes a MAP of them."""
    fields = shape.fields.values()
    if not fields or "" in shape.fields:
        return True
    if guessing.most_fields is None:
        return False
    known = max(shape.count - shape.nulls, 1)
    if sum(part.count / known for part in fields) / len(fields) < guessing.least_appearance:
        return True
    return len(fields) >= guessing.most_fields and _agree(list(fields))


def _agree(parts: Sequence[Shape]) -> bool:
    """Whether the values of fields are of one kind, which numbers are, and so are their elements and their fields of one name."""
    kinds = {"number" if kind in _NUMBERS else kind for part in parts for kind in part.kinds}
    elements = [part.elements for part in parts if part.elements is not None]
    named: dict[str, list[Shape]] = {}
    for part in parts:
        for name, inner in part.fields.items():
            named.setdefault(name, []).append(inner)
    return (
        len(kinds) <= 1 and (not elements or _agree(elements)) and all(map(_agree, named.values()))
    )


def _type_of_texts(texts: set[str], guessing: Guessing) -> ty.DataType:
    values = array_from(sorted(texts), pa.string())
    whole = guessing.whole_texts and all(map(_WHOLE.fullmatch, texts))
    if whole and fits(values, Conversion(ty.BIGINT)):
        return ty.BIGINT
    given = {conversion.type: conversion for conversion in guessing.formats}
    for kind, pattern in _FORMS:
        if kind in given:
            if fits(values, given[kind]):
                return kind
        elif all(map(pattern.fullmatch, texts)) and fits(values, Conversion(kind)):
            return kind
    if not guessing.formats and all(map(_OTHER_DAY.fullmatch, texts)):
        return _other("DATE or TIMESTAMP in a form that dateformat or timestampformat has to tell")
    return ty.UUID if all(map(_UUID.fullmatch, texts)) else ty.VARCHAR


def _other(name: str) -> ty.DataType:
    return ty.DataType(ty.Kind.OTHER, name=name)
