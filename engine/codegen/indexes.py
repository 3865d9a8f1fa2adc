"""How a kernel finds the rows of a build side by key.

The key columns make one number together, as group keys do.  A small domain of numbers is addressed directly: a bit each where
only being there counts (semi, anti and mark joins), else a row number each.  In a larger one, numbers are hashed into buckets,
each the head of a chain of rows.

What few probes find lies behind something smaller, which answers most of them from a cache: row numbers behind a bit each
(`guarded`, and then they need no filling), bits behind those of a sieve, which many numbers share (`sieved`).

Kernels use an index through these functions, which every target provides.  Numbers below 0 are ignored and find nothing.
`insert_bit(bits, number)`, `insert_unique(heads, number, row)` and `insert_linked(heads, links, number, row)` return I64 1
where the number was there before, so does `insert_guarded(members, heads, number, row)`; `set_bit(bits, number)` and `insert_hashed(heads, links, numbers, number, row)` I64 0.
`has_bit(bits, number)` is a BOOL; `find_direct(heads, number)`, `find_guarded(members, heads, number)`, `find_hashed(heads, links, numbers, number)`,
`next_linked(links, row)` and `next_hashed(links, numbers, number, row)` are the I32 row, or -1.  `insert_hashed_raw` and
`find_hashed_raw` take a BOOL after the number, which says whether there is one.  Numbers are I64, or I32 where they are not hashed.
`mark_sieve(sieve, number)` is the number as I64, and so is `pass_sieve(sieve, number)`, or -1 where no such number was marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Bits of an index, and how many for each row: beyond, they cost more memory than hashed rows
MOST_BITS = 1 << 33
FEW_BITS = 1 << 26
BITS_A_ROW = 64
BITS_A_PROBE = 8  # to clear a byte costs less than to look for a row in a bucket
# Row numbers of a directly addressed index
FEW_SLOTS = 1 << 22
SLOTS_A_ROW = 32
MOST_SLOTS = (1 << 31) - 1
FEWEST_BUCKETS = 64
# Row numbers that no cache holds, and the share of them in use, or of probes that find one, below which bits go before them
CACHED_SLOTS = 1 << 22
FEW_USED = 0.5
FEW_FOUND = 0.5
# Bits of a sieve, which the fastest cache holds (32 KiB), how many may be set, and the bits that are too many for that cache
SIEVE_BITS = 1 << 18
SIEVE_ROWS = SIEVE_BITS // 8
CACHED_BITS = 1 << 22


class Form(StrEnum):
    """What an index is made of; heads are filled with -1, bits with 0, before the build kernel runs."""

    BITS = "bits"  # members: uint32[slots / 32]
    DIRECT = "direct"  # heads: int32[slots], row numbers; links: int32[rows] where keys repeat; or members, unfilled heads
    HASHED = "hashed"  # heads: int32[slots], links: int32[rows], numbers: int64[rows]


@dataclass(frozen=True, slots=True)
class Part:
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
    are there.  `sieved`: a sieve, uint32[SIEVE_BITS / 32], says which numbers may be in.
    """

    number: int
    name: str
    form: Form
    parts: tuple[Part, ...]
    slots: int
    rows: int
    linked: bool
    unique: bool = False
    raw: bool = False
    guarded: bool = False
    sieved: bool = False

    @property
    def shown(self) -> str:
        """What it is made of, for people."""
        before = [*(["bits"] if self.guarded else []), *(["a sieve"] if self.sieved else [])]
        return f"{self.form} behind {' and '.join(before)}" if before else str(self.form)

    @property
    def sieve(self) -> Buffer:
        return Buffer(f"{self.name}_sieve", "uint32", SIEVE_BITS // 32, 0, self.number)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays that kernels take, in this order, for the build and for each probe."""
        made = []
        if self.form is Form.BITS or self.guarded:
            made.append(
                Buffer(f"{self.name}_members", "uint32", -(-self.slots // 32), 0, self.number)
            )
        if self.form is not Form.BITS:
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
    few = domain <= min(MOST_BITS, max(FEW_BITS, BITS_A_ROW * rows, BITS_A_PROBE * probes))
    return Form.BITS if few else Form.HASHED


def row_form(domain: int, rows: int) -> Form:
    """Choose where row numbers are wanted."""
    few = domain <= min(MOST_SLOTS, max(FEW_SLOTS, SLOTS_A_ROW * rows))
    return Form.DIRECT if few else Form.HASHED


def is_guarded(slots: int, rows: float, found: float) -> bool:
    """Whether bits go before the row numbers of distinct keys: `found` is the share of probes that find one of `rows`."""
    return slots > CACHED_SLOTS and (found < FEW_FOUND or rows < FEW_USED * slots)


def is_sieved(slots: int, rows: float, found: float) -> bool:
    """Whether a sieve goes before bits."""
    return slots > CACHED_BITS and rows <= SIEVE_ROWS and found < FEW_FOUND


def slots_of(form: Form, domain: int, rows: int) -> int:
    """How many bits, row numbers or buckets an index has; buckets at least as many as rows."""
    if form is not Form.HASHED:
        return domain
    return max(FEWEST_BUCKETS, 1 << (max(rows, 1) - 1).bit_length())
