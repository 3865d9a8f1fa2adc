"""Dask's dataframes: their partitions become shares of tables where they lie, and shares become partitions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def is_dask_frame(source: object) -> bool:
    """Whether this is a dataframe of Dask, dask_cudf's among them."""
    kind = type(source)
    return kind.__module__.split(".")[0] in ("dask", "dask_expr", "dask_cudf") and hasattr(
        source, "map_partitions"
    )


def arrow_of(part: Any) -> pa.Table:
    """Return a partition's columns, without its index."""
    if hasattr(part, "to_arrow"):  # cuDF's
        found: pa.Table = part.to_arrow(preserve_index=False)
    else:
        found = pa.Table.from_pandas(part, preserve_index=False)
    return found.replace_schema_metadata(None)


def taken(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in the types that the partitions of all workers agree on; a worker without any has no columns either."""
    return rows.cast(schema) if rows.num_columns else schema.empty_table()


def frame_of(rows: pa.Table, on_gpu: bool) -> Any:
    """Return rows as a partition: of cuDF on a GPU, else of pandas."""
    if on_gpu:
        from ..interop.device_frames import cudf_of

        return cudf_of(rows)
    return rows.to_pandas()
