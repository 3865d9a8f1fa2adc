"""What must hold of a footer before pyarrow is asked for its column chunks: it ends the process where that throws.

Its functions for the metadata of a column chunk let exceptions of C++ through the interpreter, which ends in `terminate`:
for chunks whose metadata are encrypted, for extremes that are shorter than a value of their type, and for counts of levels that the
column does not have.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ...errors import FileError
from .thrift import (
    BINARY,
    BYTES,
    FLAG_FIELD,
    I32,
    I64,
    INTEGER_FIELD,
    LIST,
    SIGNED,
    STRUCT,
    field_at,
    fields,
    header,
    items,
    list_of,
    number,
    skip,
    struct_of,
    varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

# Places of fields in FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, Statistics
ROW_GROUPS, COLUMNS, METADATA, CRYPTO_METADATA, TYPE, STATISTICS = 4, 1, 3, 8, 1, 12
EXTREMES = (1, 2, 5, 6)
# The same in SizeStatistics, which ColumnMetaData has as field 16
SIZES, TEXT_BYTES, REPETITION_LEVELS, DEFINITION_LEVELS = 16, 1, 2, 3
PHYSICAL_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")  # fmt: skip
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class _Leaf(NamedTuple):
    """A column of the schema: its physical type by number, the bytes of a value or 0, and how many levels there are."""

    physical: int
    width: int
    levels: tuple[int, int]  # of repetition and definition


class _Damaged(Exception):
    """What a footer holds cannot be."""


def check_footer(footer: bytes, metadata: pq.FileMetaData, path: str) -> None:
    """Raise `FileError`, naming the file, for a footer whose column chunks pyarrow cannot be asked for.

    `metadata` is what pyarrow made of it.
    """
    schema = metadata.schema
    places = [schema.column(i) for i in range(len(schema))]
    leaves = [
        _Leaf(
            PHYSICAL_TYPES.index(c.physical_type),
            _width(c),
            (c.max_repetition_level + 1, c.max_definition_level + 1),
        )
        for c in places
    ]
    try:
        _check_rows(metadata)
        encrypted = _encrypted(footer, leaves)
    except (_Damaged, ValueError, IndexError, RecursionError) as error:
        raise FileError(
            f'The file "{path}" cannot be read as Parquet, its footer is damaged: {error or "it is cut off"}.'
        ) from error
    if encrypted:
        names = ", ".join(f'"{places[i].path}"' for i in sorted(encrypted))
        raise FileError(
            f'The file "{path}" has encrypted columns ({names}), which cannot be read: write it without encryption.'
        )


def _check_rows(metadata: pq.FileMetaData) -> None:
    """Raise for counts of rows that cannot be, or that do not give the file's together."""
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise _Damaged(f"its row groups have not {metadata.num_rows} rows together")


def _width(column: pq.ColumnSchema) -> int:
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    return WIDTHS.get(column.physical_type, 0)


def _encrypted(footer: bytes, leaves: Sequence[_Leaf]) -> set[int]:
    """Return the columns with encrypted metadata in some row group; raises for damaged ones."""
    found: set[int] = set()
    field, kind, at = field_at(footer, 0, 0)
    while kind:
        if field == ROW_GROUPS and kind == LIST:
            count, of, at = items(footer, at)
            for _ in range(count if of == STRUCT else 0):
                at = _row_group(footer, at, leaves, found)
        else:
            at = skip(footer, at, kind)
        field, kind, at = field_at(footer, at, field)
    return found


def _row_group(footer: bytes, at: int, leaves: Sequence[_Leaf], encrypted: set[int]) -> int:
    usual = _usual_row_group(footer, at, leaves)
    if usual:
        return usual
    end = at
    for field, kind, begin, stop in fields(footer, at):
        end = stop
        if field == COLUMNS and kind == LIST:
            count, _, place = items(footer, begin)
            if count != len(leaves):
                raise _Damaged(f"a row group has {count} column chunks for {len(leaves)} columns")
            for column, leaf in enumerate(leaves):
                place, is_encrypted = _chunk(footer, place, leaf)
                if is_encrypted:
                    encrypted.add(column)
    return end


def _chunk(footer: bytes, at: int, leaf: _Leaf) -> tuple[int, bool]:
    usual = _usual_chunk(footer, at, leaf)
    if usual:
        return usual, False
    encrypted = described = False
    end = at
    for field, kind, begin, stop in fields(footer, at):
        end = stop
        if field == METADATA and kind == STRUCT:
            described = True
            _check_metadata(footer, begin, leaf)
        elif field == CRYPTO_METADATA and kind == STRUCT:
            encrypted = True
    if not (described or encrypted):
        raise _Damaged("a column chunk has no metadata")
    return end, encrypted


