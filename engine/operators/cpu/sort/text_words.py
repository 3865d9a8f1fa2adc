"""The first and the last of many texts, by kernels (`handwritten.cpu.functions_texts_cpu`) that look at their first 8 bytes, and at more of equal ones.

Until the kernels are there (`handwritten_kernels`) nothing here has an answer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....codegen.compile.compiler import Signature, parameters
from ....plan.arrow.arrow_arrays import from_numpy
from ....records import dataclass
from ....settings import usable_cores
from ....storage.columns.encodings import Array
from ..handwritten_kernels import HandwrittenKernels, KernelsByName
from ..memory.chunks import CHUNK_ROWS, each, each_chunk
from ..table import Indices, validity
from .ordering import LEAST_SAMPLED

Ints: TypeAlias = npt.NDArray[np.int64]

FEW_TEXTS = 1 << 12  # which are ranked as they are
GROUP_ROWS = 8  # at least, so that what each thread holds of the groups takes less than the rows
SAMPLED = 1 << 13  # texts, for the bound of an order
PARTS_A_CORE = 4  # of rows, between which a query stops
NOTHING = np.zeros(0, np.int64)


def _kernels(wide: bool) -> HandwrittenKernels:
    texts: Signature = [("text", "[uint8]"), ("offsets", "[int64]" if wide else "[int32]")]
    span: Signature = parameters("start stop flip int64")
    return HandwrittenKernels(
        "functions_texts_cpu.py",
        {
            "last_texts": [
                *texts,
                *parameters("codes [int64], valid [uint8]"),
                *span,
                *parameters("words [uint64], best [int64]"),
            ],
            "not_after": [*texts, *parameters("bound [uint8]"), *span, *parameters("out [uint8]")],
        },
    )


KERNELS = {wide: _kernels(wide) for wide in (False, True)}  # whether offsets have 64 bits


@dataclass(frozen=True)
class _Texts:
    """The bytes of strings, where each begins, and the last one ends."""

    kernels: KernelsByName
    text: Array
    offsets: Array

    valid: Array

    @classmethod
    def many(cls, strings: pa.Array) -> _Texts | None:
        """Return None for few, and while there are no kernels."""
        wide = pa.types.is_large_string(strings.type)
        kernels = KERNELS[wide].at_hand() if len(strings) > FEW_TEXTS else None
        return None if kernels is None else cls.of(strings, kernels)

    @classmethod
    def of(cls, strings: pa.Array, kernels: KernelsByName) -> _Texts:
        _, ends, text = strings.buffers()
        dtype = np.int64 if pa.types.is_large_string(strings.type) else np.int32
        offsets = np.frombuffer(ends, dtype)[strings.offset :][: len(strings) + 1]
        valid = validity(strings)
        known = NOTHING.view(np.uint8) if valid is None else valid.view(np.uint8)
        return cls(kernels, np.frombuffer(text or b"", np.uint8), offsets, known)

    def last_rows(
        self, codes: Ints | None, groups: int, descending: bool, start: int, stop: int
    ) -> Indices:
        """Return the row of each group's last text among some rows."""
        words, best = np.zeros(groups, np.uint64), np.full(groups, -1, np.int64)
        numbers = NOTHING if codes is None else codes
        self.kernels["last_texts"](
            self.text,
            self.offsets,
            numbers,
            self.valid,
            start,
            stop,
            _flip(descending),
            words,
            best,
        )
        return best

    def mark_not_after(
        self, bound: Array, start: int, stop: int, descending: bool, out: Array
    ) -> None:
        self.kernels["not_after"](
            self.text, self.offsets, bound, start, stop, _flip(descending), out
        )


def last_rows(
    strings: pa.Array, codes: Ints | None, groups: int, descending: bool
) -> Indices | None:
    """Return the first of each group's rows that has its last text, or with `descending` its first one; -1 for a group without any.

    None where other ways are as quick, or there are no kernels.  The extremes of six million comments take two cores 68 ms of CPU time,
    and 131 where numpy looks at their first two bytes; `FEW_TEXTS` = inf switches it off.
    """
    texts = _Texts.many(strings) if groups * GROUP_ROWS <= len(strings) else None
    if texts is None:
        return None
    parts = min(PARTS_A_CORE * usable_cores(), -(-len(strings) // CHUNK_ROWS))
    bounds = np.linspace(0, len(strings), parts + 1).astype(int).tolist()
    found = each(
        lambda span: texts.last_rows(codes, groups, descending, *span),
        list(pairwise(bounds)),
        len(strings),
    )
    if len(found) == 1:
        return found[0]
    rows = np.unique(np.concatenate(found))  # in their order, of which the first one counts
    rows = rows[rows >= 0]
    few = _Texts.of(strings.take(from_numpy(rows)), texts.kernels)
    best = few.last_rows(None if codes is None else codes[rows], groups, descending, 0, len(rows))
    return np.where(best < 0, -1, np.append(rows, -1)[best])


def rows_up_to(
    strings: pa.Array, count: int, descending: bool, nulls_first: bool
) -> Indices | None:
    """Return rows among which are the first `count` in an order of texts, those of a sample's bound; None as above.

    Thirty of 200,000 names in descending order take 2.5 ms of CPU time, and 7.6 by the first bytes of all.
    """
    texts = _Texts.many(strings) if LEAST_SAMPLED * count <= SAMPLED else None
    if texts is None or len(strings) < 2 * SAMPLED:
        return None
    some = strings.take(from_numpy(np.arange(0, len(strings), len(strings) // SAMPLED))).drop_null()
    if len(some) < LEAST_SAMPLED * count:
        return None
    order = "descending" if descending else "ascending"
    first = pc.select_k_unstable(some, count, [("", order)])
    bound = np.frombuffer(some[first[-1].as_py()].as_buffer(), np.uint8)
    is_in = np.empty(len(strings), np.uint8)
    valid = validity(strings)

    def chunk(start: int, stop: int) -> Indices:
        texts.mark_not_after(bound, start, stop, descending, is_in)
        here = is_in[start:stop].view(np.bool_)
        if valid is not None:
            here = here | ~valid[start:stop] if nulls_first else here & valid[start:stop]
        return np.flatnonzero(here) + start

    return np.concatenate(each_chunk(chunk, len(strings)))


def _flip(is_turned: bool) -> int:
    return -1 if is_turned else 0
