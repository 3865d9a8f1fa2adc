"""Arrays whose bits, of truth values and of what is NULL, begin with a byte."""

from __future__ import annotations

import pyarrow as pa


def whole_bytes(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an array with those chunks copied that have bits and begin within a byte.

    libcudf 26.10.2 copies such bits to a GPU with the bits before them, but has memory for as many words as the rows alone fill: of some
    slices it writes a byte behind its memory, or fails.
    """
    if not any(map(_begins_within, array.chunks)):
        return array
    chunks = [_copied(chunk) if _begins_within(chunk) else chunk for chunk in array.chunks]
    return pa.chunked_array(chunks, array.type)


def _begins_within(chunk: pa.Array) -> bool:
    kinds = (pa.types.is_boolean, pa.types.is_null, pa.types.is_nested)
    has_bits = any(is_kind(chunk.type) for is_kind in kinds) or chunk.buffers()[0] is not None
    return chunk.offset % 8 != 0 and has_bits


def _copied(chunk: pa.Array) -> pa.Array:
    return pa.concat_arrays([chunk, chunk[:0]])  # of one array alone it makes none
