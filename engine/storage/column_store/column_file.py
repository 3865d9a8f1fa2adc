"""The file of one column: its arrays as an Arrow IPC file, a description, and checksums of both.

    the Arrow IPC file       one batch of one column: codes, with their values where there is a dictionary, or plain values
    the description          JSON: the key, how codes are read, what was measured, a CRC-32 of each block of the Arrow file
    the last 24 bytes        the description's CRC-32 and length, and MAGIC, which ends with the version of the format

Every byte of the file is under one of the checksums, all of which are compared by reading before the file is mapped: a disk that
gives no block is an error there, where it would end a process that reads a mapping.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from ...records import dataclass
from ..columns import encodings as enc
from ..spill_folders import open_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...plan.types import DataType

MAGIC = b"FUSELINE COLUMN1"
BLOCK_BYTES = 1 << 20
UNFINISHED = ".new"  # at the end of the name of a file that is written
OTHER_BYTES = "has other bytes than were written"
_TAIL = struct.Struct("<II16s")
_ENCODINGS = {"narrow": enc.Narrow, "dictionary": enc.Dictionary, "plain": enc.Plain}


class Damaged(Exception):
    """A file that is not what was written."""


class StoredColumn(NamedTuple):
    """What a file holds: a column as kernels read it, or an array as operators do, texts in memory in several; `refused`: it has no encoding."""

    value: enc.EncodedColumn | pa.Array | pa.ChunkedArray
    refused: bool = False


@dataclass(frozen=True)
class Description:
    """What a file says of its column; `encoding` None: an array as operators read it."""

    key: str
    bytes: int  # of the Arrow file
    blocks: list[int]
    encoding: str | None
    refused: bool = False
    width: int = 0
    base: int = 0
    step: int = 1
    low: int | None = None
    high: int | None = None
    ascending: bool = False
    clustered: bool = False


def write_column(path: Path, key: str, column: StoredColumn, check: Callable[[], None]) -> int:
    """Write a file that is there as a whole or not at all, and return its bytes; raises `OSError`, and what `check` does between blocks."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="c_", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            body = _Blocks(file, check)
            batch = pa.record_batch([_array(column)], ["values"])
            with pa.ipc.new_file(pa.PythonFile(body, "w"), batch.schema) as writer:
                writer.write_batch(batch)
            text = json.dumps(asdict(_described(key, body, column))).encode()
            file.write(text + _TAIL.pack(zlib.crc32(text), len(text), MAGIC))
            size = file.tell()
        Path(temporary).replace(path)
        return size
    finally:
        Path(temporary).unlink(missing_ok=True)


def read_column(path: Path, key: str, data_type: DataType, threads: int) -> StoredColumn:
    """Return a column over the mapped file; raises `OSError` where it cannot be read and `Damaged` for any but that of the key as it was written."""
    with open_file(path, touch=True) as file:
        said = _description(file)
        if said.key != key:
            raise Damaged("is that of another column")
        _check_blocks(file, said, threads)
        try:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            body = pa.py_buffer(mapped).slice(0, said.bytes)
            (array,) = pa.ipc.open_file(body).get_batch(0).columns
            return _column(array, said, data_type)
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise Damaged(f"cannot be read: {error}") from error


class _Blocks:
    """A file as Arrow writes to it: what comes is counted, with a checksum of each block."""

    closed = False

    def __init__(self, file: BinaryIO, check: Callable[[], None]) -> None:
        self._file, self._check = file, check
        self._whole: list[int] = []
        self._last = 0
        self.count = 0

    def write(self, data: bytes) -> int:
        left = memoryview(data).cast("B")
        written = len(left)
        while left:
            self._check()
            part = left[: BLOCK_BYTES - self.count % BLOCK_BYTES]
            self._file.write(part)
            self._last = zlib.crc32(part, self._last)
            self.count += len(part)
            if self.count % BLOCK_BYTES == 0:
                self._whole.append(self._last)
                self._last = 0
            left = left[len(part) :]
        return written

    def checksums(self) -> list[int]:
        return self._whole + ([self._last] if self.count % BLOCK_BYTES else [])

    def tell(self) -> int:
        return self.count

    def flush(self) -> None:
        """Arrow asks for it; the file is flushed when it is closed."""

    def close(self) -> None:
        """Arrow asks for it; the description is still to come."""


