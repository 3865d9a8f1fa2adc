"""Which layers an index is made of, and how large they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...records import dataclass
from .layers import Bitmap, Buckets, Direct, Identity, Index, Layer, Ranks

if TYPE_CHECKING:
    from ...plan.device_costs import DeviceCosts

MOST_BITS = 1 << 33
BITS_A_PROBE = 8  # to clear a byte costs less than to look for a row in a bucket
MOST_SLOTS = (1 << 31) - 1
# Buckets at least, and rows to a bucket on average should none be left out of which that is expected
FEWEST_BUCKETS = 64
MOST_CHAINED = 4
# Rows from which on no second-level cache holds their buckets anyway, and how many of these there are for each then
LOOSE_ROWS, ROOM = 1 << 18, 4
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


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """What is known of rows of a build side and of those that probe it.

    `domain`: numbers that their keys may have, unless these are `raw`.  Of `rows`, `few` are expected to be in.  Row numbers are asked
    for `by_row`, else being there is all; `once`: no two rows have the same key, which is looked at while they are put in where
    it is `assumed`.  So many `probes` may come by, a share `found` of which finds a row.  Where keys ascend with the rows, `whole`
    says whether all rows are in.  There are as many rows as it says if that `is_exact`, else at most.
    """

    domain: int
    raw: bool
    rows: int
    few: float
    by_row: bool
    once: bool
    assumed: bool
    probes: int
    found: float
    whole: bool | None
    is_exact: bool = True


def index_of(number: int, name: str, side: IndexedRows, costs: DeviceCosts) -> Index:
    """Return the index that suits rows of a build side."""
    rows, few, whole = side.rows, side.few, side.whole
    linked = side.by_row and not side.once
    form = _form(side, costs)
    hashes = form is Buckets and not side.raw
    slots = slots_of(form, side.domain, rows, few)
    if form is Buckets and few >= LOOSE_ROWS:
        slots = max(slots, min(ROOM * buckets(math.ceil(few)), costs.loose_buckets))
    guarded = form is Direct and not linked and is_guarded(slots, few, side.found)
    if whole is not None:
        # Of at most so many rows nobody knows that each number is one's
        all_rows = rows if side.is_exact or slots != rows else rows + 1
        form = ordered_form(form, slots, all_rows, few, whole, costs)
        if form in (Identity, Ranks):
            guarded = not whole
    may_sieve = slots >= costs.sieved_bits if guarded or form is Bitmap else hashes
    sieve = sieve_bits(form, slots, few, side.found) if may_sieve else 0
    return Index(number, name, form, slots, rows, linked, side.assumed, side.raw, guarded, sieve)


def _form(side: IndexedRows, costs: DeviceCosts) -> type[Layer]:
    """Choose without regard to the order of keys."""
    if side.raw:
        return Buckets
    if side.by_row:
        most = min(MOST_SLOTS, costs.most_slots(side.rows))
        return Direct if side.domain <= most else Buckets
    bits = max(costs.most_bits(side.rows), BITS_A_PROBE * side.probes)
    return Bitmap if side.domain <= min(MOST_BITS, bits) else Buckets


def ordered_form(
    form: type[Layer], slots: int, rows: int, few: float, whole: bool, costs: DeviceCosts
) -> type[Layer]:
    """Choose again where keys ascend strictly and `few` of the rows are expected to be in; `whole`: all of them are."""
    bits = form is Bitmap and whole and slots <= MOST_SLOTS
    if slots == rows and (form is Direct or bits):
        return Identity
    ranked = slots > CACHED_SLOTS and (whole or costs.are_ranked(few, rows))
    return Ranks if form is Direct and ranked else form


def is_guarded(slots: int, rows: float, found: float) -> bool:
    """Whether bits go before the row numbers of distinct keys: `found` is the share of probes that find one of `rows`."""
    return slots > CACHED_SLOTS and (found < FEW_FOUND or rows < FEW_USED * slots)


def sieve_bits(form: type[Layer], slots: int, rows: float, found: float) -> int:
    """How many bits the sieve has that goes before `slots` bits or buckets; 0 for none."""
    bits = SIEVE_BITS
    while bits < SIEVE_BITS_A_ROW * rows:
        bits *= 2
    most = min(MOST_SIEVE_BITS, slots // BITS_A_SIEVE_BIT)
    if form is Buckets:
        most = MOST_BUCKET_SIEVE_BITS if rows >= SIEVED_ROWS else 0
    return bits if bits <= most and found < FEW_FOUND else 0


def slots_of(form: type[Layer], domain: int, rows: int, few: float | None = None) -> int:
    """How many bits, row numbers or buckets an index has; of `rows` rows, `few` are expected to be put in."""
    if form is not Buckets:
        return domain
    return buckets(rows if few is None else max(math.ceil(few), rows // MOST_CHAINED))


def buckets(rows: int) -> int:
    """How many buckets hold so many rows best: any number does, but rows that share one are compared."""
    return max(FEWEST_BUCKETS, 1 << (max(rows, 1) - 1).bit_length())
