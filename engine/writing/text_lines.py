"""Lines of CSV and JSON out of columns of texts, by Arrow's own functions: a line is one string, and a file their bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..plan.types import JSON, VARCHAR, DataType, Kind

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}  # fmt: skip
_CONTROL = "".join(map(chr, range(32)))


@dataclass(frozen=True)
class CsvLines:
    """How values stand in lines of CSV."""

    delim: str = ","
    quote: str = '"'
    escape: str = '"'
    nullstr: str = ""
    forced: frozenset[int] = frozenset()

    def header(self, names: Sequence[str]) -> bytes:
        columns = [
            self._quoted(pa.chunked_array([pa.array([name])]), number in self.forced)
            for number, name in enumerate(names)
        ]
        return _joined([c.combine_chunks() for c in columns], self.delim, "")

    def lines(self, table: pa.Table) -> bytes:
        columns = [
            self._quoted(column, number in self.forced)
            for number, column in enumerate(table.columns)
        ]
        return _joined([c.combine_chunks() for c in columns], self.delim, self.nullstr)

    def _quoted(self, texts: pa.ChunkedArray, always: bool) -> pa.ChunkedArray:
        """Quote what would be read as something else: more than one value, a line, NULL."""
        if not self.quote:
            return texts
        doubled = texts
        for sign in dict.fromkeys((self.escape, self.quote)):
            if sign:
                doubled = pc.replace_substring(doubled, sign, self.escape + sign)
        quoted = pc.binary_join_element_wise(self.quote, doubled, self.quote, "")
        if always:
            return quoted
        signs = "|".join(map(re.escape, (self.delim[:1], *self.quote, *self.escape)))
        special = pc.match_substring_regex(texts, rf"{signs}|[\n\r]")
        special = pc.or_(special, pc.equal(texts, self.nullstr))
        return pc.if_else(special, quoted, texts)


def json_lines(table: pa.Table, names: Sequence[str], types: Sequence[DataType]) -> pa.Array:
    """Return each row as an object of JSON; numbers and truth values stand there as such."""
    parts: list[object] = []
    for number, (name, column, data_type) in enumerate(
        zip(names, table.columns, types, strict=True)
    ):
        parts.append(("," if number else "{") + _json_text(name) + ":")
        parts.append(_json_values(column, data_type).combine_chunks())
    return pc.binary_join_element_wise(
        *parts, "}", "", null_handling="replace", null_replacement="null"
    )


def json_bytes(lines: pa.Array, behind: str = "\n") -> bytes:
    return _joined([lines], "", "", behind)


def _json_values(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    if data_type.is_numeric or data_type.kind in (Kind.BOOLEAN, Kind.NULL):
        return column  # as the plan has written it
    if data_type == JSON or data_type.is_nested:
        return column
    for sign, escaped in _ESCAPES.items():
        column = pc.replace_substring(column, sign, escaped)
    if pc.any(pc.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
        for sign in _CONTROL:
            column = pc.replace_substring(column, sign, f"\\u{ord(sign):04x}")
    return pc.binary_join_element_wise('"', column, '"', "")


def _json_text(name: str) -> str:
    return str(_json_values(pa.chunked_array([pa.array([name])]), VARCHAR)[0].as_py())


def _joined(columns: Sequence[pa.Array], between: str, missing: str, behind: str = "\n") -> bytes:
    """Return the bytes of all rows, each with `behind` behind it."""
    lines = pc.binary_join_element_wise(
        *columns, between, null_handling="replace", null_replacement=missing
    )
    ended = pc.binary_join_element_wise(lines, "", behind)
    arrays = ended.chunks if isinstance(ended, pa.ChunkedArray) else [ended]
    return b"".join(map(_bytes_of, arrays))


def _bytes_of(texts: pa.Array) -> bytes:
    """Return the values of an array of texts, which lie one behind the other."""
    _, offsets, values = texts.buffers()
    if values is None or not len(texts):
        return b""
    places = pa.Array.from_buffers(pa.int32(), texts.offset + len(texts) + 1, [None, offsets])
    first, end = places[texts.offset].as_py(), places[len(places) - 1].as_py()
    return bytes(values[first:end])
