"""Orders and numbers of many strings by buckets, as `ordering` has them for integers: a query stops between two of them.

One call of Arrow takes seconds for millions of different strings, since each lookup misses the cache.  Strings are numbered by buckets of
hashes, and sorted by buckets of their first bytes behind what all of them begin with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.arrow.arrow_arrays import from_numpy, null_as
from ..memory.chunks import each, each_chunk
from ..table import Indices, concat_arrays, to_numpy
from . import text_hashes
from .number_rows import number_rows
from .ordering import MOST_BITS, by_hash, lexicographic
from .text_hashes import WORD_BYTES, WordsOfText, hashes_of

Ints = npt.NDArray[np.int64]

MOST_DIFFERING = 8  # one string in so many may have the hash of another
TEXTS_AT_ONCE = 1 << 18  # of which a call takes up to 0.2 s
FEW_DISTINCT = 4  # rows a value in the first piece, from which pieces are numbered as they lie
MOST_WORDS = 8  # of strings that begin alike, before these are sorted as they are
SAMPLED = 1 << 12  # strings that say whether most are distinct


def mostly_distinct(strings: pa.Array) -> bool:
    """Whether a value has fewer than two of the strings, so that numbering them first would not pay; estimated from some.

    With d rows a value, m of n rows have m * m * (d - 1) / 2n that equal one before.  Of few it is not asked: 30 us.
    """
    if len(strings) <= SAMPLED:
        return False
    step = max(1, len(strings) // SAMPLED)
    some = strings.take(from_numpy(np.arange(0, len(strings), step)))
    repeated = len(some) - len(some.unique())
    return 2 * repeated * len(strings) < len(some) ** 2


def numbered(strings: pa.Array) -> tuple[Ints, pa.Array]:
    """Return a number for each string that is not NULL, and the distinct strings in the order of these."""
    count = len(strings)
    if count <= TEXTS_AT_ONCE:
        return _coded(strings.dictionary_encode())
    first = strings.slice(0, TEXTS_AT_ONCE).dictionary_encode()
    if len(first.dictionary) * FEW_DISTINCT <= len(first):
        starts = list(range(TEXTS_AT_ONCE, count, TEXTS_AT_ONCE))
        pieces = each(
            lambda start: strings.slice(start, TEXTS_AT_ONCE).dictionary_encode(), starts, count
        )
        return _coded(concat_arrays([first, *pieces]))
    hashes = hashes_of(strings)
    found = _numbered_by_hash(strings, hashes) if strings.null_count == 0 else None
    if found is not None:
        return found
    rows, bounds = by_hash(hashes, _bits(count))
    numbers = np.empty(count, np.int64)

    def number(bucket: slice) -> pa.Array:
        here = rows[bucket]
        numbers[here], values = _coded(strings.take(from_numpy(here)).dictionary_encode())
        return values

    distinct = each(number, bounds, count)
    starts_of = np.cumsum([0, *map(len, distinct)])

    def place(bucket: tuple[slice, int]) -> None:
        part, start = bucket
        numbers[rows[part]] += start

    each(place, list(zip(bounds, starts_of[:-1].tolist(), strict=True)), count)
    return numbers, concat_arrays(distinct)


def _numbered_by_hash(strings: pa.Array, hashes: Ints) -> tuple[Ints, pa.Array] | None:
    """Number the hashes, and compare each string with the first of its number; None where many differ from it.

    A million addresses of 93 bytes, of which every fifth is different, take 0.22 s of CPU time, and 0.33 s in buckets of strings, which are
    copied and hashed whole (a busy machine). `MOST_DIFFERING` = inf switches it off.
    """
    found, count = number_rows([hashes]), len(strings)
    firsts = found.firsts
    if firsts is None:
        firsts = np.empty(found.size, np.int64)
        firsts[found.codes[::-1]] = np.arange(count - 1, -1, -1)
    others = text_hashes.others(strings, found.codes, firsts)
    if len(others) * MOST_DIFFERING > count:
        return None
    starts = list(range(0, len(firsts), TEXTS_AT_ONCE))
    taken = each(
        lambda at: strings.take(from_numpy(firsts[at : at + TEXTS_AT_ONCE])), starts, count
    )
    if not len(others):
        return found.codes, concat_arrays(taken)
    # None of them is the first of another number: equal strings have one hash
    codes, more = _coded(strings.take(from_numpy(others)).dictionary_encode())
    numbers = found.codes.copy()
    numbers[others] = codes + found.size
    return numbers, concat_arrays([*taken, more])


def places(strings: pa.Array, values: pa.Array) -> Ints:
    """Return where among `values`, distinct and without NULLs, each string is, -1 for nowhere; NULL is nowhere."""
    count = max(len(strings), len(values))
    if count <= TEXTS_AT_ONCE:
        return _found(strings, values)
    bits = _bits(count)
    rows, bounds = by_hash(hashes_of(strings), bits)
    value_rows, value_bounds = by_hash(hashes_of(values), bits)
    found = np.empty(len(strings), np.int64)

    def look_up(bucket: int) -> None:
        here, there = rows[bounds[bucket]], value_rows[value_bounds[bucket]]
        numbers = _found(strings.take(from_numpy(here)), values.take(from_numpy(there)))
        found[here] = np.append(there, -1)[numbers]  # -1 is the last one

    each(look_up, list(range(1 << bits)), count)
    return found


def sorted_rows(strings: pa.Array) -> Indices:
    """Return the row numbers of strings without NULLs in the order of their UTF-8 bytes.

    They are sorted by integers of 8 bytes, and of those that are equal so far by the next 8: 2 million of 10 bytes take 0.54 s of CPU time, and
    1.07 where Arrow sorts them by buckets (`TEXTS_AT_ONCE` = inf for all at once).
    """
    count = len(strings)
    if count <= TEXTS_AT_ONCE:
        return _sorted(strings)
    bytes_of, at = WordsOfText.of(strings), _shared_bytes(strings)
    order, places = np.arange(count), np.arange(count)
    runs: list[Ints] = []  # of rows that were equal so far
    for _ in range(MOST_WORDS):
        rows = order[places]
        parts = [*runs, *_next_words(bytes_of, rows, at)]
        found = lexicographic(parts)
        begins = _settle(order, places, rows, found, parts)
        tied = np.flatnonzero(~(begins[1:] & begins[:-1]) & (parts[-1][found] > WORD_BYTES))
        if not len(tied):
            return order
        run = np.cumsum(begins[:-1], dtype=np.int64)
        runs, places, at = [run[tied]], places[tied], at + WORD_BYTES
    rest = order[places]
    ranks = np.empty(len(rest), np.int64)
    ranks[_sorted(strings.take(from_numpy(rest)))] = np.arange(len(rest))
    order[places] = rest[lexicographic([*runs, ranks])]
    return order


def _next_words(bytes_of: WordsOfText, rows: Ints, at: int) -> tuple[Ints, Ints]:
    """Return the next 8 bytes of some strings, and how many there are, 9 for more.

    Zeros behind an end are less than others, and more than the end.
    """
    words, lengths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)

    def look(start: int, stop: int) -> None:
        here = rows[start:stop]
        begin, end = bytes_of.ends[here] + at, bytes_of.ends[here + 1]
        words[start:stop] = _as_integers(bytes_of.words(begin, end))
        lengths[start:stop] = np.minimum(end - begin, WORD_BYTES + 1)

    each_chunk(look, len(rows))
    return words, lengths


def _settle(
    order: Ints, places: Ints, rows: Ints, found: Ints, parts: list[Ints]
) -> npt.NDArray[np.bool_]:
    """Put rows to the places of an order as they were found, and return which differ from the one before, with TRUE behind the last."""
    begins = np.ones(len(found) + 1, bool)

    def settle(start: int, stop: int) -> None:
        order[places[start:stop]] = rows[found[start:stop]]
        here, before = found[start + 1 : stop + 1], found[start:stop][: len(found) - start - 1]
        differs = begins[start + 1 : start + 1 + len(here)]
        differs[:] = False
        for part in parts:
            differs |= part[here] != part[before]

    each_chunk(settle, len(found))
    return begins


def leading_words(strings: pa.Array) -> Ints:
    """Return integers that no string has greater than one that follows it: of 8 bytes behind what all begin with; any for NULL."""
    bytes_of, shared = WordsOfText.of(strings), _shared_bytes(strings)
    return _words_from(bytes_of, bytes_of.ends[:-1] + shared, bytes_of.ends[1:])


def _words_from(bytes_of: WordsOfText, begin: Ints, end: Ints) -> Ints:
    """Return 8 bytes of each string from a place on, as integers in their order."""
    words = np.empty(len(begin), np.int64)

    def chunk(start: int, stop: int) -> None:
        words[start:stop] = _as_integers(bytes_of.words(begin[start:stop], end[start:stop]))

    each_chunk(chunk, len(begin))
    return words


def _as_integers(words: npt.NDArray[np.uint64]) -> Ints:
    """Return 8 bytes of each string as integers in their order."""
    return (words.byteswap() ^ np.uint64(1 << 63)).view(np.int64)


def _shared_bytes(strings: pa.Array) -> int:
    ends = pc.min_max(strings).values()
    if not all(end.is_valid for end in ends):
        return 0
    low, high = (end.as_py().encode() for end in ends)
    alike = (a == b for a, b in zip(low, high, strict=False))
    return next((i for i, same in enumerate(alike) if not same), min(len(low), len(high)))


def _bits(count: int) -> int:
    return min((count // TEXTS_AT_ONCE).bit_length(), MOST_BITS)


def _coded(array: pa.DictionaryArray) -> tuple[Ints, pa.Array]:
    return to_numpy(array).astype(np.int64), array.dictionary


def _found(strings: pa.Array, values: pa.Array) -> Ints:
    found = pc.index_in(strings, value_set=values.cast(strings.type))
    return to_numpy(null_as(found, -1)).astype(np.int64)


def _sorted(strings: pa.Array) -> Indices:
    order: Indices = to_numpy(pc.array_sort_indices(strings)).astype(np.int64)
    return order
