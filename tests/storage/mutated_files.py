"""Parquet files with a fault each, and what comes of reading them; run as a program, since a fault may end the process.

`python -m tests.storage.mutated_files SEED FIRST COUNT` writes a line for each of COUNT files: its number, and what the queries gave, the
class of an error or the digest of the rows.  With `reference` behind it pyarrow reads the files instead.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 240
SHORTEST = 12  # bytes of a file with a footer of none
ENCODINGS = {
    "i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT", "d": "BYTE_STREAM_SPLIT",
    "s": "DELTA_BYTE_ARRAY", "few": "DELTA_LENGTH_BYTE_ARRAY", "b": "RLE", "dec7": "PLAIN",
}  # fmt: skip


def table() -> pa.Table:
    """All types that there are, most of them with NULLs."""
    draw = random.Random(7)

    def values(make: Callable[[int], Any]) -> list[Any]:
        return [None if draw.random() < 0.1 else make(i) for i in range(ROWS)]

    start, first = datetime(2024, 1, 1), date(2024, 1, 1)
    return pa.table(
        {
            "i8": pa.array(values(lambda i: i % 100), pa.int8()),
            "u16": pa.array(values(lambda i: i * 7), pa.uint16()),
            "i32": pa.array(range(ROWS), pa.int32()),
            "i64": pa.array(values(lambda i: i * 1_000_003), pa.int64()),
            "u64": pa.array(values(lambda i: i), pa.uint64()),
            "f": pa.array(values(lambda i: i / 3), pa.float32()),
            "d": pa.array(values(lambda i: i / 7), pa.float64()),
            "b": pa.array(values(lambda i: i % 3 == 0), pa.bool_()),
            "day": pa.array(values(lambda i: first + timedelta(days=i)), pa.date32()),
            "ms": pa.array(values(lambda i: start + timedelta(hours=i)), pa.timestamp("ms")),
            "us": pa.array(values(lambda i: start + timedelta(microseconds=i)), pa.timestamp("us")),
            "dec7": pa.array(values(lambda i: Decimal(i) / 100), pa.decimal128(7, 2)),
            "dec18": pa.array(values(lambda i: Decimal(i) / 100), pa.decimal128(18, 2)),
            "dec38": pa.array(values(lambda i: Decimal(i) / 100), pa.decimal128(38, 2)),
            "s": pa.array(values(lambda i: f"text number {draw.randrange(10**6)}")),
            "few": pa.array(values(lambda i: f"value {i % 5}")),
            "none": pa.array([None] * ROWS, pa.string()),
        }
    )


BASES: dict[str, dict[str, Any]] = {
    "plain": {"compression": "none", "use_dictionary": False},
    "dictionary": {"compression": "none"},
    "snappy": {"compression": "snappy", "write_page_index": True},
    "zstd, version 2": {"compression": "zstd", "data_page_version": "2.0"},
    "gzip, old": {"compression": "gzip", "version": "1.0"},
    "lz4": {"compression": "lz4", "write_page_checksum": True},
    "brotli": {"compression": "brotli", "data_page_version": "2.0", "use_dictionary": False},
    "encodings": {"compression": "none", "use_dictionary": False, "column_encoding": ENCODINGS},
    "encodings, version 2": {"compression": "snappy", "use_dictionary": False, "column_encoding": ENCODINGS, "data_page_version": "2.0"},
    "decimals as integers": {"store_decimal_as_integer": True, "compression": "none"},
    "no schema of Arrow": {"store_schema": False, "write_statistics": False},
    "integers of 96 bits": {"use_deprecated_int96_timestamps": True, "compression": "none"},
}  # fmt: skip


@cache
def bases() -> tuple[bytes, ...]:
    """Whole files: of each way of pyarrow's to write one, with several row groups and pages, and of DuckDB's, with bloom filters."""
    import duckdb

    made, data = [], table()
    for options in BASES.values():
        sink = pa.BufferOutputStream()
        pq.write_table(data, sink, row_group_size=100, data_page_size=200, **options)
        made.append(bytes(sink.getvalue()))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for version in ("v1", "v2"):
            path = Path(folder) / f"{version}.parquet"
            connection.register("t", data)
            connection.execute(
                f"copy t to '{path}' (format parquet, parquet_version {version}, row_group_size 2048, "
                "string_dictionary_page_size_limit 4096)"
            )
            made.append(path.read_bytes())
    return tuple(made)


# Faults


def mutant(seed: int, number: int) -> bytes:
    """Return a file with a fault, the same one each time."""
    draw = random.Random(f"{seed} {number}")
    data = bytearray(draw.choice(bases()))
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        if len(data) < SHORTEST:
            break  # a cut has left too little for another fault
        data = draw.choice(FAULTS)(data, draw)
    return bytes(data)


def _footer(data: bytearray) -> int:
    """Where the footer begins, or what its length says."""
    return max(4, min(len(data) - 8, len(data) - 8 - int.from_bytes(data[-8:-4], "little")))


def _place(data: bytearray, draw: random.Random) -> int:
    """A place in the file: every other one in the footer, of those before it many in the headers of pages."""
    begin, kind = _footer(data), draw.random()
    if kind < 0.5 or begin < 8:
        return draw.randrange(begin, max(begin + 1, len(data)))
    if kind < 0.75:
        headers = [at for at in range(4, begin) if data[at] == 0x15]
        if headers:
            return min(draw.choice(headers) + draw.randrange(16), begin - 1)
    return draw.randrange(begin)


def flipped(data: bytearray, draw: random.Random) -> bytearray:
    for _ in range(draw.choice((1, 1, 2, 8))):
        data[_place(data, draw)] ^= 1 << draw.randrange(8)
    return data


def _replaced(data: bytearray, draw: random.Random) -> bytearray:
    data[_place(data, draw)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return data


def _cut(data: bytearray, draw: random.Random) -> bytearray:
    return data[: draw.randrange(len(data))]


def _zeroed(data: bytearray, draw: random.Random) -> bytearray:
    at = _place(data, draw)
    count = min(draw.choice((4, 16, 100, 5000)), len(data) - at)
    data[at : at + count] = bytes(count)
    return data


def _moved(data: bytearray, draw: random.Random) -> bytearray:
    """Some bytes more or less, after which the length of the footer may be the right one."""
    at, before = _place(data, draw), _footer(data)
    in_footer = before <= at < len(data) - 8
    length = len(data) - 8 - before
    if draw.random() < 0.5:
        del data[at : at + draw.choice((1, 2, 30))]
    else:
        data[at:at] = draw.choice((b"\0", b"\xff" * 9 + b"\x01", b"\x15\x02", draw.randbytes(5)))
    if in_footer and len(data) > 12 and draw.random() < 0.8:
        new = max(0, len(data) - 8 - before)
        data[-8:-4] = new.to_bytes(4, "little") if new != length else data[-8:-4]
    return data


def _other_footer(data: bytearray, draw: random.Random) -> bytearray:
    other = bytearray(draw.choice(bases()))
    return data[: _footer(data)] + other[_footer(other) :]


def _other_number(data: bytearray, draw: random.Random) -> bytearray:
    """A number of the footer, or of the header of a page, becomes a huge or negative one, or one close by; the footer's length follows."""
    before = _footer(data)
    fields = [
        at + 1 for at in range(before, len(data) - 9) if data[at] & 0x0F in (5, 6) and data[at] >> 4
    ]
    at = draw.choice(fields) if fields and draw.random() < 0.7 else _place(data, draw)
    end, value = at, 0
    while end < len(data) - 9 and data[end] & 0x80:
        end += 1
    for byte in reversed(data[at : end + 1]):
        value = value << 7 | byte & 0x7F
    value = max(
        0, draw.choice((*HUGE, value + 1, value + 2, value - 2, value + 20, value * 2, value // 2))
    )
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    if at < before or at >= len(data) - 8:
        data[at : at + len(encoded)] = encoded  # nothing behind it moves
        return data
    data[at : end + 1] = encoded
    data[-8:-4] = max(0, len(data) - 8 - before).to_bytes(4, "little")
    return data


HUGE = (1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1, 1_000_000, 5)
FAULTS = (
    *(flipped, flipped, _replaced, _replaced, _cut, _zeroed, _moved, _moved, _other_footer),
    *(_other_number, _other_number, _other_number, _other_number),
)

# What is asked


def digest(data: pa.Table) -> str:
    """The same for the same rows; NaNs are one value, and times numbers, as Python has not all."""
    rows = [repr(_printable(column).to_pylist()) for column in data.columns]
    return hashlib.sha256(
        "\n".join([*data.column_names, *rows]).encode(errors="replace")
    ).hexdigest()


def _printable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


QUERIES = (
    "select count(*) from t",
    "select min(i64), max(d), count(s), min(few), max(us), sum(dec18), max(dec38) from t",
    "select i32, s from t where i64 > 5000 and few <> 'value 3' and day < date '2024-06-01' order by i64 limit 5",
    "select few, count(*), sum(i8), avg(f) from t group by few",
)


def outcomes(path: Path, fuse: str) -> Iterator[str]:
    """Yield what each query gives: the class of its error, or `rows` and for the whole table their digest."""
    import fuseline

    with fuseline.connect("cpu", fuse=fuse, threads=2) as connection:
        for query in ("from t", *QUERIES):
            text = query.replace("from t", f"from '{path}'")
            try:
                found = connection.sql(text).to_arrow()
                yield f"rows {digest(found)}" if query == "from t" else "rows"
            except fuseline.FuselineError as error:
                yield type(error).__name__
                if type(error).__name__ not in EXPECTED:
                    print(
                        f"# {query}: {error.__cause__!r} {error}"[:600].replace("\n", " "),
                        flush=True,
                    )


# A column's name or type may be another one in a damaged footer
EXPECTED = (
    "FileError",
    "UnknownName",
    "UnknownColumn",
    "TypeMismatch",
    "OutOfRange",
    "Unsupported",
)


def references(path: Path) -> Iterator[str]:
    """Yield what pyarrow reads: all at once and by row groups, which in a damaged file may differ.

    Timestamps of 96 bits as microseconds: a year that a fault puts past 2262 wraps around in pyarrow's nanoseconds.
    """
    opened = partial(pq.ParquetFile, path, coerce_int96_timestamp_unit="us")
    yield _reference(lambda: opened().read())
    with opened() as file:
        groups = range(file.num_row_groups)
        yield _reference(lambda: pa.concat_tables(file.read_row_group(i) for i in groups))


def _reference(read: Callable[[], pa.Table]) -> str:
    try:
        data = read()
        types = [_in_results(field.type) for field in data.schema]
        arrays = [c.cast(t, safe=False) for c, t in zip(data.columns, types, strict=True)]
        return f"rows {digest(pa.table(arrays, names=data.column_names))}"
    except Exception as error:
        return type(error).__name__


def _in_results(arrow: pa.DataType) -> pa.DataType:
    from fuseline.plan.arrow.arrow_types import from_arrow
    from fuseline.plan.types import to_arrow

    coarse = arrow in (pa.timestamp("s"), pa.timestamp("ms"))  # which a table's would stay
    return pa.timestamp("us") if coarse else to_arrow(from_arrow(arrow))


def _tried(found: Iterator[str]) -> Iterator[str]:
    try:
        yield from found
    except Exception as error:
        yield type(error).__name__


def main(seed: int, first: int, count: int, by_reference: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        for number in range(first, first + count):
            path.write_bytes(mutant(seed, number))
            if by_reference:
                found: list[str] = list(_tried(references(path)))
            else:
                found = list(outcomes(path, "always" if number % 40 == 0 else "never"))
            print(f"{number} {json.dumps([found, peak_megabytes()])}", flush=True)


def peak_megabytes() -> int:
    """Return the most memory of this process so far: not ru_maxrss, which begins with that of the process that started this one."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), "reference" in sys.argv)
