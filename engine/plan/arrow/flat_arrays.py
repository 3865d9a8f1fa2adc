"""Arrow arrays of buffers, and rows of them, with fewer hand-overs of the interpreter's lock than pyarrow's own functions take.

pyarrow lets go of the lock to check an array that it makes of buffers, and three times to find and call a function.  Among threads, each
time is one at which another one goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyarrow.compute import Function

_restore: Any = pa.lib._restore_array  # by which pickles of arrays are read


def flat_array(
    arrow: pa.DataType, length: int, buffers: Sequence[pa.Buffer | None], nulls: int = -1
) -> pa.Array:
    """Return what `pa.Array.from_buffers` does of buffers of this process's own making, which are not checked."""
    return _restore((arrow, length, nulls, 0, list(buffers), [], None))


def picked(array: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return the rows of these numbers, as `Array.take` does."""
    return _take().call([array, numbers])


@cache
def _take() -> Function:
    from pyarrow import compute

    return compute.get_function("take")
