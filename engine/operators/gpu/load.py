"""Columns brought into the cache ahead of the queries that read them."""

from __future__ import annotations

import dataclasses

from ...codegen.values import NotFusable
from ...plan import physical as p
from ..context import Context
from .device import on_device
from .encoded import encoded_columns
from .scan import memory_scan, parquet_scan


def load_columns(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    """Load a scan's columns as kernels read them, and as they are where they have no encoding."""
    _load_columns(scan, (), context)


@on_device
def _load_columns(scan: p.ParquetScan | p.MemoryScan, inputs: tuple[()], context: Context) -> None:
    try:
        encoded_columns(scan, context)
    except NotFusable:
        for column, source in zip(scan.made, scan.sources, strict=True):
            alone = dataclasses.replace(scan, made=(column,), sources=(source,))
            try:
                encoded_columns(alone, context)
            except NotFusable:
                _load_plain(alone, context)


def _load_plain(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    if isinstance(scan, p.ParquetScan):
        parquet_scan(scan, (), context)
    else:
        memory_scan(scan, (), context)
