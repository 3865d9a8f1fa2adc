"""Lines of JSON objects read as columns by the loops that read documents (`operators.cpu.functions.json.json_fields`, which has the figure).

`json_scan.FEW_DOCUMENTS` = inf switches it off.  A line that the loops do not read is left to Python, and from lines on that are no values
alone the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..operators.cpu.functions.json import json_fields
from ..operators.cpu.functions.json.json_fields import DocumentReader, Documents
from ..operators.cpu.functions.json.json_scan import instead, ready
from ..operators.cpu.functions.kernels_casts import cast
from ..operators.cpu.sort.text_hashes import buffers_of
from ..operators.cpu.table import validity
from ..plan import types as ty
from ..plan.arrow.arrow_arrays import from_numpy, truth_values
from ..records import dataclass
from ..storage.file_identity import FileIdentity
from .csv_fields import Options, text_stream
from .json_records import MAXIMUM_OBJECT_SIZE, Record, TextRead, line_value
from .json_values import ValueReader
from .text_types import Conversion, convert

TEXT_BYTES = 1 << 22  # of which the lines are read at once
LINE = 10
EMPTY = 2  # bytes of a line that has none but those that end it, or one more, which is no object
_NUMBERS = (json_fields.WHOLE, json_fields.SHORT, json_fields.REAL, json_fields.LONG)
_TEXTS = (json_fields.TEXT, json_fields.ESCAPED_TEXT)
# What the values of a column are that need no cast
_KINDS: dict[ty.DataType, tuple[int, ...]] = {
    ty.BIGINT: (json_fields.WHOLE,),
    ty.DOUBLE: _NUMBERS,
    ty.BOOLEAN: (json_fields.TRUTH,),
    ty.VARCHAR: _TEXTS,
    ty.DATE: _TEXTS,
    ty.TIMESTAMP: _TEXTS,
}

Arrays = list[pa.Array]


def is_read(kind: ty.DataType) -> bool:
    """Whether the loops read values of a type."""
    if kind.kind in (ty.Kind.LIST, ty.Kind.STRUCT):
        return not kind.is_tuple and all(map(is_read, kind.children))
    return kind in _KINDS


@dataclass(frozen=True)
class _FieldReader(DocumentReader):
    """Reads values as they are in the file; those that are not of their type are left to Python."""

    values: ValueReader

    def _scalars(self, given: Documents, kind: ty.DataType) -> pa.Array:
        found = self.scalars(given)
        there = np.isin(found.kinds, _KINDS[kind])
        self.unread[given.rows[~there & (found.kinds != json_fields.NOTHING)]] = True
        if kind == ty.BIGINT:
            return from_numpy(found.whole, there)
        if kind == ty.BOOLEAN:
            return from_numpy(found.whole != 0, there)
        if kind == ty.DOUBLE:
            whole = found.kinds == json_fields.WHOLE
            self.read_long(given, found)
            return from_numpy(np.where(whole, found.whole, found.real), there)
        texts = self.texts(given, found.kinds, there)
        if kind == ty.VARCHAR:
            return texts
        made = convert(texts, self.values.forms.get(kind, Conversion(kind)), safe=True)
        known = validity(made)
        if known is not None:
            self.unread[given.rows[there & ~known]] = True
        return made


@dataclass(frozen=True)
class LinesReader:
    """Reads the columns of a file, of which `arrays` makes those of some values."""

    keys: Sequence[str]
    types: Sequence[ty.DataType]
    values: ValueReader
    arrays: Callable[[Sequence[Record]], Arrays]
    most: int  # bytes of a value

    @classmethod
    def of(
        cls,
        columns: Sequence[tuple[str | None, ty.DataType]],
        values: ValueReader,
        arrays: Callable[[Sequence[Record]], Arrays],
        options: Options,
    ) -> LinesReader | None:
        """Return None for columns that are left to Python."""
        usual = options.get("format", "auto") in ("auto", "newline_delimited")
        if values.lenient or not usual or options.get("array"):
            return None
        keys = [key for key, _ in columns if key is not None]
        if len(keys) < len(columns) or not all(is_read(kind) for _, kind in columns):
            return None
        most = options.get("maximum_object_size", MAXIMUM_OBJECT_SIZE)
        assert isinstance(most, int)
        return cls(keys, [kind for _, kind in columns], values, arrays, most)

    def read(self, text: bytes, line: int) -> tuple[Arrays, int] | None:
        """Return the columns of whole lines of which the first has a number, and how many rows they have; None where Python reads on."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == LINE) + 1
        offsets = np.concatenate([np.zeros(1, np.int64), ends])
        sizes = np.diff(offsets)
        lines, numbers = _lines(text, offsets), np.arange(line, line + len(ends))
        if lines is None or int(sizes.max()) > self.most:
            return None
        if int(sizes.min()) <= EMPTY:
            lines, numbers = lines.filter(from_numpy(sizes > EMPTY)), numbers[sizes > EMPTY]
        kernels = ready(json_fields.READING, lines)
        if kernels is None:
            return None
        unread = np.zeros(len(lines), bool)
        reader = _FieldReader(kernels, buffers_of(lines)[0], cast, unread, True, True, False, self.values)  # fmt: skip
        names = [(key, kind) for key, kind in zip(self.keys, self.types, strict=True)]
        objects = reader.column(Documents.of(lines), ty.struct_of(names))
        made = [objects.field(place) for place in range(len(names))]
        rest = np.flatnonzero(unread | ~truth_values(objects.is_valid()))
        if not len(rest):
            return made, len(lines)
        try:
            rows = [(int(numbers[p]), line_value(lines[p].as_py())) for p in rest.tolist()]
        except (ValueError, RecursionError):
            return None
        others = self.arrays(rows)
        merged = [instead(m, rest, o.cast(m.type)) for m, o in zip(made, others, strict=True)]
        return merged, len(lines)


def _lines(text: bytes, offsets: np.typing.NDArray[np.int64]) -> pa.Array | None:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text)]
    lines = pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
    try:
        lines.validate(full=True)
    except pa.ArrowException:  # no UTF-8
        return None
    return lines


def line_columns(
    reader: LinesReader, identity: FileIdentity, options: Options, done: TextRead
) -> Iterator[tuple[Arrays, int]]:
    """Yield columns of some rows, and how many these are, and set how much of the file they are."""
    with text_stream(identity, options) as stream:
        text = b""
        while data := _more(stream):
            text += data
            end = text.rfind(b"\n") + 1
            found = reader.read(text[:end], done.line) if end else None
            if found is None:
                return
            yield found
            done.bytes, done.line = done.bytes + end, done.line + text.count(b"\n", 0, end)
            text = text[end:]


def _more(stream: pa.NativeFile) -> bytes:
    """Return more of a file; nothing where it cannot be read, which Python says when it reads on."""
    try:
        found: bytes = stream.read(TEXT_BYTES)
    except (OSError, pa.ArrowException):
        return b""
    return found
