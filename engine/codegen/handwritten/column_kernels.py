"""The kernels of `functions_columns` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...storage.columns.encodings import Array
from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_columns.py")
SLOTS_A_KEY = 4
HASH_START, HASH_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)

_NUMBERS: Signature = parameters(
    "rows width shift stride int64, words8 *uint8, words16 *uint16, words32 *uint32, "
    "words64 *uint64, bits *uint32, nullable int64"
)
_TEXTS: Signature = parameters("rows wide int64, starts32 *int32, starts64 *int64")
SIGNATURES: dict[str, Signature] = {
    "column_measure": [*_NUMBERS, *parameters("spacing int64, out [int64]")],
    "column_narrow": [
        *_NUMBERS,
        *parameters(
            "base step code_width int64, codes8 *uint8, codes16 *uint16, codes32 *uint32, "
            "codes64 *uint64, wrong [int64]"
        ),
    ],
    "text_number": [
        *_TEXTS,
        *parameters(
            "characters *uint8, bits *uint32, nullable skipped most last_slot int64, "
            "slots *int32, keys *uint8, key_starts *int32, code_width int64, codes8 *uint8, "
            "codes16 *uint16, wrong [int64]"
        ),
    ],
    "text_measure": [*_TEXTS, *parameters("words *uint32, out [int64]")],
    "text_lengths": [
        *_TEXTS,
        *parameters("length_width int64, lengths8 *uint8, lengths16 *uint16, lengths32 *uint32"),
    ],
    "text_pack": parameters("count width int64, symbols *uint8, words packed *uint32"),
    "text_unpack": parameters("count width int64, symbols *uint8, packed words *uint32"),
}


column_kernel = kernels_of(SOURCE, SIGNATURES)


def key_slots(characters: Array, starts: Array) -> Array:
    """Return the hash table of different texts that `text_number` looks into.

    Key i is the bytes from `starts[i]` to `starts[i + 1]`.
    """
    lengths = np.diff(starts)
    hashed = np.full(len(lengths), HASH_START)
    for at in range(int(lengths.max(initial=0))):
        longer = lengths > at
        byte = characters[starts[:-1][longer] + at].astype(np.uint64)
        hashed[longer] = (hashed[longer] ^ byte) * HASH_FACTOR
    last = (1 << int(SLOTS_A_KEY * len(lengths)).bit_length()) - 1
    slots = np.full(last + 1, -1, np.int32)
    for key, slot in enumerate(((hashed ^ (hashed >> np.uint64(32))) & np.uint64(last)).tolist()):
        while slots[slot] >= 0:
            slot = (slot + 1) & last  # noqa: PLW2901 - the next slot is free or the one after it
        slots[slot] = key
    return slots
