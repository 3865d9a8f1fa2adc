"""Arrays whose bits, of truth values and of what is NULL, begin with a byte."""

from __future__ import annotations

import pyarrow as pa


def whole_bytes(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an array with those chunks copied that begin within a byte.

    libcudf 26.10.2 copies such bits to a GPU with the bits before them, but has memory for as many words as the rows alone fill: of some
    slices it writes a byte behind its memory, or fails.
    """
    if not any(chunk.offset % 8 for chunk in array.chunks):
        return array
    chunks = [_copied(chunk) if chunk.offset % 8 else chunk for chunk in array.chunks]
    return pa.chunked_array(chunks, array.type)


def _copied(chunk: pa.Array) -> pa.Array:
    return pa.concat_arrays([chunk, chunk[:0]])  # of one array alone it makes none
