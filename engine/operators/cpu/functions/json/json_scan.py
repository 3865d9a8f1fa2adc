"""What documents have at a path, by kernels (`handwritten.cpu.functions_json_cpu`) that read texts where they lie.

A path into 300,000 documents of 90 bytes takes 0.1 s of CPU time, and 4.1 where Python reads each of them (a busy machine);
`FEW_DOCUMENTS` = inf switches the kernels off.  Texts that they do not read, and those that are no JSON, are left to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..... import stopping
from .....codegen.compile.compiler import Signature, parameters
from .....codegen.compile.native import NativeKernel
from .....plan.expr import Call
from .....plan.json.json_paths import compiled
from .....plan.types import VARCHAR
from .....records import dataclass
from ... import table as tables
from ...handwritten_kernels import HandwrittenKernels, KernelsByName
from ...memory.chunks import CHUNK_ROWS
from ...nested_arrays import list_array
from ...sort.text_hashes import buffers_of
from .. import vectors as vec
from ..values.each_value import python_value

Ints: TypeAlias = npt.NDArray[np.int64]

FEW_DOCUMENTS = 1 << 10  # which Python reads soon enough
# Texts for which kernels are compiled first: Python reads them in half a second
WAITED_FOR = 1 << 15
MOST_BYTES = 1 << 31  # of texts whose places 32 bits hold
NOT_READ = -2
QUOTE, OBJECT, ARRAY, NULL = b'"{[n'


COPYING = parameters("text [uint8], begins [int64], offsets [int32], start stop int64, out [uint8]")


def _kernels(wide: bool) -> HandwrittenKernels:
    text: Signature = parameters("text [uint8]")
    path = parameters("valid [uint8], keys [uint8], key_ends [int64], places [int64]")
    span = parameters("start stop int64")
    return HandwrittenKernels(
        "functions_json_cpu.py",
        {
            "json_places": [
                *text,
                ("offsets", "[int64]" if wide else "[int32]"),
                *path,
                *span,
                *parameters("found [int64], begins [int64], ends [int64]"),
            ],
            "copy_parts": COPYING,
        },
    )


SCANNING = {wide: _kernels(wide) for wide in (False, True)}  # whether offsets have 64 bits


@dataclass(frozen=True)
class _ScannedPath:
    """The steps of a path: bytes of keys, and where each ends; places in arrays, -1 for keys."""

    keys: vec.Array
    key_ends: Ints
    places: Ints


@lru_cache(maxsize=256)
def _path_of(path: str | int) -> _ScannedPath | None:
    """Return None for a path with other steps than keys and places that count from the first one."""
    steps = compiled(path).steps
    if not all(isinstance(step, str) or (isinstance(step, int) and step >= 0) for step in steps):
        return None
    keys = [step.encode() if isinstance(step, str) else b"" for step in steps]
    places = [step if isinstance(step, int) else -1 for step in steps]
    ends = list(accumulate(map(len, keys), initial=0))
    key_bytes = np.frombuffer(b"".join(keys), np.uint8)
    return _ScannedPath(key_bytes, np.array(ends, np.int64), np.array(places, np.int64))


@dataclass(frozen=True)
class _FoundParts:
    """Where the values of a path begin and end in the bytes of texts: -1 where there are none, -2 in texts that were not read."""

    text: vec.Array
    begins: Ints
    ends: Ints
    copy_parts: NativeKernel

    @classmethod
    def at(cls, texts: pa.Array, path: _ScannedPath, kernels: KernelsByName) -> _FoundParts:
        text, offsets = buffers_of(texts)
        valid = tables.validity(texts)
        known = np.zeros(0, np.uint8) if valid is None else valid.view(np.uint8)
        found, begins, ends = np.empty(2, np.int64), *np.empty((2, len(texts)), np.int64)
        read = kernels["json_places"]
        for start, stop in spans(len(texts)):
            read(
                text,
                offsets,
                known,
                path.keys,
                path.key_ends,
                path.places,
                start,
                stop,
                found,
                begins,
                ends,
            )
        return cls(text, begins, ends, kernels["copy_parts"])

    @property
    def first_bytes(self) -> vec.Array:
        """The first byte of each value, 0 where there is none."""
        first = np.zeros(len(self.begins), np.uint8)
        there = self.begins >= 0
        first[there] = self.text[self.begins[there]]
        return first

    def texts(self, there: vec.Mask, without: Ints | int = 0) -> pa.Array:
        """Return values as texts, NULL where not `there`, `without` so many bytes at both ends."""
        return copied_parts(self.text, self.begins, self.ends, there, without, self.copy_parts)


def copied_parts(
    text: vec.Array,
    begins: Ints,
    ends: Ints,
    there: vec.Mask,
    without: Ints | int,
    copy_parts: NativeKernel,
) -> pa.Array:
    """Return parts of a text, NULL where not `there`, `without` so many bytes at both ends."""
    begins = begins + without
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(np.where(there, ends - without - begins, 0), out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    for start, stop in spans(len(begins)):
        copy_parts(text, begins, offsets, start, stop, out)
    validity = np.packbits(there, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(begins), buffers)


def instead(made: pa.Array, rows: Ints, others: pa.Array) -> pa.Array:
    """Return an array with other values in some rows."""
    places = np.arange(len(made))
    places[rows] = len(made) + np.arange(len(rows))
    return tables.take_array(tables.concat_arrays([made, others]), places)


def spans(rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, between which a statement stops that is to be stopped."""
    for start in range(0, rows, CHUNK_ROWS):
        stopping.check()
        yield start, min(start + CHUNK_ROWS, rows)


