"""The options of what reads files of text, by DuckDB's names."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from .write_options import (
    Check,
    NotTaken,
    OptionTable,
    delimiter,
    number,
    one_byte,
    one_of,
    only,
    positive,
    switch,
    text,
    texts,
)


def names_and_types(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise NotTaken("names with types: {'day': 'DATE', 'sold': 'INTEGER'}")
    if not all(isinstance(v, str) for pair in value.items() for v in pair):
        raise NotTaken("types as texts")
    return {str(name): str(kind) for name, kind in value.items()}


def types(value: object) -> dict[str, str] | tuple[str, ...]:
    return names_and_types(value) if isinstance(value, dict) else texts(value)


def line_end(value: object) -> str:
    found = {r"\n": "\n", r"\r": "\r", r"\r\n": "\r\n", "\n": "\n", "\r": "\r", "\r\n": "\r\n"}.get(
        str(value)
    )
    if found is None:
        raise NotTaken(r"'\n', '\r' or '\r\n'")
    return found


def several_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise NotTaken("a list of columns")
    return texts(value)


def distinct(value: object) -> tuple[str, ...]:
    found = texts(value)
    again = next((name for i, name in enumerate(found) if name in found[:i]), None)
    if again is not None:
        raise NotTaken(f'names of which each is another ("{again}" repeats)')
    return found


def name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise NotTaken("a name")
    return value


def column_name(value: object) -> object:
    return value if isinstance(value, str) else switch(value)


def at_least(least: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        found = number(value)
        if found < least:
            raise NotTaken(f"a whole number from {least} on")
        return found

    return check


def share(value: object) -> float:
    found = float(str(value)) if isinstance(value, int | float | Decimal) else -1.0
    if isinstance(value, bool) or not 0 <= found <= 1:
        raise NotTaken("a number from 0 to 1")
    return found


def positive_or_all(value: object) -> int:
    found = number(value)
    if found != -1 and found < 1:
        raise NotTaken("a positive whole number, or -1 for all")
    return found


_CSV: dict[str, Check] = {
    "all_varchar": switch,
    "allow_quoted_nulls": switch,
    "auto_detect": switch,
    "columns": names_and_types,
    "comment": one_byte,
    "compression": one_of("auto", "none", "gzip", "zstd", uncompressed="none", gz="gzip"),
    "dateformat": text,
    "decimal_separator": one_of(".", ","),
    "delim": delimiter,
    "encoding": one_of(
        "utf-8", "utf-16", "latin-1", utf8="utf-8", utf16="utf-16", latin1="latin-1"
    ),
    "escape": one_byte,
    "filename": column_name,
    "force_not_null": several_texts,
    "header": switch,
    "hive_partitioning": switch,
    "hive_types": names_and_types,
    "hive_types_autocast": switch,
    "ignore_errors": switch,
    "max_line_size": at_least(0),
    "names": distinct,
    "new_line": line_end,
    "normalize_names": switch,
    "null_padding": switch,
    "nullstr": texts,
    "quote": one_byte,
    "rejects_limit": at_least(0),
    "rejects_scan": name,
    "rejects_table": name,
    "sample_size": positive_or_all,
    "skip": at_least(0),
    "store_rejects": switch,
    "strict_mode": switch,
    "thousands": one_byte,
    "timestampformat": text,
    "types": types,
    "union_by_name": switch,
}
CSV_OPTIONS = OptionTable(
    "read_csv",
    _CSV,
    {
        "sep": "delim",
        "delimiter": "delim",
        "separator": "delim",
        "null": "nullstr",
        "na_values": "nullstr",
        "null_values": "nullstr",
        "dtypes": "types",
        "dtype": "types",
        "column_types": "types",
        "column_names": "names",
        "date_format": "dateformat",
        "timestamp_format": "timestampformat",
        "quotechar": "quote",
        "escapechar": "escape",
        "skiprows": "skip",
        "decimal": "decimal_separator",
        "lineterminator": "new_line",
        "maximum_line_size": "max_line_size",
    },
    frozenset(
        ["allow_empty", "allow_unquoted_values", "auto_type_candidates", "buffer_size", "column_statistics", "file_row_number", "files_to_sniff", "parallel", "rejects_line_size_limit", "schema"]
    ),
)  # fmt: skip
JSON_FORMATS = one_of("auto", "array", "newline_delimited", "unstructured", nd="newline_delimited")


def records(value: object) -> str:
    return "auto" if value == "auto" else str(switch(value)).lower()


# Of what reads values as they are, and of what finds out their types
_JSON_OBJECTS: dict[str, Check] = {
    "compression": one_of("auto", "none", "gzip", "zstd", uncompressed="none", gz="gzip"),
    "filename": column_name,
    "format": JSON_FORMATS,
    "hive_partitioning": switch,
    "hive_types": names_and_types,
    "hive_types_autocast": switch,
    "ignore_errors": switch,
    "maximum_object_size": positive,
    "union_by_name": switch,
}
_JSON: dict[str, Check] = {
    **_JSON_OBJECTS,
    "auto_detect": switch,
    "case_insensitive_keys": only(False),
    "columns": names_and_types,
    "convert_strings_to_integers": switch,
    "dateformat": text,
    "field_appearance_threshold": share,
    "geojson": only(False),
    "map_inference_threshold": at_least(-1),
    "maximum_depth": at_least(-1),
    "maximum_sample_files": positive_or_all,
    "records": records,
    "sample_size": at_least(-1),
    "timestampformat": text,
}
_JSON_REFUSED = frozenset(["allow_empty", "column_statistics", "file_row_number", "schema"])
JSON_OPTIONS = OptionTable(
    "read_json",
    _JSON,
    {"date_format": "dateformat", "timestamp_format": "timestampformat"},
    _JSON_REFUSED,
)
JSON_OBJECTS_OPTIONS = OptionTable("read_json_objects", _JSON_OBJECTS, {}, _JSON_REFUSED)
ARROW_OPTIONS = OptionTable(
    "read_arrow", {"filename": column_name}, {}, frozenset(["union_by_name"])
)
WHOLE_FILE_OPTIONS = OptionTable("read_text", {}, {}, frozenset())
TABLE_FUNCTIONS = {
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "sniff_csv": "sniffed",
    "read_json": "json",
    "read_json_auto": "json",
    "read_ndjson": "json",
    "read_ndjson_auto": "json",
    "read_json_objects": "json_objects",
    "read_json_objects_auto": "json_objects",
    "read_ndjson_objects": "json_objects",
    "read_arrow": "arrow",
    "read_ipc": "arrow",
    "read_feather": "arrow",
    "delta_scan": "delta",
    "iceberg_scan": "iceberg",
    "read_text": "other",
    "read_blob": "other",
}
# Options that the name of a function says
SAID_BY_NAME: dict[str, dict[str, object]] = {
    "read_ndjson": {"format": "newline_delimited"},
    "read_ndjson_auto": {"format": "newline_delimited"},
    "read_ndjson_objects": {"format": "newline_delimited"},
    "read_text": {"content": "text"},
}
_ENDINGS = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
DELTA_OPTIONS = OptionTable(
    "delta_scan",
    {"version": at_least(0), "timestamp": text},
    {},
    frozenset(
        [
            "delta_file_number",
            "file_row_number",
            "filename",
            "pushdown_partition_info",
            "pushdown_filters",
        ]
    ),
)
ICEBERG_OPTIONS = OptionTable(
    "iceberg_scan",
    {"snapshot_from_id": number, "snapshot_from_timestamp": text},
    {},
    frozenset(["allow_moved_paths", "mode", "version", "version_name_format", "metadata_compression_codec", "skip_schema_inference", "filename"]),
)  # fmt: skip
READ_OPTIONS = {
    "delta": DELTA_OPTIONS,
    "iceberg": ICEBERG_OPTIONS,
    "csv": CSV_OPTIONS,
    "sniffed": OptionTable(
        "sniff_csv", CSV_OPTIONS.checks, CSV_OPTIONS.others, CSV_OPTIONS.refused
    ),
    "json": JSON_OPTIONS,
    "json_objects": JSON_OBJECTS_OPTIONS,
    "arrow": ARROW_OPTIONS,
    "other": WHOLE_FILE_OPTIONS,
}
# Names and types are the table's: DuckDB has no such options here either
_OF_TABLE = frozenset(
    ["all_varchar", "columns", "filename", "hive_partitioning", "hive_types", "hive_types_autocast", "names", "types", "union_by_name"]
)  # fmt: skip
COPY_FROM_OPTIONS = {
    "csv": OptionTable(
        "COPY FROM (FORMAT csv)",
        {name: check for name, check in _CSV.items() if name not in _OF_TABLE},
        {other: name for other, name in CSV_OPTIONS.others.items() if name not in _OF_TABLE},
        CSV_OPTIONS.refused,
    ),
    "json": OptionTable(
        "COPY FROM (FORMAT json)",
        {name: check for name, check in _JSON.items() if name not in _OF_TABLE} | {"array": switch},
        JSON_OPTIONS.others,
        JSON_OPTIONS.refused,
    ),
    "arrow": OptionTable("COPY FROM (FORMAT arrow)", {}, {}, frozenset()),
    "parquet": OptionTable(
        "COPY FROM (FORMAT parquet)",
        {"binary_as_string": switch},
        {},
        frozenset(["encryption_config", "file_row_number", "parquet_version", "schema"]),
    ),
}


def format_read(name: str) -> str | None:
    """Return the format of a path in FROM: Parquet where only its shape tells that it is one; None for a name of a table."""
    lower = name.lower()
    for ending in (".gz", ".zst"):
        lower = lower.removesuffix(ending)
    known = next((form for ending, form in _ENDINGS.items() if lower.endswith(ending)), None)
    is_path = any(sign in name for sign in "/*?")
    return known or ("parquet" if is_path else None)
