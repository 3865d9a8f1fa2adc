"""Columns brought into the cache ahead of the queries that read them."""

from __future__ import annotations

from ....plan import physical as p
from ...context import Context
from ..memory.device import on_device
from .encoded import encode_columns


def load_columns(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    """Load a scan's columns as kernels read them, and as they are where they have no encoding."""
    _load_columns(scan, (), context)


@on_device
def _load_columns(scan: p.ParquetScan | p.MemoryScan, inputs: tuple[()], context: Context) -> None:
    encode_columns(scan, context)
