"""Tables of all workers of a cluster, brought together by way of Arrow on the host."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..plan import physical as p
from ..plan.partial import Exchange
from .context import Context
from .run_unfused import T
from .spilling import Parting


def exchanged(
    node: Exchange, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return the rows that a worker has after a meeting; raises `MemoryError` where there is no room for them."""
    backend = backends[node.device]
    context.ask(node, backend.arrow_bytes(table, node.columns))
    arrow = backend.to_arrow(table, node.columns)
    if not node.columns:  # rows alone, which no message could count
        arrow = pa.table({"": pa.nulls(arrow.num_rows)})
    assert context.meet is not None
    together = pa.concat_tables(context.meet(node.number, node.kind, arrow))
    context.ask(node, together.nbytes)
    return backend.from_arrow(together.select(range(len(node.columns))), node.columns)
