"""Strings on the host that lie in any order, as a kernel left them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ....plan.arrow.arrow_arrays import array_from, from_numpy
from ....plan.arrow.take_rows import take_rows
from ....records import dataclass
from ....storage.columns.encodings import Array

CUT_TEXTS = 32  # that are cut out one by one in half of the time that Arrow takes to pick them


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings by where each begins among `characters` and how long it is, of which an Arrow array is made when rows are chosen.

    `valid` is None where none is NULL.
    """

    starts: Array
    lengths: Array
    valid: Array | None
    characters: Array

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.lengths.nbytes + self.characters.nbytes)

    def take(self, rows: Array | slice) -> Texts:
        """Return the rows of these numbers, or of a slice."""
        valid = None if self.valid is None else self.valid[rows]
        return Texts(self.starts[rows], self.lengths[rows], valid, self.characters)

    def array(self) -> pa.Array:
        count = len(self)
        if count <= CUT_TEXTS and self.valid is None:
            text, ends = self.characters.tobytes(), (self.starts + self.lengths).tolist()
            cut = [text[start:end] for start, end in zip(self.starts.tolist(), ends, strict=True)]
            return array_from(cut, pa.binary()).view(pa.string())
        # Every other one of the strings from offset to offset is one of these; what lies between them is not looked at
        offsets = np.zeros(2 * count + 2, np.int32)
        offsets[1:-1:2] = self.starts
        offsets[2:-1:2] = self.starts + self.lengths
        offsets[-1] = len(self.characters)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.characters)]
        between = pa.Array.from_buffers(pa.string(), 2 * count + 1, buffers)
        return take_rows(between, from_numpy(np.arange(1, 2 * count + 1, 2), self.valid))
