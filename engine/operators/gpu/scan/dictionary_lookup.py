"""Texts, or pieces of them, as their places among known ones: a hash table on the device, and the kernel that looks there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten.column_kernels import key_slots
from ....records import dataclass
from . import run_column_kernels
from .compact import text_pointers

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream


@dataclass(frozen=True)
class Substring:
    """`most` characters of a text, without the `skipped` ones before them; all of it where `most` is 0."""

    skipped: int = 0
    most: int = 0


WHOLE = Substring()


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Different texts on the device; `arguments` is what `text_number` takes of them."""

    memory: DeviceBuffer
    arguments: tuple[int, ...]


def key_table(keys: pa.Array, stream: Stream) -> KeyTable:
    """Put a hash table of texts on the device."""
    _, ends, characters = keys.buffers()
    starts = np.frombuffer(ends, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(characters or b"", np.uint8)
    slots = key_slots(data, starts)
    parts = [a.tobytes() for a in (slots, starts, data)]
    memory = DeviceBuffer.to_device(b"".join(parts), stream=stream)
    at_starts = memory.ptr + len(parts[0])
    at_characters = at_starts + len(parts[1])
    return KeyTable(memory, (len(slots) - 1, memory.ptr, at_characters, at_starts))


def number(
    column: plc.Column,
    table: KeyTable,
    piece: Substring,
    into: tuple[int, int, int],
    stream: Stream,
    directory: Path,
) -> None:
    """Launch what writes the places; `into` are bytes of a code, where codes go, and where failures are counted."""
    width, codes, wrong = into
    characters = 0 if column.data() is None else int(column.data().ptr)
    texts = (*text_pointers(column), characters, *bits(column), piece.skipped, piece.most)
    counted = run_column_kernels.array(wrong, 1)
    arguments = (*texts, *table.arguments, width, codes, codes, *counted)
    run_column_kernels.run("text_number", column.size(), arguments, stream, directory)


def bits(column: plc.Column) -> tuple[int, int]:
    """Where a column's bitmap is, and whether there is one."""
    mask = column.null_mask() if column.null_count() else None
    return (0, 0) if mask is None else (int(mask.ptr), 1)
