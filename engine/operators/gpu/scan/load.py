"""Columns brought into the cache ahead of the queries that read them."""

from __future__ import annotations

from contextlib import suppress

from ....plan import physical as p
from ....storage.columns.agreement import ColumnForm
from ....storage.columns.cache import TableScan, kernel_key
from ....storage.columns.device_agreement import in_form_on_device
from ....storage.columns.encodings import EncodedColumn
from ...context import Context
from ..memory.device import on_device, with_room
from .encoded import encode_columns, scan_columns
from .scan import DEVICE


def load_columns(scan: p.ParquetScan | p.MemoryScan, context: Context) -> None:
    """Load a scan's columns as kernels read them, and as they are where they have no encoding."""
    _load_columns(scan, (), context)


@on_device
def _load_columns(scan: p.ParquetScan | p.MemoryScan, inputs: tuple[()], context: Context) -> None:
    encode_columns(scan, context)


def load_for_kernels(scan: TableScan, context: Context) -> None:
    """Bring a scan's columns into the cache as kernels read them."""
    _load_for_kernels(scan, (), context)


@on_device
def _load_for_kernels(scan: TableScan, inputs: tuple[()], context: Context) -> None:
    scan_columns(scan, context)


def take_form(scan: TableScan, source: str, form: ColumnForm, context: Context) -> None:
    """Bring a column that is in the cache encoded into the form that workers have agreed on, if there is room for its codes."""
    if not form.refused:  # of which others have more rows than this worker has
        _take_form(scan, (source, form), context)


@on_device
def _take_form(scan: TableScan, wanted: tuple[str, ColumnForm], context: Context) -> None:
    source, form = wanted
    key, cache = kernel_key(scan, source, DEVICE), context.cache
    held = cache.peek(key)
    if isinstance(held, EncodedColumn):
        with suppress(MemoryError):
            made = with_room(lambda: in_form_on_device(held, form), context)
            if made is not held:
                cache.put(key, made, made.nbytes)
