"""CSV, JSON and Arrow files with a fault each, and what comes of reading them; run as a program, since a fault may end the process.

`python -m tests.file_tables.mutated_texts SEED FIRST COUNT` writes a line for each file: its number, and what the queries gave.  The
kinds of files take turns.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc

import fuseline
from tests.storage.mutated_files import digest, flipped, peak_megabytes, table

# A text of which a part is gone may have other columns, or values of other types
EXPECTED = (
    "FileError", "UnknownName", "UnknownColumn", "TypeMismatch", "OutOfRange", "Unsupported", "ConversionError",
    "InvalidQuery", "MemoryLimitError", "ExecutionError",
)  # fmt: skip
QUERIES = (
    "select count(*) from t",
    "select i64, s from t where i32 > 20 order by i32 limit 5",
    "select few, count(*), sum(i8), avg(d) from t group by few",
)


def _csv() -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table(), sink)
    return sink.getvalue()


def _rows() -> list[str]:
    columns = table().drop_columns(["dec38"])
    rows = columns.to_pylist()
    return [
        json.dumps({**row, "list": [1, None], "o": {"a": row["s"]}}, default=str) for row in rows
    ]


def _ipc(stream: bool, compression: str | None) -> bytes:
    sink, data = (
        pa.BufferOutputStream(),
        table().drop_columns(["ms"]),
    )  # which files of Arrow's are not read with
    options = pa.ipc.IpcWriteOptions(compression=compression)
    open_ = pa.ipc.new_stream if stream else pa.ipc.new_file
    with open_(sink, data.schema, options=options) as writer:
        writer.write_table(data, max_chunksize=100)
    return bytes(sink.getvalue())


@cache
def bases() -> tuple[tuple[str, bytes], ...]:
    """Whole files, with the ends of their names."""
    text = _csv()
    return (
        ("csv", text),
        ("csv.gz", gzip.compress(text, mtime=0)),
        ("tsv", text.replace(b",", b"\t")),
        ("json", f"[{','.join(_rows())}]".encode()),
        ("ndjson", "\n".join(_rows()).encode()),
        ("arrow", _ipc(stream=False, compression=None)),
        ("arrow", _ipc(stream=False, compression="zstd")),
        ("arrows", _ipc(stream=True, compression="lz4")),
        ("arrows", _ipc(stream=True, compression=None)),
    )


PIECES = (
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"null",
    b"\0",
    b"\xff",
    b"1e999",
    b"\xef\xbb\xbf",
    b"'",
    b"\t",
)


def mutant(seed: int, number: int) -> tuple[str, bytes]:
    """Return the end of a name, and a file with a fault, the same one each time."""
    draw = random.Random(f"{seed} {number}")
    end, whole = bases()[number % len(bases())]
    data = bytearray(whole)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at, count = draw.randrange(len(data) + 1), draw.choice((1, 4, 16, 500))
        match draw.randrange(6):
            case 0:
                data = data[:at]
            case 1:
                data[at : at + count] = bytes(len(data[at : at + count]))
            case 2:
                del data[at : at + count]
            case 3:
                data[at:at] = draw.choice(PIECES) * draw.choice((1, 1, 2, 3000))
            case 4:
                data[at:at] = data[at : at + count]
            case 5 if data:
                data = flipped(data, draw)
    return end, bytes(data)


def outcomes(path: Path) -> Iterator[str]:
    with fuseline.connect("cpu", fuse="never", threads=2) as connection:
        for query in ("from t", *QUERIES):
            try:
                found = connection.sql(query.replace("from t", f"from '{path}'")).to_arrow()
                yield f"rows {digest(found)}" if query == "from t" else "rows"
            except fuseline.FuselineError as error:
                yield type(error).__name__
                if type(error).__name__ not in EXPECTED:
                    print(f"# {query}: {error.__cause__!r} {error}"[:600].replace("\n", " "))
            except Exception as error:
                yield f"!{error!r}"[:200]


def main(seed: int, first: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            end, data = mutant(seed, number)
            path = Path(folder) / f"t.{end}"
            path.write_bytes(data)
            print(f"{number} {json.dumps([list(outcomes(path)), peak_megabytes()])}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
