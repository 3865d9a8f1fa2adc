"""Texts that an expression makes of a column's, as codes, where an earlier run has found which ones it makes.

One kernel finds the place of each among those.  Of pieces at constant places it reads the bytes where they lie; libcudf would make strings
of all of them, and find out which differ.  A text that is none of them, or a piece of one that holds more than ASCII, makes the kernel's work void.

TPC-H SF10, hot on an H200, takes 5 % longer without it, Q22 2.9 times as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property

import pyarrow as pa
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....plan.expr import Call, ColumnRef, Expr, Literal, columns_of
from ....plan.types import VARCHAR, Kind
from ....storage.columns.device_encode import aligned, codes_at, encoded_as
from ....storage.columns.encodings import Dictionary, EncodedColumn, code_width
from ...context import Context
from ..dictionaries import Coded, Held
from ..memory.buffers import landed, zeros
from . import run_column_kernels
from .dictionary_lookup import WHOLE, KeyTable, Substring, key_table, number

MOST_KEYS = 1 << 14  # the hash table is made on the host, a key at a time
MOST_KNOWN = 64
FURTHEST = 64  # characters that are looked at, since one thread looks at all

Source = tuple[str, int, Substring | Expr]  # a column's name and rows: enough for a guess


class KnownSubstrings:
    """The pieces that some texts have given, ascending; on the device from the second run on."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values

    @cached_property
    def table(self) -> KeyTable:
        return key_table(self.values, plc.utils.CUDF_DEFAULT_STREAM)


_known: OrderedDict[Source, KnownSubstrings] = OrderedDict()
_lock = threading.Lock()


def source_of(expr: Expr, rows: int) -> Source | None:
    """Return by what the texts that an expression makes of so many rows are remembered: a piece, if the kernel reads that; None of what is no text."""
    if expr.type.kind is not Kind.VARCHAR:
        return None
    piece = _piece(expr)
    (column,) = columns_of(expr)
    return column.name, rows, piece or expr


def _piece(expr: Expr) -> Substring | None:
    match expr:
        case Call("substring", (ColumnRef(), Literal(value=int(start)), Literal(value=int(most)))):
            piece = Substring(start - 1, most)
        case Call("left", (ColumnRef(), Literal(value=int(most)))):
            piece = Substring(0, most)
        case _:
            return None
    near = piece.skipped >= 0 and piece.most > 0 and piece.skipped + piece.most <= FURTHEST
    return piece if near else None


def remember(source: Source, found: EncodedColumn) -> None:
    """Keep the different pieces in mind."""
    values = found.encoding.values
    if values is not None and 0 < len(values) <= MOST_KEYS:
        with _lock:
            _known[source] = KnownSubstrings(values)
            if len(_known) > MOST_KNOWN:
                _known.popitem(last=False)


def numbered(source: Source, held: Held, context: Context) -> EncodedColumn | None:
    """Return pieces of texts, or texts that were made, as codes; None where they are not those of an earlier run, or there was none."""
    with _lock:
        known = _known.get(source)
    if (
        known is None
        or isinstance(held, Coded)
        or not run_column_kernels.ready(context, held.size())
    ):
        return None
    column, values, stream = aligned(held), known.values, plc.utils.CUDF_DEFAULT_STREAM
    rows, width = column.size(), code_width(len(values))
    codes = DeviceBuffer(size=rows * width, stream=stream)
    wrong = zeros(8)
    into = width, codes.ptr, wrong.ptr
    piece = source[2] if isinstance(source[2], Substring) else WHOLE
    number(column, known.table, piece, into, stream, context.kernel_directory)
    if landed([(0, wrong.ptr, 8)], 8).any():
        with _lock:
            _known.pop(source, None)
        return None
    encoding = Dictionary(values, width)
    made = codes_at(plc.gpumemoryview(codes), encoding, rows)
    return encoded_as(VARCHAR, encoding, column, made)
