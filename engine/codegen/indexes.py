"""How a kernel finds the rows of a build side by key.

The key columns make one number together, as group keys do.  A small domain of numbers is addressed directly: a bit each where
only being there counts (semi, anti and mark joins), else a row number each.  In a larger one, numbers are hashed into buckets,
each the head of a chain of rows.

Where the key is a stored column whose values ascend strictly, its rows need not be noted.  If every number of the domain is
there, it is the row number.  Else a row's number of places among 32 numbers is counted from the row of the least of these: a
64-bit word for 32 numbers instead of 32 row numbers, written in the order of rows.

Where a table in the order of a key is joined with itself by that key, there is no index at all (`joins.neighbours`).

What few probes find lies behind something smaller, which answers most of them from a cache: row numbers behind a bit each
(`guarded`, and then they need no filling), bits and buckets behind those of a sieve, which many numbers share (`sieved`).

Kernels use an index through these functions, which every target provides.  Numbers below 0 are ignored and find nothing.
`insert_bit(bits, number)`, `insert_unique(heads, number, row)` and `insert_linked(heads, links, number, row)` return I64 1
where the number was there before, so does `insert_guarded(members, heads, number, row)`; `set_bit(bits, number)` and `insert_hashed(heads, links, numbers, number, row)` I64 0.
`has_bit(bits, number)` is a BOOL; `find_direct(heads, number)`, `find_guarded(members, heads, number)`, `find_hashed(heads, links, numbers, number)`,
`next_linked(links, row)` and `next_hashed(links, numbers, number, row)` are the I32 row, or -1.  `insert_hashed_raw` and
`find_hashed_raw` take a BOOL after the number, which says whether there is one.  Numbers are I64, or I32 where they are not hashed.
`rank_rows` ranks all rows of a column, `find_rank(ranks, number)` is the I32 row, or -1; `pass_bits(bits, number)` is the I32
number, or -1 where its bit is not set.
`first_alike(codes, row)` is the I32 number of the first row with the code of a row, `next_alike(codes, row, rows)` that of the row after it, if it
has the same code and is one of so many rows, or -1.
`mark_sieve(sieve, shift, number)` is the number as I64, and so is `pass_sieve(sieve, shift, number)`, or -1 where no such number was
marked; `in_sieve(sieve, shift, number)` is a BOOL.  Two bits of one word stand for a number; `shift` is `Index.sieve_shift`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ..plan.device_costs import are_ranked, most_bits, most_slots

MOST_BITS = 1 << 33
REPEATED = 2  # the accumulator of a build that counts the keys which were there before
BITS_A_PROBE = 8  # to clear a byte costs less than to look for a row in a bucket
MOST_SLOTS = (1 << 31) - 1
# Buckets at least, and rows to a bucket on average should none be left out of which that is expected
FEWEST_BUCKETS = 64
MOST_CHAINED = 4
# Row numbers that no cache holds, and the share of them in use, or of probes that find one, below which bits go before them
CACHED_SLOTS = 1 << 22
FEW_USED = 0.5
FEW_FOUND = 0.5
# Bits of a sieve: as few as leave so many for each row that is expected, and the share of the bits behind that is worth one.
# The fastest cache holds the fewest (32 KiB), shared memory of a GPU the most
SIEVE_BITS = 1 << 18
MOST_SIEVE_BITS = 1 << 20
SIEVE_BITS_A_ROW = 8
BITS_A_SIEVE_BIT = 4
# Before buckets it may be larger, since to look into one is two accesses to memory: from as many rows on as no cache holds the
# numbers of, up to as many bits as a second-level cache holds
SIEVED_ROWS = 1 << 12
MOST_BUCKET_SIEVE_BITS = 1 << 27


class Form(StrEnum):
    """What an index is made of; heads are filled with -1, bits with 0, before the build kernel runs."""

    BITS = "bits"  # members: uint32[slots / 32]
    DIRECT = "direct"  # heads: int32[slots], row numbers; links: int32[rows] where keys repeat; or members, unfilled heads
    PLACED = "placed"  # nothing: the number is the row
    RANKED = "ranked"  # ranks: uint64[slots / 32]
    NEIGHBOURS = "neighbours"  # nothing: the rows of a key lie around the one that looks for them
    HASHED = "hashed"  # heads: int32[slots], links: int32[rows], numbers: int64[rows]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One key column in the number: (value - low) * stride, for values of low to low + size - 1."""

    low: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Index:
    """The index of build side `number`, over `rows` rows of its relation.

    `slots` are bits, row numbers or buckets (a power of two).  `linked`: several rows may have one key, so that rows are chained.
    `unique`: the programs are right only if no key repeats (for bits, DIRECT: accumulator 2 of the build counts those that do).
    `raw`: the number is a whole 64-bit value, and whether there is one is said apart.  `guarded`: bits say which row numbers
    are there.  `sieve_bits`: a sieve, uint32[sieve_bits / 32], says which numbers may be in (0: there is none).
    """

    number: int
    name: str
    form: Form
    parts: tuple[KeyPart, ...]
    slots: int
    rows: int
    linked: bool
    unique: bool = False
    raw: bool = False
    guarded: bool = False
    sieve_bits: int = 0

    @property
    def sieved(self) -> bool:
        return self.sieve_bits > 0

    @property
    def sieve_shift(self) -> int:
        """How far a number's 32 mixed bits are shifted for its word of the sieve."""
        return 32 - (self.sieve_bits // 32 - 1).bit_length()

    @property
    def whole(self) -> bool:
        """Whether all rows of the relation are in, which have no bits then."""
        return self.form in (Form.PLACED, Form.RANKED) and not self.guarded

    @property
    def ranks(self) -> Buffer:
        return Buffer(f"{self.name}_ranks", "uint64", -(-self.slots // 32), 0, self.number)

    @property
    def shown(self) -> str:
        """What it is made of, for people."""
        before = [*(["bits"] if self.guarded else []), *(["a sieve"] if self.sieved else [])]
        return f"{self.form} behind {' and '.join(before)}" if before else str(self.form)

    @property
    def sieve(self) -> Buffer:
        return Buffer(f"{self.name}_sieve", "uint32", self.sieve_bits // 32, 0, self.number)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays that kernels take, in this order, for the build and for each probe."""
        made = []
        if self.form is Form.BITS or self.guarded:
            made.append(
                Buffer(f"{self.name}_members", "uint32", -(-self.slots // 32), 0, self.number)
            )
        if self.form is Form.RANKED:
            made.append(self.ranks)
        if self.form in (Form.DIRECT, Form.HASHED):
            fill = None if self.guarded else -1
            made.append(Buffer(f"{self.name}_heads", "int32", self.slots, fill, self.number))
        if self.linked or self.form is Form.HASHED:
            made.append(Buffer(f"{self.name}_links", "int32", max(self.rows, 1), None, self.number))
        if self.form is Form.HASHED:
            made.append(
                Buffer(f"{self.name}_numbers", "int64", max(self.rows, 1), None, self.number)
            )
        if self.sieved:
            made.append(self.sieve)
        return tuple(made)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that kernels share: `length` elements, each `fill` at first (None: anything); `index` is the number of its build side.

    A buffer named `<index name>_state` is the result array out_i of the build kernel: rows, NULL keys, repeated keys.
    """

    name: str
    type: str
    length: int
    fill: int | None
    index: int


def membership_form(domain: int, rows: int, probes: int = 0) -> Form:
    """Choose where only being there counts, among `domain` numbers, of which `rows` may be there and `probes` are asked for."""
    few = domain <= min(MOST_BITS, max(most_bits(rows), BITS_A_PROBE * probes))
    return Form.BITS if few else Form.HASHED


def row_form(domain: int, rows: int) -> Form:
    """Choose where row numbers are wanted."""
    few = domain <= min(MOST_SLOTS, most_slots(rows))
    return Form.DIRECT if few else Form.HASHED


def ordered_form(form: Form, slots: int, rows: int, few: float, whole: bool) -> Form:
    """Choose again where keys ascend strictly and `few` of the rows are expected to be in; `whole`: all of them are."""
    bits = form is Form.BITS and whole and slots <= MOST_SLOTS
    if slots == rows and (form is Form.DIRECT or bits):
        return Form.PLACED
    ranked = slots > CACHED_SLOTS and (whole or are_ranked(few, rows))
    return Form.RANKED if form is Form.DIRECT and ranked else form


def is_guarded(slots: int, rows: float, found: float) -> bool:
    """Whether bits go before the row numbers of distinct keys: `found` is the share of probes that find one of `rows`."""
    return slots > CACHED_SLOTS and (found < FEW_FOUND or rows < FEW_USED * slots)


def sieve_bits(form: Form, slots: int, rows: float, found: float) -> int:
    """How many bits the sieve has that goes before `slots` bits or buckets; 0 for none."""
    bits = SIEVE_BITS
    while bits < SIEVE_BITS_A_ROW * rows:
        bits *= 2
    most = min(MOST_SIEVE_BITS, slots // BITS_A_SIEVE_BIT)
    if form is Form.HASHED:
        most = MOST_BUCKET_SIEVE_BITS if rows >= SIEVED_ROWS else 0
    return bits if bits <= most and found < FEW_FOUND else 0


def slots_of(form: Form, domain: int, rows: int, few: float | None = None) -> int:
    """How many bits, row numbers or buckets an index has; of `rows` rows, `few` are expected to be put in."""
    if form is not Form.HASHED:
        return domain
    return buckets(rows if few is None else max(math.ceil(few), rows // MOST_CHAINED))


def buckets(rows: int) -> int:
    """How many buckets hold so many rows best: any number does, but rows that share one are compared."""
    return max(FEWEST_BUCKETS, 1 << (max(rows, 1) - 1).bit_length())
