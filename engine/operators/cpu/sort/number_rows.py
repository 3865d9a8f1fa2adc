"""Numbers of rows by their values, without sorting: of one or more integers a row.

Many rows go to parts by the leading bits of a hash, each part into a hash table that fits a core's cache, and the numbers back to
where their rows are, by kernels (`handwritten.cpu.functions_numbers_cpu`): the table of 6 million rows would miss the cache at each row.
At SF1 the distinct pairs of two keys of 6 million rows took two cores 2.1 times DuckDB's time where Arrow numbered parts of the rows,
and take 0.7 times; EXCEPT of such pairs 1.7 and 0.5 (a busy machine, in turns); `ARROW_ROWS` = inf switches the kernels off.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow.compute as pc

from ....codegen.compile.compiler import parameters
from ....plan.arrow.arrow_arrays import from_numpy, null_as
from ....records import dataclass
from ....storage.columns.encodings import Array
from ..handwritten_kernels import HandwrittenKernels, KernelsByName
from ..memory.chunks import CHUNK_ROWS, each, each_chunk
from ..table import Indices, Mask, to_numpy
from . import ordering
from .ordering import MOST_BITS, Ints, by_hash

ARROW_ROWS = 1 << 14  # up to which Arrow is quick enough
MOST_ROWS = 1 << 30  # of a table with places of 32 bits
PART_ROWS = 1 << 15
FEWEST_SLOTS = 1 << 10
FEW_SAMPLE, FEW_SHARE = (
    4096,
    8,
)  # values that are looked at, and rows of each at least in these for values to be few

_ROWS = parameters("words [int64], width start stop int64")
KERNELS = HandwrittenKernels(
    "functions_numbers_cpu.py",
    {
        "count_parts": [*_ROWS, *parameters("bits int64, parts [uint16], counts [int64]")],
        "place_rows": [*_ROWS, *parameters("parts [uint16], places out [int64]")],
        "number_rows": [
            *_ROWS,
            *parameters("known int64, slots [int32], keys [int64], numbers [int32]"),
        ],
        "fetch_numbers": parameters(
            "parts [uint16], start stop int64, places starts [int64], found [int32], "
            "numbers firsts [int64]"
        ),
    },
)


@dataclass(frozen=True)
class Numbers:
    """A number in 0..size-1 for each row, equal where values are; `firsts` are the first rows of all numbers, where they are known."""

    codes: Ints
    size: int
    firsts: Indices | None = None


def number_rows(words: Sequence[Ints]) -> Numbers:
    """Number rows of one or more integers, without gaps."""
    rows = len(words[0])
    if len(words) == 1 and rows > ordering.MOST_AT_ONCE and has_few_values(words[0]):
        return _by_chunks(words[0])
    kernels = KERNELS.at_hand() if ARROW_ROWS < rows <= MOST_ROWS else None
    if kernels is not None:
        return _numbered(words, rows, kernels)
    found = _by_parts(words[0])
    for word in words[1:]:
        other = _by_parts(word)
        found = _by_parts(found.codes * other.size + other.codes)
    return found


def number_distinct(build: Ints, valid: Mask | None, probe: Ints) -> tuple[Ints, Ints, int]:
    """Number the distinct valid values of the build side, of which the size is returned; values that it lacks are -1."""
    rows = len(build) + len(probe)
    kernels = KERNELS.at_hand() if ARROW_ROWS < rows <= MOST_ROWS else None
    some = build if valid is None else build[valid]
    known = len(some)
    if kernels is not None:
        both = _numbered([np.concatenate([some, probe])], known, kernels)
        numbers, theirs, size = both.codes[:known], both.codes[known:], both.size
    elif rows <= ordering.MOST_AT_ONCE:
        numbers, theirs, size = _looked_up(some, probe)
    else:
        both = _by_parts(np.concatenate([some, probe]))
        numbers, theirs, size = both.codes[:known], both.codes[known:], both.size
        seen = np.zeros(size, bool)
        seen[numbers] = True
        theirs[~seen[theirs]] = -1
    if valid is None:
        return numbers, theirs, max(size, 1)
    ours = np.zeros(len(build), np.int64)
    ours[valid] = numbers
    return ours, theirs, max(size, 1)


def _numbered(words: Sequence[Ints], known: int, kernels: KernelsByName) -> Numbers:
    """Number the values of the first `known` rows; rows after them that have others are -1."""
    width, rows = len(words), len(words[0])
    flat = _side_by_side(words) if width > 1 else words[0].astype(np.int64, copy=False)
    flat = np.ascontiguousarray(flat)
    bits = min((rows // PART_ROWS).bit_length(), MOST_BITS)
    if not bits:
        return _at_once(flat, width, known, kernels)
    parts = _PartsOfRows.of(flat, width, known, bits, kernels)
    found, sizes = parts.number(flat, width, kernels)
    return parts.fetch(found, sizes, kernels)


def _side_by_side(words: Sequence[Ints]) -> Ints:
    flat = np.empty((len(words[0]), len(words)), np.int64)

    def chunk(start: int, stop: int) -> None:
        for place, word in enumerate(words):
            flat[start:stop, place] = word[start:stop]

    each_chunk(chunk, len(flat))
    return flat.ravel()


@dataclass(frozen=True)
class _PartsOfRows:
    """The part of each row by the leading bits of its hash; rows are counted by ranges, the ones that add values in ranges of their own.

    In each part those of one range follow those of the range before, in their order.
    """

    ranges: list[tuple[int, int, int]]  # number, start, stop
    of_row: Array
    counts: Ints  # by range and part
    known: int

    @classmethod
    def of(
        cls, flat: Ints, width: int, known: int, bits: int, kernels: KernelsByName
    ) -> _PartsOfRows:
        rows = len(flat) // width
        cuts = sorted({*range(0, rows, CHUNK_ROWS), known, rows})
        ranges = [(number, *cut) for number, cut in enumerate(pairwise(cuts))]
        of_row, counts = np.empty(rows, np.uint16), np.zeros((len(ranges), 1 << bits), np.int64)
        count = kernels["count_parts"]
        each(lambda r: count(flat, width, *r[1:], bits, of_row, counts[r[0]]), ranges, rows)
        return cls(ranges, of_row, counts, known)

    @cached_property
    def _places(self) -> Ints:
        """Where the rows of each range and part begin, in the order of parts."""
        ends = np.cumsum(self.counts.T.ravel()).reshape(self.counts.T.shape).T
        return np.ascontiguousarray(ends - self.counts)

    def number(self, flat: Ints, width: int, kernels: KernelsByName) -> tuple[Array, list[int]]:
        """Return the numbers of rows within their parts, in the order of these, and how many values each has."""
        rows, counts, known = len(self.of_row), self.counts, self.known
        placed, places, place = np.empty_like(flat), self._places.copy(), kernels["place_rows"]
        each(
            lambda r: place(flat, width, *r[1:], self.of_row, places[r[0]], placed),
            self.ranges,
            rows,
        )
        starts = self._places[0]
        stops = starts + counts.sum(axis=0)
        knowns = starts + counts[[stop <= known for _, _, stop in self.ranges]].sum(axis=0)
        found, number = np.empty(rows, np.int32), kernels["number_rows"]

        def part(bounds: tuple[int, int, int]) -> int:
            return number(placed, width, *bounds, *_table(bounds[1] - bounds[0], width), found)

        bounds = np.stack([starts, stops, knowns], axis=1).tolist()
        return found, each(part, bounds, rows)

    def fetch(self, found: Array, sizes: list[int], kernels: KernelsByName) -> Numbers:
        starts, places = np.cumsum([0, *sizes]), self._places.copy()
        numbers, firsts = np.empty(len(self.of_row), np.int64), np.empty(starts[-1], np.int64)
        fetch = kernels["fetch_numbers"]
        each(
            lambda r: fetch(self.of_row, *r[1:], places[r[0]], starts, found, numbers, firsts),
            self.ranges,
            len(numbers),
        )
        return Numbers(numbers, len(firsts), firsts)


def _at_once(flat: Ints, width: int, known: int, kernels: KernelsByName) -> Numbers:
    rows = len(flat) // width
    found = np.empty(rows, np.int32)
    size = kernels["number_rows"](flat, width, 0, rows, known, *_table(rows, width), found)
    firsts = np.flatnonzero(found < -1)
    numbers = found.astype(np.int64)
    numbers[firsts] = np.arange(size)
    return Numbers(numbers, size, firsts)


def _table(rows: int, width: int) -> tuple[Array, Ints]:
    """Return slots and keys, of which as much is touched as there are values."""
    slots = max(FEWEST_SLOTS, 1 << (2 * rows).bit_length())
    return np.empty(slots, np.int32), np.empty(rows * width, np.int64)


def _by_parts(values: Ints) -> Numbers:
    """Number values by Arrow; of few rows the numbers follow first occurrence."""
    count = len(values)
    if count <= ordering.MOST_AT_ONCE:
        return _encoded(values)
    rows, bounds = by_hash(values, min((count // ordering.BUCKET_ROWS).bit_length(), MOST_BITS))
    numbers = np.empty(count, np.int64)

    def encode(bucket: slice) -> int:
        found = _encoded(values[rows[bucket]])
        numbers[rows[bucket]] = found.codes
        return found.size

    sizes = each(encode, bounds, count)
    starts = np.cumsum([0, *sizes])

    def place(bucket: tuple[slice, Array]) -> None:
        part, start = bucket
        numbers[rows[part]] += start

    each(place, list(zip(bounds, starts[:-1], strict=True)), count)
    return Numbers(numbers, int(starts[-1]))


def has_few_values(values: Ints) -> bool:
    """Whether most rows have one of few values, by a sample."""
    sample = values[:: max(1, len(values) // FEW_SAMPLE)]
    return len(np.unique(sample)) * FEW_SHARE <= len(sample)


def _by_chunks(codes: Ints) -> Numbers:
    """Number few values chunk by chunk, whose numbers are then joined: their hash table stays in a core's cache."""
    found = each_chunk(lambda a, b: from_numpy(codes[a:b]).dictionary_encode(), len(codes))
    values = [to_numpy(chunk.dictionary) for chunk in found]
    joined = np.unique(np.concatenate(values))
    numbers = np.empty(len(codes), np.int64)

    def place(start: int, stop: int) -> None:
        chunk = start // CHUNK_ROWS
        np.take(
            np.searchsorted(joined, values[chunk]),
            to_numpy(found[chunk].indices),
            out=numbers[start:stop],
        )

    each_chunk(place, len(codes))
    return Numbers(numbers, len(joined))


def _looked_up(build: Ints, probe: Ints) -> tuple[Ints, Ints, int]:
    encoded = from_numpy(build).dictionary_encode()
    found = null_as(pc.index_in(from_numpy(probe), value_set=encoded.dictionary), -1)
    return (
        to_numpy(encoded).astype(np.int64),
        to_numpy(found).astype(np.int64),
        len(encoded.dictionary),
    )


def _encoded(codes: Ints) -> Numbers:
    encoded = from_numpy(codes).dictionary_encode()
    return Numbers(to_numpy(encoded).astype(np.int64), len(encoded.dictionary))