def _extract(parts: _FoundParts) -> pa.Array:
    return parts.texts(parts.begins >= 0)


def _string(parts: _FoundParts) -> pa.Array:
    first = parts.first_bytes
    return parts.texts((first != 0) & (first != NULL), (first == QUOTE).astype(np.int64))


def _scalar(parts: _FoundParts) -> pa.Array:
    first = parts.first_bytes
    return parts.texts((first != 0) & ~np.isin(first, (NULL, OBJECT, ARRAY)))


_OF_PARTS: dict[str, Callable[[_FoundParts], pa.Array]] = {
    "json_extract": _extract,
    "json_extract_string": _string,
    "json_value": _scalar,
}


def scanned(name: str, by_python: vec.Kernel) -> vec.Kernel:
    """Make a kernel of a function of documents and a path that reads many of them where they lie, and other arguments by Python."""
    made_of = _OF_PARTS.get(name)

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        documents, *paths = args
        if (
            documents.is_constant
            or made_of is None
            or not paths
            or not paths[0].is_constant
            or paths[0].is_null
        ):
            return by_python(call, args)
        given, texts = python_value(paths[0]), documents.data
        if pa.types.is_dictionary(texts.type):  # as a cast of repeated texts makes one
            texts = texts.dictionary_decode()
            documents = vec.Vector.from_arrow(texts, documents.type)
        path = _path_of(given) if isinstance(given, str | int) else None
        scanning = SCANNING[pa.types.is_large_string(texts.type)]
        kernels = ready(scanning, texts) if path is not None else None
        if path is None or kernels is None:
            return by_python(call, args)
        parts = _FoundParts.at(texts, path, kernels)
        made = made_of(parts)
        rest = np.flatnonzero(parts.begins == NOT_READ)
        if len(rest):
            others = by_python(call, (documents.take(rest), *paths)).to_arrow(len(rest))
            made = instead(made, rest, others)
        return vec.Vector.from_arrow(made, call.type)

    return kernel


def at_each(one: vec.Kernel, others: vec.Kernel) -> vec.Kernel:
    """Make a kernel of a list of paths of one of a path: 100,000 documents take 0.1 s of CPU time at two paths, and 2.0 by Python."""

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        documents, paths = args
        given = python_value(paths) if paths.is_constant else None
        asked = given if isinstance(given, list) else []
        texts = [path for path in asked if isinstance(path, str) and _path_of(path) is not None]
        if documents.is_constant or not texts or len(texts) < len(asked):
            return others(call, args)
        rows, valid, element = documents.length, documents.mask, call.type.children[0]
        found = [
            one(replace(call, type=element), (documents, vec.constant(path, VARCHAR))).to_arrow(
                rows
            )
            for path in texts
        ]
        there = np.arange(rows) if valid is None else np.flatnonzero(valid)
        places = (there[:, None] + np.arange(len(texts)) * rows).reshape(-1)
        lengths = np.full(rows, len(texts))
        if valid is not None:
            lengths[~valid] = 0
        values = tables.take_array(tables.concat_arrays(found), places)
        lists = list_array(lengths, values, valid, tables.physical_type(call.type))
        return vec.Vector(call.type, lists)

    return kernel


def text_bytes(texts: pa.Array) -> int:
    """Return how many bytes texts have, from the first to the last one."""
    ends = buffers_of(texts)[1]
    return int(ends[-1]) - int(ends[0])


def ready(kernels: HandwrittenKernels, texts: pa.Array) -> KernelsByName | None:
    """Return what reads so many texts, None where Python does."""
    if len(texts) <= FEW_DOCUMENTS or text_bytes(texts) >= MOST_BYTES:
        return None
    return kernels.at_hand(wait=len(texts) >= WAITED_FOR)
