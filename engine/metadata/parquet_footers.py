"""What the footers of Parquet files say, as DuckDB's functions tell it: parquet_metadata, parquet_schema, parquet_file_metadata, parquet_kv_metadata.

Footers are read field by field, since pyarrow leaves out what these functions tell.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from ..answers import Columns
from ..errors import FileError
from ..operators.cpu.functions.expressions import evaluate
from ..operators.cpu.table import Table, to_logical, to_physical
from ..plan import types as ty
from ..plan.arrow.arrow_arrays import array_from
from ..plan.casts import cast
from ..plan.expr import ColumnRef, new_column
from ..records import dataclass
from ..storage.tables.access import AccessRules
from ..storage.tables.files import FoundFile, find_files
from ..storage.tables.footer_check import PHYSICAL_TYPES
from ..storage.tables.footers import footer_of, read_footers
from ..storage.tables.other_types import type_of
from ..storage.tables.thrift import Fields, decoded

Row = tuple[object, ...]
ENCODINGS = ("PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT")  # fmt: skip
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
PAGES = ("DATA_PAGE", "INDEX_PAGE", "DICTIONARY_PAGE", "DATA_PAGE_V2")
REPETITIONS = ("REQUIRED", "OPTIONAL", "REPEATED")
CONVERTED = ("UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL")  # fmt: skip
# Members of the union of logical types, by their field
LOGICAL = {1: "StringType", 2: "MapType", 3: "ListType", 4: "EnumType", 6: "DateType", 11: "NullType", 12: "JsonType", 13: "BsonType", 14: "UUIDType", 15: "Float16Type"}  # fmt: skip
_UNITS = ("MILLIS", "MICROS", "NANOS")
_UNIT_TYPES = ("MilliSeconds", "MicroSeconds", "NanoSeconds")
_UNPACKED = {"BOOLEAN": "?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}

_DOUBLES = tuple((name, ty.DOUBLE) for name in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax"))  # fmt: skip
_PAGE_STATISTICS = ty.struct_of(
    (("page_type", ty.VARCHAR), ("encoding", ty.VARCHAR), ("count", ty.INTEGER))
)
_CHUNKS: Columns = [
    ("file_name", ty.VARCHAR),
    *((name, ty.BIGINT) for name in ("row_group_id", "row_group_num_rows", "row_group_num_columns", "row_group_bytes", "column_id", "file_offset", "num_values")),
    ("path_in_schema", ty.VARCHAR),
    ("type", ty.VARCHAR),
    ("stats_min", ty.VARCHAR),
    ("stats_max", ty.VARCHAR),
    ("stats_null_count", ty.BIGINT),
    ("stats_distinct_count", ty.BIGINT),
    ("stats_min_value", ty.VARCHAR),
    ("stats_max_value", ty.VARCHAR),
    ("compression", ty.VARCHAR),
    ("encodings", ty.VARCHAR),
    *((name, ty.BIGINT) for name in ("index_page_offset", "dictionary_page_offset", "data_page_offset", "total_compressed_size", "total_uncompressed_size")),
    ("key_value_metadata", ty.map_of(ty.BLOB, ty.BLOB)),
    ("bloom_filter_offset", ty.BIGINT),
    ("bloom_filter_length", ty.BIGINT),
    ("min_is_exact", ty.BOOLEAN),
    ("max_is_exact", ty.BOOLEAN),
    ("row_group_compressed_bytes", ty.BIGINT),
    ("geo_bbox", ty.struct_of(_DOUBLES)),
    ("geo_types", ty.list_of(ty.VARCHAR)),
    ("encoding_stats", ty.list_of(_PAGE_STATISTICS)),
    *((name, ty.BIGINT) for name in ("stats_nan_count", "column_index_offset", "column_index_length", "offset_index_offset", "offset_index_length")),
]  # fmt: skip
_ELEMENTS: Columns = [
    *(
        (name, ty.VARCHAR)
        for name in ("file_name", "name", "type", "type_length", "repetition_type")
    ),
    ("num_children", ty.BIGINT),
    ("converted_type", ty.VARCHAR),
    *((name, ty.BIGINT) for name in ("scale", "precision", "field_id")),
    ("logical_type", ty.VARCHAR),
    ("duckdb_type", ty.VARCHAR),
    ("column_id", ty.BIGINT),
]
_FILES: Columns = [
    ("file_name", ty.VARCHAR),
    ("created_by", ty.VARCHAR),
    *((name, ty.BIGINT) for name in ("num_rows", "num_row_groups", "format_version")),
    ("encryption_algorithm", ty.VARCHAR),
    ("footer_signing_key_metadata", ty.VARCHAR),
    ("file_size_bytes", ty.UBIGINT),
    ("footer_size", ty.UBIGINT),
    ("column_orders", ty.list_of(ty.VARCHAR)),
]
_PAIRS: Columns = [("file_name", ty.VARCHAR), ("key", ty.BLOB), ("value", ty.BLOB)]


@dataclass(frozen=True)
class _Footer:
    """A file's footer: its bytes, what they say by numbers of fields, and what pyarrow makes of it."""

    file: FoundFile
    size: int
    said: Fields
    metadata: pq.FileMetaData

    @property
    def elements(self) -> list[Fields]:
        found: list[Fields] = self.said.get(2, [])
        return found


