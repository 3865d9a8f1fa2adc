"""What work costs on each device and how much one holds at a time: what the planner, the code generator and operators decide by.

Each number stands here once; what one of them alone reads stands with it.
"""

from __future__ import annotations

from dataclasses import replace

from ..records import dataclass
from .physical import Device

NearFar = tuple[float, float]  # where what is looked up stays in a cache, and where it does not


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What a row costs, in picoseconds, unless said otherwise.

    `cached_bytes`: an index of so many stays in the second-level cache of a GPU, or a CPU's last.  `random_read`: as multiples of
    streaming four bytes.  `rank_row`: of a table in the order of its keys, whose rows are found by ranks among these, written in order.
    `ranked_share`: of that table's rows, from which on all are ranked; where fewer are in, to go through the key of all takes longer
    than to note those that are in.  `bits` and `slots` of an index that are addressed by keys' numbers, whatever the number of its
    rows and for each of these: beyond, they cost more memory than hashed rows.  `sieved_bits`: of an index, from which on a Bloom filter is
    quicker than these.  `loose_buckets`: up to so many there are four for each row, which mostly has one alone then.  `fills_sets`: what it costs to put keys into a set counts, which was
    not measured on a GPU.  `scan`: by how much going through rows costs more than memory does.  `launch`: of one more kernel, however few its rows.
    `group_limit`: groups that are addressed directly (by each thread of a CPU), whatever the number of rows; more of them, up to
    `most_groups` (32 MB for each accumulator), where so many rows come for each that their memory is worth it.
    """

    cached_bytes: float
    random_read: NearFar
    test_bit: NearFar
    insert_bit: NearFar
    probe_row: NearFar
    insert_row: NearFar
    rank_row: float
    ranked_share: float
    bits: tuple[int, int]
    slots: tuple[int, int]
    sieved_bits: int
    loose_buckets: int
    fills_sets: bool
    scan: float
    launch: float
    group_limit: int
    rows_a_group: int
    most_groups: int

    def of(self, cost: NearFar, size: float) -> float:
        """Return what an access to an index of so many bytes costs."""
        near, far = cost
        return near if size <= self.cached_bytes else far

    def most_bits(self, rows: float) -> float:
        """Return how many numbers keys may have that are a bit each."""
        return max(self.bits[0], self.bits[1] * rows)

    def most_slots(self, rows: float) -> float:
        """Return how many numbers keys may have that are a row number each."""
        return max(self.slots[0], self.slots[1] * rows)

    def are_ranked(self, built: float, rows: float) -> bool:
        """Whether so many of a table's rows in a build side are worth ranking all."""
        return built >= self.ranked_share * rows


# Measured on an H200, which streams four bytes in one picosecond: 150 million row numbers put into 2.4 GB take 4.1 ms, 15 million into
# 60 MB 0.14 ms, and half of 150 million bits in order into 75 MB 0.3 ms; ranks by their bytes, not measured.  An H100 has the same
# cache, and memory that is 30 % slower.
H200 = DeviceCosts(
    cached_bytes=32e6,
    random_read=(6.0, 24.0),
    test_bit=(2.0, 6.0),
    insert_bit=(2.0, 7.0),  # most of which find the bit set, or set several at once
    probe_row=(6.0, 15.0),
    insert_row=(8.0, 27.0),
    rank_row=3.0,
    ranked_share=1 / 8,
    bits=(1 << 26, 64),
    slots=(1 << 22, 32),
    sieved_bits=0,
    loose_buckets=0,
    fills_sets=False,
    scan=1.0,
    launch=1e7,
    group_limit=1 << 16,
    rows_a_group=8,
    most_groups=1 << 22,
)
# Whose kernels are not bound by memory.  Measured on one of two cores of an EPYC with a last cache of 32 MB that others use too, in 0.3 ns:
# two million random numbers into 0.5 MB and 96 MB take 3.3 and 9.4 ns each as row numbers, 4.1 and 8 as bits (fewer where most find
# the bit set), and are found in 0.6 and 7.4, or 0.4 and 0.9; of 60 million bits one is found in 1.5, by way of a Bloom filter in 1.6 to
# 4, of 240 million in 6 and 1.6 to 5; a call of a kernel on two threads takes some 60 us.  A million rows in 185,000 groups take two
# cores 12 ms where groups are addressed directly, 30 by operators and 76 in hash tables (a busy machine)
CPU = replace(
    H200,
    cached_bytes=8e6,
    test_bit=(2.0, 4.0),
    insert_bit=(6.0, 12.0),
    probe_row=(3.0, 24.0),
    insert_row=(11.0, 40.0),
    sieved_bits=1 << 27,
    # Six million line items that look for their supply by two keys take 860 ms of CPU time, and 1,085 with a bucket a row (SF1)
    loose_buckets=1 << 23,
    fills_sets=True,
    scan=2.0,
    launch=2e5,
    rows_a_group=2,
)


def costs_of(device: Device) -> DeviceCosts:
    return CPU if device == "cpu" else H200
