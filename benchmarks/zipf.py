"""Numbers and texts for generated tables, by NumPy and Arrow: ranks by Zipf's law, and what is made of a rank the same way each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Random = np.random.Generator

_SYLLABLES = (
    "ba", "ce", "di", "fo", "gu", "ha", "ki", "lo", "mu", "ne", "pa", "ri", "so", "tu", "ve", "wy", "xa", "ze", "sta", "tri",
    "plo", "gra", "dru", "kle",
)  # fmt: skip
_ENDS = ("n", "r", "s", "t", "l", "ck", "nd", "st", "m", "x")


def generator(seed: int, *place: int) -> Random:
    """The random numbers of one place of the data, whichever process asks for them."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *place])))


def ranks(random: Random, rows: int, distinct: int, exponent: float) -> Integers:
    """Ranks from 0 to `distinct` - 1, that of rank r in proportion to (r + 1)^-exponent; by the inverse of the continuous law."""
    uniform = random.random(rows)
    if exponent == 1:
        values = np.exp(uniform * np.log(distinct + 1))
    else:
        rest = 1 - exponent
        values = ((float(distinct + 1) ** rest - 1) * uniform + 1) ** (1 / rest)
    return np.minimum(values.astype(np.int64) - 1, distinct - 1)


def mixed(values: Integers, salt: int = 0) -> Integers:
    """64 bits that look random, different for different values: SplitMix64's last steps (Steele, Lea, Flood, 2014)."""
    bits = values.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)


def picked(values: Integers, salt: int, number: int) -> Integers:
    """One of `number` for each value, evenly."""
    return ((mixed(values, salt).view(np.uint64) >> np.uint64(11)) % np.uint64(number)).view(
        np.int64
    )


def words(number: int, salt: int) -> list[str]:
    """Invented words of one to four syllables, each different."""
    found: dict[str, None] = {}
    place = 0
    while len(found) < number:
        bits = int(mixed(np.array([place]), salt)[0])
        parts = [_SYLLABLES[(bits >> 5 * i) % len(_SYLLABLES)] for i in range(1 + (bits >> 50) % 4)]
        found["".join(parts) + _ENDS[(bits >> 40) % len(_ENDS)]] = None
        place += 1
    return list(found)


def chosen(texts: Sequence[str] | pa.Array, places: Integers) -> pa.Array:
    """The text at each place of a list."""
    values = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    return values.take(pa.array(places))


def joined(parts: Sequence[pa.Array | str], separator: str = "") -> pa.Array:
    """The texts of several columns after one another."""
    return pc.binary_join_element_wise(*parts, separator)


def each_once(values: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
    """The different values, and for each row the place of its own among them: a text is made once for all rows that have it."""
    different, places = np.unique(values, return_inverse=True)
    return different, places.astype(np.int32)
