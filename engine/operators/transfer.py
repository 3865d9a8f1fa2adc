"""Tables on their way from one device to another, by way of Arrow on the host: both are asked before."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan import physical as p
from .context import Context
from .run_unfused import T
from .spilling import Parting


def moved(
    node: p.Transfer, table: T, backends: Mapping[p.Device, Parting[T]], context: Context
) -> T:
    """Return a table on the node's device; raises `MemoryError` where one of the two has no room."""
    source = node.input.device
    if source == node.device:
        return table
    on_host = node if node.device == "cpu" else node.input
    context.ask(on_host, backends[source].arrow_bytes(table, node.columns))
    arrow = backends[source].to_arrow(table, node.columns)
    if node.device != "cpu":  # which takes Arrow's arrays over
        context.ask(node, int(arrow.nbytes))
    return backends[node.device].from_arrow(arrow, node.columns)
