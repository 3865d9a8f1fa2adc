"""Documents as values of other types by kernels (`handwritten.cpu.functions_json_fields_cpu`), which read texts where they lie.

300,000 documents of 90 bytes as a STRUCT of three fields take 0.2 s of CPU time, and 7 where Python reads each of them (a busy machine);
`json_scan.FEW_DOCUMENTS` = inf switches the kernels off.  Documents that they do not read are left to Python, as are types of JSON's own values.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .....codegen.compile.compiler import parameters
from .....plan import types as ty
from .....plan.arrow.arrow_arrays import array_from, from_numpy
from .....records import dataclass
from ... import table as tables
from ...handwritten_kernels import HandwrittenKernels, KernelsByName
from ...nested_arrays import Ints, Mask, list_array, struct_array
from ...sort.text_hashes import buffers_of
from ..nested.nested_casts import of_length
from ..vectors import Array, Vector
from . import json_scan
from .json_texts import CastVector

# What a document is, as in the kernels
NOTHING, FIELDS, WITH_OTHERS, LIST, OTHER, NOT_READ = range(6)
WHOLE, SHORT, REAL, LONG, TRUTH, TEXT, ESCAPED_TEXT, CONTAINER, WRONG = range(1, 10)
_OF_TEXTS = (TEXT, ESCAPED_TEXT)
_MOMENTS = (ty.Kind.DATE, ty.Kind.TIME, ty.Kind.TIMESTAMP)

_PART = parameters("text [uint8], begins ends [int64]")
_SPAN = parameters("start stop int64")
READING = HandwrittenKernels(
    "functions_json_fields_cpu.py",
    {
        "json_fields": [
            *_PART,
            *parameters("keys [uint8], key_ends [int64]"),
            *_SPAN,
            *parameters("field_begins field_ends [int64], kinds [uint8]"),
        ],
        "json_elements": [
            *_PART,
            *parameters("offsets [int64]"),
            *_SPAN,
            *parameters("element_begins element_ends lengths [int64], kinds [uint8]"),
        ],
        "json_scalars": [
            *_PART,
            *_SPAN,
            *parameters("whole [int64], real [float64], kinds [uint8]"),
        ],
        "copy_parts": json_scan.COPYING,
    },
    uses=("functions_json_cpu.py",),
)


def is_read(kind: ty.DataType) -> bool:
    """Whether kernels read documents as values of a type."""
    match kind.kind:
        case ty.Kind.LIST:
            return is_read(kind.children[0])
        case ty.Kind.STRUCT:
            return not kind.is_tuple and all(map(is_read, kind.children))
        case ty.Kind.VARCHAR:
            return kind == ty.VARCHAR
    of_numbers = kind.is_numeric or kind.kind is ty.Kind.BOOLEAN
    return (of_numbers and not kind.is_enum) or kind.kind in _MOMENTS


@dataclass(frozen=True)
class Documents:
    """Parts of one text: where each begins and ends, -1 for none, and the row that it belongs to."""

    begins: Ints
    ends: Ints
    rows: Ints

    @classmethod
    def of(cls, texts: pa.Array) -> Documents:
        offsets = buffers_of(texts)[1].astype(np.int64)
        begins, valid = offsets[:-1].copy(), tables.validity(texts)
        if valid is not None:
            begins[~valid] = -1
        return cls(begins, offsets[1:], np.arange(len(texts)))


@dataclass(frozen=True)
class Scalars:
    """Numbers among documents, true as 1, and what each document is."""

    whole: Ints
    real: npt.NDArray[np.float64]
    kinds: Array


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents as a type; `unread` has the rows of those that are left to others.

    With `strict` these are also all that is none of its type; with `closed` objects that have other fields than their STRUCT, and with
    `complete` those that lack one.
    """

    kernels: KernelsByName
    text: Array
    cast: CastVector
    unread: Mask
    strict: bool
    closed: bool
    complete: bool

    def column(self, given: Documents, kind: ty.DataType) -> pa.Array:
        """Return documents as a physical array."""
        match kind.kind:
            case ty.Kind.LIST:
                return self._lists(given, kind)
            case ty.Kind.STRUCT:
                return self._structs(given, kind)
        return self._scalars(given, kind)

    def _structs(self, given: Documents, kind: ty.DataType) -> pa.Array:
        rows, names = len(given.rows), [name.encode() for name in kind.names]
        keys = np.frombuffer(b"".join(names), np.uint8)
        key_ends = np.array(list(accumulate(map(len, names), initial=0)), np.int64)
        begins, ends = np.empty((2, len(names) * rows), np.int64)
        kinds = np.empty(rows, np.uint8)
        read = self.kernels["json_fields"]
        for start, stop in json_scan.spans(rows):
            read(self.text, given.begins, given.ends, keys, key_ends, start, stop, begins, ends, kinds)  # fmt: skip
        wrong = kinds == NOT_READ
        fields = list(
            zip(begins.reshape(len(names), rows), ends.reshape(len(names), rows), strict=True)
        )
        if self.strict:
            wrong |= (kinds == LIST) | (kinds == OTHER)
        if self.complete:
            for missing, _ in fields:
                wrong |= (kinds != NOTHING) & (missing < 0)
        if self.closed:
            wrong |= kinds == WITH_OTHERS
        self.unread[given.rows[wrong]] = True
        made = [
            self.column(Documents(*field, given.rows), child)
            for field, child in zip(fields, kind.children, strict=True)
        ]
        return struct_array(made, kinds != NOTHING, tables.physical_type(kind))

    def _lists(self, given: Documents, kind: ty.DataType) -> pa.Array:
        rows, none = len(given.rows), np.zeros(0, np.int64)
        lengths, kinds = np.empty(rows, np.int64), np.empty(rows, np.uint8)
        read = self.kernels["json_elements"]
        for start, stop in json_scan.spans(rows):
            read(self.text, given.begins, given.ends, none, start, stop, none, none, lengths, kinds)
        wrong = kinds == NOT_READ
        if self.strict:
            wrong |= kinds == OTHER
        self.unread[given.rows[wrong]] = True
        offsets = np.cumsum(lengths) - lengths
        begins, ends = np.empty((2, int(lengths.sum())), np.int64)
        for start, stop in json_scan.spans(rows):
            read(self.text, given.begins, given.ends, offsets, start, stop, begins, ends, lengths, kinds)  # fmt: skip
        inside = Documents(begins, ends, np.repeat(given.rows, lengths))
        elements = self.column(inside, kind.children[0])
        made = list_array(lengths, elements, kinds == LIST, tables.physical_type(kind))
        return of_length(made, kind, not self.strict) if kind.is_array else made

    def scalars(self, given: Documents) -> Scalars:
        """Return what documents are, which have no blanks around them then."""
        rows = len(given.rows)
        found = Scalars(np.empty(rows, np.int64), np.empty(rows), np.empty(rows, np.uint8))
        read = self.kernels["json_scalars"]
        for start, stop in json_scan.spans(rows):
            read(self.text, given.begins, given.ends, start, stop, found.whole, found.real, found.kinds)  # fmt: skip
        return found

    def _scalars(self, given: Documents, kind: ty.DataType) -> pa.Array:
        found, rows = self.scalars(given), len(given.rows)
        kinds = found.kinds
        if kind.kind is ty.Kind.VARCHAR:
            wrong = np.isin(kinds, (REAL, LONG, CONTAINER, WRONG))
            self.unread[given.rows[wrong]] = True
            return self.texts(given, kinds, (kinds != NOTHING) & ~wrong)
        of_numbers = kind.is_numeric or kind.kind is ty.Kind.BOOLEAN
        is_exact = kind.is_decimal and not kind.is_whole
        wrong = kinds == WRONG
        if self.strict:
            wrong |= (kinds == CONTAINER) | (kind.is_whole & np.isin(kinds, _OF_TEXTS))
            wrong |= (kinds >= WHOLE) & (kinds <= TRUTH) & (not of_numbers)
        texts, broken = np.isin(kinds, _OF_TEXTS), np.isin(kinds, (SHORT, REAL, LONG))
        if is_exact:
            wrong |= kinds == LONG
            texts |= broken & ~wrong
        elif of_numbers:
            self.read_long(given, found)
        self.unread[given.rows[wrong]] = True
        made = pa.nulls(rows, tables.physical_type(kind))
        parts: list[tuple[Mask, Callable[[Mask], Vector]]] = [
            (texts, lambda there: Vector(ty.VARCHAR, self.texts(given, kinds, there)))
        ]
        if of_numbers:
            exact = np.isin(kinds, (WHOLE, TRUTH))
            parts.append((exact, lambda there: Vector(ty.BIGINT, found.whole, there)))
        if of_numbers and not is_exact:
            parts.append((broken, lambda there: Vector(ty.DOUBLE, found.real, there)))
        for some, values in parts:
            there = some & ~wrong
            if there.any():
                part = self.cast(values(there), kind, not self.strict).to_arrow(rows)
                made = part if made.null_count == rows else pc.coalesce(made, part)
        return made

    def read_long(self, given: Documents, found: Scalars) -> None:
        """Read numbers of more digits than a kernel reads exactly."""
        places = np.flatnonzero(found.kinds == LONG)
        if len(places):
            some = Documents(given.begins[places], given.ends[places], given.rows[places])
            found.real[places] = tables.to_numpy(self._copied(some, np.ones(len(places), bool), 0).cast(pa.float64()))  # fmt: skip

    def texts(self, given: Documents, kinds: Array, there: Mask) -> pa.Array:
        """Return documents as texts, those in quotes without these."""
        made = self._copied(given, there, np.isin(kinds, _OF_TEXTS).astype(np.int64))
        places = np.flatnonzero(there & (kinds == ESCAPED_TEXT))
        if not len(places):
            return made
        codes = pc.dictionary_encode(made.take(from_numpy(places)))
        read = [json.loads(f'"{text}"') for text in codes.dictionary.to_pylist()]
        values = array_from(read, pa.string()).take(codes.indices)
        return json_scan.instead(made, places, values)

    def _copied(self, given: Documents, there: Mask, without: Ints | int) -> pa.Array:
        copy_parts = self.kernels["copy_parts"]
        return json_scan.copied_parts(
            self.text, given.begins, given.ends, there, without, copy_parts
        )
