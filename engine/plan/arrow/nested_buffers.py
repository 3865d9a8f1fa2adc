"""Arrow's lists, maps and structs over children that are there, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def nested_array(
    arrow: pa.DataType,
    length: int,
    buffers: Sequence[pa.Buffer | None],
    children: Sequence[pa.Array],
    nulls: int = -1,
    offset: int = 0,
) -> pa.Array:
    """Return an array of the type `arrow` over children; raises `TypeError` for children of another type and for NULL keys.

    For some of these `pa.Array.from_buffers` ends the process; others it reads as what they are not.
    """
    import pyarrow as pa

    expected = [arrow.field(i).type for i in range(arrow.num_fields)]
    found = [child.type for child in children]
    if found != expected:
        raise TypeError(f"Children of an Arrow array are {found}, where {arrow} has {expected}.")
    if pa.types.is_map(arrow):
        (entries,) = children
        # Also has Arrow count them: before version 26 it took NULLs not counted for some
        if entries.null_count or entries.field(0).null_count:
            raise TypeError(f"An entry or key of {arrow} is NULL.")
    return pa.Array.from_buffers(arrow, length, list(buffers), nulls, offset, list(children))
