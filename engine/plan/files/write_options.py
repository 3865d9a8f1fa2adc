"""The options of COPY and of what writes files: what each is called, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import InvalidQuery, UnknownName, Unsupported, nearest, shown
from ...records import dataclass
from ...settings import parse_bytes

Check = Callable[
    [object], object
]  # from what was written to the value; raises `NotTaken` with what the option takes


class NotTaken(Exception):
    """An option has another value than one that it takes; the message is what that is."""


def switch(value: object) -> bool:
    if value is None or value is True or value is False:
        return value is not False
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    known = {"true": True, "false": False, "on": True, "off": False, "1": True, "0": False}
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    raise NotTaken("true or false")


def text(value: object) -> str:
    if not isinstance(value, str):
        raise NotTaken("a text")
    return value


def delimiter(value: object) -> str:
    """Return what stands between values; a backslash and a t are a tab."""
    found = value.replace("\\t", "\t") if isinstance(value, str) else ""
    if not 0 < len(found.encode()) <= 4:
        raise NotTaken("up to four bytes between values")
    return found


def one_byte(value: object) -> str:
    if not isinstance(value, str) or len(value.encode()) > 1:
        raise NotTaken("one character of ASCII, or none")
    return value


def positive(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise NotTaken("a whole number above 0")
    return value


def number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotTaken("a whole number")
    return value


def texts(value: object, taken: str = "a text or a list of them") -> tuple[str, ...]:
    """Return one text or several; what is `taken` says how users call them."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(v, str) for v in found):
        raise NotTaken(taken)
    return tuple(found)


def columns(value: object) -> tuple[str, ...]:
    names = texts(value, "a column, or several in parentheses")
    if not names:
        raise NotTaken("at least one column")
    return names


def size(value: object) -> int:
    try:
        found = parse_bytes("file_size_bytes", value)
    except InvalidQuery:
        found = None
    if not found:
        raise NotTaken("a number of bytes such as 1000000, or '100MB'")
    return found


def pairs(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise NotTaken("a struct of texts: {key: 'value'}")
    return {str(key): str(known) for key, known in value.items()}


def only(wanted: bool) -> Check:
    def check(value: object) -> object:
        if switch(value) is not wanted:
            raise NotTaken(f"{str(wanted).lower()} alone here")
        return wanted

    return check


def one_of(*words: str, **others: str) -> Check:
    """Take one of some words, or another word for one of them."""

    def check(value: object) -> object:
        word = value.lower() if isinstance(value, str) else ""
        word = others.get(word, word)
        if word not in words:
            raise NotTaken("one of " + ", ".join(words))
        return word

    return check


@dataclass(frozen=True)
class OptionTable:
    """What a statement or function takes: options, other names for them, and what DuckDB has beside them."""

    what: str
    checks: Mapping[str, Check]
    others: Mapping[str, str]
    refused: frozenset[str]

    def read(self, name: str, value: object, tells: bool = True) -> tuple[str, object]:
        """Return an option under its first name, with its value; raises where there is no such option, or no such value.

        Where it does not tell values, its messages leave them out.
        """
        name = self.others.get(name.lower(), name.lower())
        if name in self.refused:
            raise Unsupported(f"The option {name} of {self.what} is not supported: leave it out.")
        check = self.checks.get(name)
        if check is None:
            hint = nearest(name, self.checks) or f" The options are {', '.join(self.checks)}."
            raise UnknownName(f'{self.what} has no option "{name}".{hint}')
        try:
            return name, check(value)
        except NotTaken as error:
            given = f", not {shown(value)}" if tells else ""
            raise InvalidQuery(f"The option {name} of {self.what} takes {error}{given}.") from None


_SHARED: dict[str, Check] = {
    "partition_by": columns,
    "write_partition_columns": switch,
    "overwrite": switch,
    "overwrite_or_ignore": switch,
    "append": switch,
    "use_tmp_file": only(True),
    "filename_pattern": text,
    "file_extension": text,
    "per_thread_output": switch,
    "file_size_bytes": size,
    "return_files": switch,
}
_SHARED_REFUSED = [
    "return_stats",
    "batches_per_file",
    "preserve_order",
    "hive_file_pattern",
    "encoding",
]
_STREAM = one_of("auto", "none", "gzip", "zstd", uncompressed="none", gz="gzip")
_BY_FORMAT: dict[str, tuple[dict[str, Check], dict[str, str], str]] = {
    "parquet": (
        {
            "compression": one_of(
                "uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw", lz4="lz4_raw", none="uncompressed"
            ),
            "compression_level": number,
            "row_group_size": positive,
            "kv_metadata": pairs,
        },
        {"codec": "compression"},
        "row_group_size_bytes row_groups_per_file field_ids parquet_version encryption_config shredding "
        "dictionary_size_limit string_dictionary_page_size_limit bloom_filter_false_positive_ratio "
        "write_bloom_filter geoparquet_version variant_minimum_shredding_size",
    ),
    "csv": (
        {
            "header": switch,
            "delim": delimiter,
            "quote": one_byte,
            "escape": one_byte,
            "nullstr": text,
            "force_quote": columns,
            "dateformat": text,
            "timestampformat": text,
            "compression": _STREAM,
        },
        {
            "sep": "delim",
            "delimiter": "delim",
            "separator": "delim",
            "include_header": "header",
            "quotechar": "quote",
            "quote_char": "quote",
            "null": "nullstr",
            "na_rep": "nullstr",
            "null_value": "nullstr",
            "date_format": "dateformat",
            "timestamp_format": "timestampformat",
        },
        "prefix suffix new_line comment thousands",
    ),
    "json": (
        {
            "array": switch,
            "dateformat": text,
            "timestampformat": text,
            "compression": _STREAM,
        },
        {"date_format": "dateformat", "timestamp_format": "timestampformat"},
        "",
    ),
    "arrow": ({"compression": one_of("uncompressed", "lz4", "zstd", none="uncompressed")}, {}, ""),
}  # fmt: skip
FORMAT_NAMES = {"parquet": "parquet", "csv": "csv", "json": "json", "ndjson": "json", "arrow": "arrow",
                "ipc": "arrow", "feather": "arrow"}  # fmt: skip
_ENDINGS = {".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".json": "json", ".ndjson": "json",
            ".jsonl": "json", ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow"}  # fmt: skip
WRITE_OPTIONS = {
    name: OptionTable(
        f"COPY TO (FORMAT {name})",
        {**checks, **_SHARED},
        others,
        frozenset([*refused.split(), *_SHARED_REFUSED]),
    )
    for name, (checks, others, refused) in _BY_FORMAT.items()
}


def format_named(name: object) -> str:
    """Return the format of a name; raises `Unsupported`."""
    found = FORMAT_NAMES.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise Unsupported(
            f"The format {shown(name)} is not supported: there are {', '.join(_BY_FORMAT)}."
        )
    return found


def format_of(path: str) -> str:
    """Return the format that a path means by its ending: CSV, as in DuckDB, where that says nothing."""
    name = path.lower().rstrip("/")
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    return next((f for ending, f in _ENDINGS.items() if name.endswith(ending)), "csv")