RowsOfFooter = Callable[[_Footer], Iterator[Row]]


def footers(pattern: str, rules: AccessRules) -> Iterator[_Footer]:
    """Yield the footers of files; raises `FileError` and `AccessDenied`."""
    found = find_files([pattern], rules)
    known = read_footers([file.identity for file in found])  # which checks them
    for file, metadata in zip(found, known, strict=True):
        data = footer_of(file.identity)
        try:
            said = decoded(data)
        except (ValueError, IndexError) as error:
            raise FileError(f'The footer of "{file.path}" is damaged: {error}.') from error
        yield _Footer(file, len(data), said, metadata)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _name(names: Sequence[str], number: int | None) -> str | None:
    if number is None:
        return None
    return names[number] if 0 <= number < len(names) else str(number)


def file_rows(footer: _Footer) -> Iterator[Row]:
    said = footer.said
    orders = ["ColumnOrder(TYPE_ORDER=TypeDefinedOrder())" for _ in said.get(7, [])]
    yield (
        *(footer.file.path, _text(said.get(6)), said.get(3), len(said.get(4, []))),
        *(said.get(1), None, _text(said.get(9))),
        *(footer.file.identity.size, footer.size, orders if 7 in said else None),
    )


def pair_rows(footer: _Footer) -> Iterator[Row]:
    for pair in footer.said.get(5, []):
        yield (footer.file.path, pair.get(1), pair.get(2))


def element_rows(footer: _Footer) -> Iterator[Row]:
    types = [None, *_types_of_elements(footer)]
    for number, (element, kind) in enumerate(zip(footer.elements, types, strict=True)):
        length = element.get(2)
        yield (
            *(footer.file.path, _text(element.get(4)), _name(PHYSICAL_TYPES, element.get(1))),
            *(None if length is None else str(length), _name(REPETITIONS, element.get(3, 0))),
            *(element.get(5), _name(CONVERTED, element.get(6))),
            *(element.get(7), element.get(8), element.get(9)),
            *(_logical(element.get(10)), None if kind is None else str(kind), number),
        )


def _types_of_elements(footer: _Footer) -> Iterator[ty.DataType]:
    """Yield the type of each element of the schema behind its root, of what lies between a list and its elements that of the list."""
    schema = footer.metadata.schema.to_arrow_schema()
    for found in schema:
        yield from _types_of(found.type)


def _types_of(arrow: pa.DataType) -> Iterator[ty.DataType]:
    kind = type_of(arrow)
    yield kind
    if pa.types.is_struct(arrow):
        for i in range(arrow.num_fields):
            yield from _types_of(arrow.field(i).type)
    elif pa.types.is_map(arrow):
        yield kind
        yield from _types_of(arrow.key_type)
        yield from _types_of(arrow.item_type)
    elif pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        yield kind
        yield from _types_of(arrow.value_type)


def _logical(union: Fields | None) -> str | None:
    """Return a logical type as Thrift prints it, which is what DuckDB tells."""
    if not union:
        return None
    ((field, inside),) = union.items()
    if field in LOGICAL:
        return f"{LOGICAL[field]}()"
    if field == 5:
        return f"DecimalType(scale={inside.get(1)}, precision={inside.get(2)})"
    if field in (7, 8):
        units = inside.get(2, {})
        parts = [
            f"{unit}={f'{kind}()' if i + 1 in units else '<null>'}"
            for i, (unit, kind) in enumerate(zip(_UNITS, _UNIT_TYPES, strict=True))
        ]
        name = "TimeType" if field == 7 else "TimestampType"
        return f"{name}(isAdjustedToUTC={int(inside.get(1, False))}, unit=TimeUnit({', '.join(parts)}))"
    if field == 10:
        return f"IntType(bitWidth={chr(inside.get(1, 0))}, isSigned={int(inside.get(2, False))})"
    return f"LogicalType({field})"


