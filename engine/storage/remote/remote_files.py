"""One remote file: what it was when it was looked at, and its bytes by ranges, as a file that pyarrow reads."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import NoReturn, Protocol

import pyarrow as pa

from ...errors import Unsupported
from ...stopping import wait
from ..file_identity import FileIdentity, changed
from .object_stores import Found, requests, together

FIRST_BLOCK, LARGEST_BLOCK = 1 << 16, 8 << 20  # bytes of one request while a file is read in order
LARGEST_REQUEST = 8 << 20  # bytes, so that one range comes over several connections
# Bytes between two ranges that are read with them rather than asked for apart: as a share of the bytes that are wanted, and at most
WASTE_SHARE, LARGEST_GAP = 16, 1 << 20
TAIL_SHARE, SMALLEST_TAIL, LARGEST_TAIL = 1000, 1 << 12, 1 << 16
Range = tuple[int, int]  # from, to before


class Store(Protocol):
    """What answers for files."""

    @property
    def place(self) -> str: ...
    @property
    def root(self) -> str: ...
    def look(self, key: str) -> Found: ...
    def read(self, key: str, begin: int, end: int, e_tag: str | None) -> memoryview: ...
    def below(self, folder: str) -> Iterator[Found]: ...


class RemoteFile(FileIdentity):
    """A remote file as it was when it was looked at: `inode` stands for its address and ETag, so that equal identities have equal bytes."""

    store: Store
    found: Found

    @classmethod
    def at(cls, store: Store, found: Found) -> RemoteFile:
        said = f"{store.place}|{found.e_tag}".encode()
        number = int.from_bytes(hashlib.blake2b(said, digest_size=8).digest())
        path = store.root + found.key
        file = cls(path, found.size, found.modified_ns, found.modified_ns, number)
        file.store, file.found = store, found
        return file

    def __reduce__(self) -> NoReturn:
        raise Unsupported(
            f'A cluster does not read remote files, such as "{self.path}": copy them to a disk that its workers share.'
        )

    @property
    def is_tagged(self) -> bool:
        """Whether its store tells versions of it apart."""
        return self.found.e_tag is not None

    def read(self, begin: int, end: int) -> memoryview:
        """Return bytes of the file that was looked at; raises `FileError` where it is another one by now."""
        return self.store.read(self.found.key, begin, end, self.found.e_tag)

    def now(self) -> RemoteFile:
        """Return it as it is now; raises `FileError`."""
        return RemoteFile.at(self.store, self.store.look(self.found.key))

    def check_unchanged(self) -> None:
        """Raise `FileError` where it is another file by now; with an ETag each read has asked that."""
        if not self.is_tagged and together(lambda file: file.now(), [self]) != [self]:
            raise changed(self.path)

    @contextmanager
    def opened(self, from_end: bool = False) -> Iterator[pa.PythonFile]:
        """Open it to be read in order, or from its end, where footers lie."""
        blocks = ByteRanges(self)
        if from_end:
            share = min(LARGEST_TAIL, max(SMALLEST_TAIL, self.size // TAIL_SHARE))
            blocks = fetched(self, [(max(0, self.size - share), self.size)])
        with pa.PythonFile(blocks, "r") as source:
            yield source


class ByteRanges(io.RawIOBase):
    """A file of which some ranges are here; what else is read is asked for, in growing blocks where it is read in order."""

    def __init__(self, file: RemoteFile, parts: Sequence[tuple[int, memoryview]] = ()) -> None:
        self._file = file
        self._starts = [start for start, _ in parts]
        self._data = [data for _, data in parts]
        self._kept = bool(parts)
        self._at, self._block = 0, FIRST_BLOCK
        self._ahead: tuple[int, Future[memoryview]] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._file.size

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + {0: 0, 1: self._at, 2: self._file.size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes | memoryview:
        """Return up to so many bytes from here on, without a copy where one range has them."""
        end = self._file.size if size is None or size < 0 else min(self._at + size, self._file.size)
        parts: list[memoryview] = []
        while self._at < end:
            part = self._bytes_at(self._at, end)
            parts.append(part)
            self._at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _bytes_at(self, at: int, end: int) -> memoryview:
        place = bisect_right(self._starts, at) - 1
        if place >= 0 and at < self._starts[place] + len(self._data[place]):
            inside = at - self._starts[place]
            return self._data[place][inside : inside + end - at]
        self._ask(at, end)
        return self._bytes_at(at, end)

    def _ask(self, at: int, end: int) -> None:
        """Read what is not here; another block of a file that is read in order is under way meanwhile."""
        if self._kept:  # ranges were chosen: beside them as little as possible
            data = wait(requests().submit(self._file.read, at, end))
            place = bisect_right(self._starts, at)
            self._starts.insert(place, at)
            self._data.insert(place, data)
            return
        in_order = bool(self._starts) and self._starts[0] + len(self._data[0]) == at
        self._block = min(2 * self._block, LARGEST_BLOCK) if in_order else FIRST_BLOCK
        if self._ahead is not None and self._ahead[0] == at:
            data = wait(self._ahead[1])
        else:
            block = min(max(end, at + self._block), self._file.size)
            data = wait(requests().submit(self._file.read, at, block))
        self._starts, self._data = [at], [data]
        begin = at + len(data)
        self._ahead = None
        if in_order and begin < self._file.size:
            block = min(begin + self._block, self._file.size)
            self._ahead = begin, requests().submit(self._file.read, begin, block)


def fetched(file: RemoteFile, ranges: Sequence[Range]) -> ByteRanges:
    """Return a file of which some ranges are here, which are asked for together."""
    runs = coalesced(ranges)
    return gathered(file, runs, ask(file, runs))


def ask(file: RemoteFile, runs: Sequence[Range]) -> list[list[Future[memoryview]]]:
    """Ask for runs of bytes, large ones in pieces."""
    return [
        [
            requests().submit(file.read, start, min(start + LARGEST_REQUEST, end))
            for start in range(begin, end, LARGEST_REQUEST)
        ]
        for begin, end in runs
    ]


def gathered(
    file: RemoteFile, runs: Sequence[Range], asked: Sequence[Sequence[Future[memoryview]]]
) -> ByteRanges:
    """Wait for what was asked for; ends with what this thread works for."""
    parts: list[tuple[int, memoryview]] = []
    try:
        for (begin, _), pieces in zip(runs, asked, strict=True):
            data = [wait(piece) for piece in pieces]
            whole = data[0] if len(data) == 1 else memoryview(b"".join(data))
            parts.append((begin, whole))
    except BaseException:
        for pieces in asked:
            for piece in pieces:
                piece.cancel()
        raise
    return ByteRanges(file, parts)


def coalesced(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges in their order, neighbours as one where little lies between them."""
    runs: list[Range] = []
    wanted = wasted = 0
    for begin, end in sorted(ranges):
        if begin >= end:
            continue
        if runs:
            last_begin, last_end = runs[-1]
            gap, more = max(0, begin - last_end), max(0, end - max(begin, last_end))
            if gap <= LARGEST_GAP and (wasted + gap) * WASTE_SHARE <= wanted + more:
                runs[-1] = last_begin, max(last_end, end)
                wanted, wasted = wanted + more, wasted + gap
                continue
        runs.append((begin, end))
        wanted, wasted = end - begin, 0
    return runs
