"""What work costs on each device and how much one holds at a time: what the planner, the code generator and operators decide by.

Each number stands here once; what one of them alone reads stands with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .physical import Device

NearFar = tuple[float, float]  # where what is looked up stays in a cache, and where it does not

# Bits of an index, and how many for each row: beyond, they cost more memory than hashed rows
FEW_BITS, BITS_A_ROW = 1 << 26, 64
# Row numbers of a directly addressed index
FEW_SLOTS, SLOTS_A_ROW = 1 << 22, 32
# The share of a table's rows in a build side from which on all of them are ranked: where fewer are in, to go through the key of
# all rows takes longer than to note those that are in
RANKED_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What a row costs, in picoseconds, unless said otherwise.

    `cached_bytes`: an index of so many stays in the second-level cache of a GPU, or a CPU's last.  `random_read`: as multiples of
    streaming four bytes.  `rank_row`: of a table in the order of its keys, whose rows are found by ranks among these, written in order.
    `scan`: by how much going through rows costs more than memory does.  `launch`: of one more kernel, however few its rows.
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
    scan: float
    launch: float
    group_limit: int
    rows_a_group: int
    most_groups: int

    def of(self, cost: NearFar, size: float) -> float:
        """Return what an access to an index of so many bytes costs."""
        near, far = cost
        return near if size <= self.cached_bytes else far


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
    scan=1.0,
    launch=1e7,
    group_limit=1 << 16,
    rows_a_group=8,
    most_groups=1 << 22,
)
# Whose kernels are not bound by memory.  The costs of accesses and of a launch are the GPU's, for want of a measurement
CPU = replace(H200, scan=4.0)


def costs_of(device: Device) -> DeviceCosts:
    return CPU if device == "cpu" else H200


def most_bits(rows: float) -> float:
    """Return how many numbers keys may have that are a bit each."""
    return max(FEW_BITS, BITS_A_ROW * rows)


def most_slots(rows: float) -> float:
    """Return how many numbers keys may have that are a row number each."""
    return max(FEW_SLOTS, SLOTS_A_ROW * rows)


def are_ranked(built: float, rows: float) -> bool:
    """Whether so many of a table's rows in a build side are worth ranking all."""
    return built >= RANKED_SHARE * rows