def _check_metadata(footer: bytes, at: int, leaf: _Leaf) -> None:
    for field, kind, begin, _ in fields(footer, at):
        if field == TYPE and kind == I32:
            if number(footer, begin) != leaf.physical:
                raise _Damaged("a column chunk has another type than its column")
        elif field == STATISTICS and kind == STRUCT:
            for extreme, of, place, _ in fields(footer, begin):
                if extreme in EXTREMES and of == BINARY and varint(footer, place)[0] < leaf.width:
                    raise _Damaged("an extreme of a column chunk is shorter than a value")
        elif field == SIZES and kind == STRUCT:
            _check_sizes(footer, begin, leaf)


def _check_sizes(footer: bytes, at: int, leaf: _Leaf) -> None:
    for field, kind, begin, _ in fields(footer, at):
        if field == TEXT_BYTES and kind == I64:
            if PHYSICAL_TYPES[leaf.physical] != "BYTE_ARRAY":
                raise _Damaged("a column chunk without texts has a size of texts")
        elif field in (REPETITION_LEVELS, DEFINITION_LEVELS) and kind == LIST:
            count, _, _ = items(footer, begin)
            if count not in (0, leaf.levels[field - REPETITION_LEVELS]):
                raise _Damaged("a column chunk counts levels that its column does not have")


# Patterns for what nearly all writers write, 50 times as fast as the walk (2 us a column chunk); what they match, it accepts


def _usual_row_group(footer: bytes, at: int, leaves: Sequence[_Leaf]) -> int:
    """Return where a row group ends that is like most, 0 for another."""
    if footer[at] != 1 << 4 | LIST:
        return 0
    count, kind, at = items(footer, at + 1)
    if kind != STRUCT or count != len(leaves):
        return 0
    for leaf in leaves:
        at = _usual_chunk(footer, at, leaf)
        if not at:
            return 0
    rest = _usual_rest().match(footer, at)
    return rest.end() if rest else 0


def _usual_chunk(footer: bytes, at: int, leaf: _Leaf) -> int:
    """Return where a column chunk ends that has statistics, and is like most in all else too; 0 for another."""
    before = _usual_head().match(footer, at)
    if before is None or before[1][0] != leaf.physical << 1:
        return 0
    statistics = _usual_statistics(leaf.width).match(footer, before.end())
    if statistics is None:
        return 0
    text = PHYSICAL_TYPES[leaf.physical] == "BYTE_ARRAY"
    behind = _usual_tail(text, *leaf.levels).match(footer, statistics.end())
    return behind.end() if behind else 0


@cache
def _usual_rest() -> re.Pattern[bytes]:
    """What follows the column chunks of a row group: its sizes, and by what it is sorted."""
    flat = struct_of(INTEGER_FIELD, FLAG_FIELD)
    return re.compile(struct_of(INTEGER_FIELD, header(LIST) + list_of(STRUCT, flat)), re.DOTALL)


@cache
def _usual_statistics(width: int) -> re.Pattern[bytes]:
    """Statistics with extremes of exactly the width of a type, or of any where it has none."""
    extreme = re.escape(bytes([width])) + b".{%d}" % width if 0 < width < 128 else BYTES
    return re.compile(struct_of(header(BINARY) + extreme, INTEGER_FIELD, FLAG_FIELD), re.DOTALL)


@cache
def _usual_head() -> re.Pattern[bytes]:
    """What lies before the statistics of a column chunk, with its type as a group."""
    integer = b"\x16" + SIGNED
    far = b"\x26" + SIGNED  # a field that is the next but one
    head = [
        far + b"\x1c",
        b"\x15(.)",
        b"\x19" + list_of(I32, SIGNED),  # encodings
        b"\x19\x18" + BYTES,  # the path of a column that lies in no other
        b"\x15" + SIGNED,
        integer * 3,
        # Field 12 behind 9, 9 and 11, 9 and 10, or 9 to 11
        far + b"(?>\x3c|%s\x1c|%s(?>\x2c|%s\x1c))" % (far, integer, integer),
    ]
    return re.compile(b"".join(head), re.DOTALL)


@cache
def _usual_tail(text: bool, repetition: int, definition: int) -> re.Pattern[bytes]:
    """What lies behind the statistics of a column chunk, in a column of texts or not, with so many levels."""

    def levels(count: int) -> bytes:
        listed = re.escape(bytes([count << 4 | I64])) + b"(?:%s){%d}" % (SIGNED, count)
        return b"(?>\x06|%s)" % listed if count < 15 else b"\x06"

    both, last = levels(repetition) + rb"(?:\x19%s)?" % levels(definition), levels(definition)
    alone = rb"(?>\x29%s|\x39%s)?" % (both, last)
    behind_text = rb"\x16%s(?>\x19%s|\x29%s)?" % (SIGNED, both, last)
    sizes = b"(?>%s|%s)\x00" % (behind_text, alone) if text else alone + b"\x00"
    pages = header(LIST) + list_of(STRUCT, struct_of(INTEGER_FIELD))
    metadata = struct_of(INTEGER_FIELD, pages, header(STRUCT) + sizes)
    return re.compile(metadata + struct_of(INTEGER_FIELD), re.DOTALL)