def chunk_rows(footer: _Footer) -> Iterator[Row]:
    groups: list[Fields] = footer.said.get(4, [])
    if not groups:
        return
    leaves = [
        (element, kind)
        for element, kind in zip(footer.elements[1:], _types_of_elements(footer), strict=True)
        if not element.get(5)
    ]
    texts = [
        _extremes([group[1][i].get(3, {}) for group in groups], kind)
        for i, (_, kind) in enumerate(leaves)
    ]
    for number, group in enumerate(groups):
        for column, chunk in enumerate(group[1]):
            own = (footer.file.path, number, group.get(3), len(leaves), group.get(2), column)
            yield (*own, *_chunk(chunk, group, texts[column][number]))


def _chunk(chunk: Fields, group: Fields, texts: Sequence[str | None]) -> Row:
    said: Fields = chunk.get(3, {})
    statistics: Fields = said.get(12, {})
    least, most, least_value, most_value = texts
    pages = [
        {"page_type": _name(PAGES, p.get(1)), "encoding": _name(ENCODINGS, p.get(2)), "count": p.get(3)}
        for p in said.get(13, [])
    ]  # fmt: skip
    return (
        *(chunk.get(2), said.get(5), ", ".join(filter(None, map(_text, said.get(3, []))))),
        *(_name(PHYSICAL_TYPES, said.get(1)), least, most, statistics.get(3), statistics.get(4)),
        *(least_value, most_value, _name(CODECS, said.get(4))),
        ", ".join(filter(None, (_name(ENCODINGS, e) for e in said.get(2, [])))),
        *(said.get(10), said.get(11), said.get(9), said.get(7), said.get(6)),
        [(pair.get(1), pair.get(2)) for pair in said.get(8, [])],
        *(said.get(14), said.get(15), statistics.get(8), statistics.get(7), group.get(6)),
        *(None, None, pages if 13 in said else None, None),
        *(chunk.get(6), chunk.get(7), chunk.get(4), chunk.get(5)),
    )


def _extremes(chunks: Sequence[Fields], kind: ty.DataType) -> list[tuple[str | None, ...]]:
    """Return least and greatest value of each chunk as text, as older and as newer writers have them."""
    raw = [chunk.get(12, {}).get(i) for chunk in chunks for i in (2, 1, 6, 5)]
    physical = _name(PHYSICAL_TYPES, chunks[0].get(1)) or ""
    texts = _texts([None if r is None else _value(r, physical, kind) for r in raw], kind)
    return [tuple(texts[i : i + 4]) for i in range(0, len(texts), 4)]


def _value(raw: bytes, physical: str, kind: ty.DataType) -> object:
    """Return a value of a file's statistics, as Arrow takes it for the type; None where it is none."""
    if kind.is_decimal and physical in ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"):
        return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale)
    if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return raw if kind.kind is ty.Kind.BLOB else raw.decode(errors="replace")
    form = _UNPACKED.get(physical)
    if form is None or len(raw) != struct.calcsize(form):
        return None
    (number,) = struct.unpack(form, raw)
    if kind.is_decimal:
        return Decimal(number).scaleb(-kind.scale)
    if kind.kind in (ty.Kind.UTINYINT, ty.Kind.USMALLINT, ty.Kind.UINTEGER, ty.Kind.UBIGINT):
        return number % (1 << 8 * struct.calcsize(form))
    return number


def _texts(values: Sequence[object], kind: ty.DataType) -> list[str | None]:
    try:
        target = ty.to_arrow(kind)
        if kind.is_temporal or kind.kind is ty.Kind.TIME:
            days = pa.int32() if kind.kind is ty.Kind.DATE else pa.int64()
            array = array_from(values, days).cast(target)
        else:
            array = array_from(values, target)
    except (KeyError, pa.ArrowException, OverflowError, ValueError):
        return [None] * len(values)
    column = new_column("value", kind)
    table = Table({column.id: to_physical(array, kind)}, len(array))
    made = evaluate(cast(ColumnRef(column), ty.VARCHAR), table, 1)
    texts: list[str | None] = to_logical(made, ty.VARCHAR).to_pylist()
    return texts


FUNCTIONS: dict[str, tuple[Columns, RowsOfFooter]] = {
    "parquet_metadata": (_CHUNKS, chunk_rows),
    "parquet_schema": (_ELEMENTS, element_rows),
    "parquet_file_metadata": (_FILES, file_rows),
    "parquet_kv_metadata": (_PAIRS, pair_rows),
}
