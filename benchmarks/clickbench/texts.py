"""What a rank is: an address, title, search phrase, user. The same each time, and different ranks differ where the data needs it.

Addresses have 40 to 200 bytes; a site's number follows from the rank, few sites have most of the addresses. Titles and phrases are of invented
words, half of them in Cyrillic letters, of two bytes each.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.zipf import Integers, chosen, joined, mixed, picked, words

SITES = 6_500
SITE_62 = 5  # the site whose CounterID is 62: about one hit in 180
USERS, PAGES, PHRASES, NETWORKS = 11, 12, 13, 14  # salts
SHORTEST, LONGEST = 40, 200  # bytes of an address
_WORDS = 2_000
_CYRILLIC = str.maketrans("abcdefghiklmnoprstuvwxyz", "абцдефгхиклмнопрстувщжыз")


def user(rank: int) -> int:
    """The UserID of a rank."""
    return int(users(np.array([rank]))[0])


def users(ranks: Integers) -> Integers:
    return mixed(ranks, USERS)


def address_hash(rank: int) -> int:
    """The URLHash or RefererHash of an address."""
    return int(address_hashes(np.array([rank]))[0])


def address_hashes(ranks: Integers) -> Integers:
    return mixed(ranks, PAGES)


def sites(ranks: Integers) -> Integers:
    """The site of each address: site s has about (s + 1)^(1/3) - s^(1/3) of them."""
    share = picked(ranks, PAGES + 100, 1 << 30) / float(1 << 30)
    return (share**3 * SITES).astype(np.int64)


def first_page(site: int) -> int:
    """The most frequent address of a site."""
    return int(np.argmax(sites(np.arange(100_000)) == site))


def counters(ranks: Integers) -> Integers:
    """The CounterID of the site of each address."""
    found = sites(ranks)
    numbers = picked(found, 1, 250_000) * 10 + 3
    return np.where(found == SITE_62, 62, numbers)


def addresses(ranks: Integers) -> pa.Array:
    """Scheme, host, up to five words as folders, the rank, and for some a word as parameter; filled up to 40 bytes and cut at 200."""
    schemes = chosen(["http://", "https://", "http://www."], picked(ranks, 2, 8) // 3)
    parts = [schemes, chosen(_hosts(), sites(ranks)), pa.scalar("/")]
    for depth in range(5):
        absent = picked(ranks, 20 + depth, 5) < depth
        places = np.where(absent, 0, picked(ranks, 30 + depth, _WORDS) + 1)
        parts.append(chosen(_folders(), places))
    numbers = pa.array(ranks).cast(pa.string())
    parts.append(pc.utf8_lpad(numbers, 9, "0"))
    parts.append(chosen(_endings(), picked(ranks, 4, 4_096)))
    filled = pc.utf8_rpad(joined(parts), SHORTEST, "0")
    return pc.utf8_slice_codeunits(filled, 0, LONGEST)


def titles(ranks: Integers) -> pa.Array:
    """Three to seven words and the site's name; a third of the addresses have a title that another has too."""
    own = ranks - picked(ranks, 5, 3) // 2 * (ranks % 7)
    parts = [chosen(_spoken(), picked(own, 40 + place, _WORDS)) for place in range(3)]
    for place in range(4):
        absent = picked(own, 50 + place, 4) < place
        parts.append(chosen(_spoken(), np.where(absent, _WORDS, picked(own, 60 + place, _WORDS))))
    parts += [pa.scalar("- "), chosen(_hosts(), sites(own))]
    return joined(parts)


def phrases(ranks: Integers) -> pa.Array:
    """Words that spell the rank, so that no two are the same, and up to two more before them."""
    parts = [
        chosen(_spoken(), np.where(picked(ranks, 70 + place, 3) > 0, _WORDS, picked(ranks, 72 + place, _WORDS)))
        for place in range(2)
    ]  # fmt: skip
    rest = ranks
    for _ in range(3):
        parts.append(chosen(_spoken(), np.where(rest > 0, rest % _WORDS, _WORDS)))
        rest = rest // _WORDS
    parts.append(chosen(words(64, 6), picked(ranks, 80, 64)))
    return joined(parts)


@cache
def _hosts() -> pa.Array:
    """A name of each site; those of three have `google` in them."""
    names = words(SITES, 7)
    made = [f"{name}{'.com' if i % 5 == 0 else '.org' if i % 7 == 0 else '.net'}" for i, name in enumerate(names)]  # fmt: skip
    for site in (1_500, 3_500, 5_500):
        made[site] = f"{'maps.' if site == 3_500 else ''}google.{names[site][:2]}.com"
    return pa.array(made)


@cache
def _folders() -> pa.Array:
    """Nothing, or a word with a slash after it; one of them is `google-play`."""
    made = [f"{word}/" if i % 3 else f"{word}-{word[::-1]}/" for i, word in enumerate(words(_WORDS, 8))]  # fmt: skip
    made[_WORDS // 2] = "google-play/"
    return pa.array(["", *made])


@cache
def _endings() -> pa.Array:
    """Ends of addresses: a page, or parameters; long ones are rare."""
    names = words(4_096, 9)
    made = []
    for i, name in enumerate(names):
        some = names[i // 2 : i // 2 + (i % 16 if i % 32 == 0 else i % 3)]
        made.append(f"/{name}.html" + "".join(f"&{word}={i}" for word in some).replace("&", "?", 1))
    return pa.array(made)


@cache
def _spoken() -> pa.Array:
    """Words with a space after them, every second in Cyrillic letters, and nothing at the end."""
    made = [f"{w.translate(_CYRILLIC) if i % 2 else w} " for i, w in enumerate(words(_WORDS, 10))]
    made[_WORDS // 2] = "Google "
    return pa.array([*made, ""])
