"""Small tables with NULLs, repeated keys and no rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

TABLES: dict[str, Any] = {
    "t": pa.table({"a": [1, 2, 3, None, 2, 5, None, 7], "b": [1, 2, None, 4, 3, 0, None, 6], "c": [1.5, None, 2.5, 0.0, 1.0, 2.0, 3.0, None]}),
    "u": pa.table({"k": [1, 1, 2, 2, 2, None, 4, 5, None], "x": [3, 1, None, 2, 5, 4, None, None, 1], "y": [1, 2, 3, 1, None, 2, 2, 4, 1]}),
    "w": pa.table({"p": [1, 2, 3, None, 5, 2, 1], "q": [1, None, 2, 3, 1, 4, 2]}),
    "s": pa.table({"id": [1, 1, 2, None], "s": ["x", "a", None, "q"]}),
    "e": pa.table({"k": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}),
}  # fmt: skip