def _description(file: BinaryIO) -> Description:
    size = os.fstat(file.fileno()).st_size
    if size < _TAIL.size:
        raise Damaged("is cut off")
    checksum, length, magic = _TAIL.unpack(os.pread(file.fileno(), _TAIL.size, size - _TAIL.size))
    if magic[:-1] == MAGIC[:-1] and magic != MAGIC:
        raise Damaged("is of another version")
    start = size - _TAIL.size - length
    if magic != MAGIC or start < 0:
        raise Damaged("is cut off, or no column")
    text = os.pread(file.fileno(), length, start)
    if zlib.crc32(text) != checksum:
        raise Damaged(OTHER_BYTES)
    try:
        found = Description(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise Damaged(f"cannot be read: {error}") from error
    if found.bytes != start:
        raise Damaged(OTHER_BYTES)
    return found


def _check_blocks(file: BinaryIO, said: Description, threads: int) -> None:
    """Compare the checksums of all blocks, on all threads where there are many."""
    size, expected = said.bytes, said.blocks

    def is_whole(number: int) -> bool:
        start = number * BLOCK_BYTES
        block = os.pread(file.fileno(), min(BLOCK_BYTES, size - start), start)
        return zlib.crc32(block) == expected[number]

    numbers = range(-(-size // BLOCK_BYTES))
    if len(numbers) != len(expected):
        raise Damaged(OTHER_BYTES)
    if threads < 2 or len(numbers) < 4 * threads:
        whole = all(map(is_whole, numbers))
    else:
        with ThreadPoolExecutor(threads) as pool:
            whole = all(pool.map(is_whole, numbers))
    if not whole:
        raise Damaged(OTHER_BYTES)


def _array(column: StoredColumn) -> pa.Array:
    """Return what a file holds as one array."""
    value = column.value
    if not isinstance(value, enc.EncodedColumn):
        return value
    codes = enc.codes_of(value)
    if value.encoding.values is None:
        return codes
    return pa.DictionaryArray.from_arrays(codes, value.encoding.values, safe=False)


def _described(key: str, body: _Blocks, column: StoredColumn) -> Description:
    value, written = column.value, (key, body.count, body.checksums())
    if not isinstance(value, enc.EncodedColumn):
        return Description(*written, None, column.refused)
    form = value.encoding.flat
    return Description(
        *written,
        next(name for name, known in _ENCODINGS.items() if isinstance(form, known)),
        width=form.width,
        base=form.base,
        step=form.step,
        low=value.low,
        high=value.high,
        ascending=value.ascending,
        clustered=value.clustered,
    )


def _column(array: pa.Array, said: Description, data_type: DataType) -> StoredColumn:
    if said.encoding is None:
        return StoredColumn(array, said.refused)
    codes = array.indices if said.encoding == "dictionary" else array
    encoding: enc.Encoding = enc.Narrow(said.base, said.step, said.width)
    if said.encoding == "dictionary":
        encoding = enc.Dictionary(array.dictionary, said.width)
    elif said.encoding == "plain":
        encoding = enc.Plain(said.width)
    nulls, bitmap = codes.null_count, codes.buffers()[0]
    return StoredColumn(
        enc.EncodedColumn(
            data_type,
            encoding,
            len(codes),
            enc.values_of(codes, encoding.code_type),
            np.frombuffer(bitmap, np.uint8, -(-len(codes) // 8)) if nulls else None,
            nulls,
            said.low,
            said.high,
            said.ascending,
            said.clustered,
        )
    )
