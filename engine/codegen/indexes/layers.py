"""The layers of an index, each with its arrays, and the calls that fill it, test a number and find what belongs to one.

The key columns make one number together, as group keys do.  A small domain of numbers is addressed directly: a bit each where
only being there counts (semi, anti and mark joins), else a row number each.  In a larger one, numbers are hashed into buckets,
each the head of a chain of rows.

Where the key is a stored column whose values ascend strictly, its rows need not be noted.  If every number of the domain is
there, it is the row number.  Else a row's number of places among 32 numbers is counted from the row of the least of these: a
64-bit word for 32 numbers instead of 32 row numbers, written in the order of rows.

Where a table in the order of a key is joined with itself by that key, there is no index at all (`joins.clustered_self_join`).

What few probes find lies behind a smaller layer, which answers most of them from a cache: row numbers behind a bitmap (and then
they need no filling), bits and buckets behind a Bloom filter, in which many numbers share two bits.

Every target provides the functions that are called here.  Numbers below 0 are ignored and find nothing; they are I64, or I32 where
they are not hashed.  `insert_...` return I64 1 where the number was there before and that is known, else 0; `set_bit` 0.  What
finds a row returns it as I32, or -1; `pass_bits` and `pass_sieve` return the number, or -1 where it is not in.  `..._raw` take a BOOL
after the number, which says whether there is one.  `rank_rows` ranks all rows of a column.  `first_alike(codes, row)` is the I32 number of
the first row with the code of a row, `next_alike(codes, row, rows)` that of the row after it, if it has the same code and is one of
so many rows, or -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from ...plan.expr import Column
from ...records import dataclass
from ..ranges import I32_MAX

NEAR = "_near"  # ends the name of a copy in shared memory
REPEATED = 2  # the accumulator of a build that counts the keys which were there before


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that kernels share: `length` elements, each `fill` at first (None: anything); `index` is the number of its build side.

    `sized`: kernels need its length.  A buffer named `<index name>_state` is the result array out_i of the build kernel: rows,
    NULL keys, repeated keys.
    """

    name: str
    type: str
    length: int
    fill: int | None
    index: int
    sized: bool = False


@dataclass(frozen=True)
class Index:
    """The index of build side `number`, over `rows` rows of its relation; its arrays are called after `name`.

    `form` is its last layer, of so many `slots`: bits, row numbers or buckets (a power of two).  `linked`: several rows may have
    one key, so that rows are chained.  `unique`: the programs are right only if no key repeats (but for buckets, accumulator 2 of
    the build counts those that do).  `raw`: the number is a whole 64-bit value, and whether there is one is said apart.
    `guarded`: a bitmap says which rows are there.  `sieve_bits`: of a Bloom filter before all others (0: there is none).
    """

    number: int
    name: str
    form: type[Layer]
    slots: int
    rows: int
    linked: bool = False
    unique: bool = False
    raw: bool = False
    guarded: bool = False
    sieve_bits: int = 0

    @property
    def layers(self) -> tuple[Layer, ...]:
        """What is asked, in this order."""
        kinds = [BloomFilter] * self.sieved + [Bitmap] * self.guarded
        return *(kind(self) for kind in kinds), self.form(self)

    @property
    def sieved(self) -> bool:
        return self.sieve_bits > 0

    @property
    def narrow(self) -> bool:
        """Whether numbers are I32."""
        return self.form is not Buckets and self.slots <= I32_MAX

    @property
    def whole(self) -> bool:
        """Whether all rows of the relation are in, which have no bits then."""
        return self.form in (Identity, Ranks) and not self.guarded

    @property
    def shown(self) -> str:
        """What it is made of, for people."""
        *before, last = (layer.shown for layer in self.layers)
        return f"{last} behind {' and '.join(reversed(before))}" if before else last

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays that kernels take, in this order, for the build and for each probe: those of a Bloom filter come last."""
        layers = sorted(self.layers, key=lambda layer: isinstance(layer, BloomFilter))
        return tuple(buffer for layer in layers for buffer in layer.buffers)


@dataclass(frozen=True, slots=True)
class KeptKey:
    """That only rows are in whose value of `column`, one of the leaf of relation 0, is in an index, whose numbers begin with the value `least`."""

    column: Column
    index: Index
    least: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an index; `near`: a kernel asks its copy in shared memory."""

    index: Index
    near: bool = False
    shown: ClassVar[str]
    tests: ClassVar[str] = ""
    finds: ClassVar[str] = ""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays that kernels take."""
        return ()

    @property
    def arrays(self) -> str:
        return ", ".join(buffer.name + NEAR * self.near for buffer in self.buffers)

    def insert(self, arguments: str) -> str:
        """Return the call that puts in a number, or the row of one."""
        raise NotImplementedError

    def test(self, number: str) -> str:
        """Return whether a number may be in."""
        return f"{self.tests}({self.arrays}, {number})"

    def find(self, number: str) -> str:
        """Return what belongs to a number: the row, or for layers before others the number itself; -1 where it is not in."""
        return f"{self.finds}({self.arrays}, {number})"

    def _buffer(self, kind: str, machine: str, length: int, fill: int | None = None) -> Buffer:
        sized = self.index.form is Buckets and kind == "heads"
        return Buffer(f"{self.index.name}_{kind}", machine, length, fill, self.index.number, sized)

    def _of_rows(self, kind: str, machine: str) -> Buffer:
        return self._buffer(kind, machine, max(self.index.rows, 1))


class BloomFilter(Layer):
    """Two bits of one word for each number, which others share."""

    shown, tests, finds = "a sieve", "in_sieve", "pass_sieve"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self._buffer("sieve", "uint32", self.index.sieve_bits // 32, 0),)

    @property
    def shift(self) -> int:
        """How far a number's 32 mixed bits are shifted for its word."""
        return 32 - (self.index.sieve_bits // 32 - 1).bit_length()

    @property
    def arrays(self) -> str:
        return f"{super().arrays}, np.int32({self.shift})"

    def insert(self, arguments: str) -> str:
        return self._converted(f"mark_sieve({self.arrays}, {arguments})")

    def find(self, number: str) -> str:
        return self._converted(super().find(number))

    def _converted(self, call: str) -> str:
        return f"np.int32({call})" if self.index.narrow else call


class Bitmap(Layer):
    """A bit for each number."""

    shown, tests, finds = "bits", "has_bit", "pass_bits"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self._buffer("members", "uint32", -(-self.index.slots // 32), 0),)

    def insert(self, arguments: str) -> str:
        return f"{'insert_bit' if self.index.unique else 'set_bit'}({self.arrays}, {arguments})"


class Direct(Layer):
    """A row number for each number, which need no filling behind a bitmap."""

    shown = "direct"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        fill = None if self.index.guarded else -1
        heads = self._buffer("heads", "int32", self.index.slots, fill)
        return heads, *([self._of_rows("links", "int32")] if self.index.linked else [])

    def insert(self, arguments: str) -> str:
        return f"insert_{'linked' if self.index.linked else 'unique'}({self.arrays}, {arguments})"

    def find(self, number: str) -> str:
        return f"find_direct({self.buffers[0].name}, {number})"


class Identity(Layer):
    """Nothing: the number is the row."""

    shown = "placed"

    def find(self, number: str) -> str:
        return f"np.int32({number})"


class Ranks(Layer):
    """A rank for 32 numbers each."""

    shown, finds = "ranked", "find_rank"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (self._buffer("ranks", "uint64", -(-self.index.slots // 32), 0),)


class Clustered(Layer):
    """Nothing: the rows of a key lie around the one that looks for them."""

    shown = "neighbours"


class Buckets(Layer):
    """Chains of rows whose numbers share a hash."""

    shown = "hashed"

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        heads = self._buffer("heads", "int32", self.index.slots, -1)
        return heads, self._of_rows("links", "int32"), self._of_rows("numbers", "int64")

    def insert(self, arguments: str) -> str:
        return f"insert_hashed{'_raw' * self.index.raw}({self.arrays}, {arguments})"

    def find(self, number: str) -> str:
        return f"find_hashed{'_raw' * self.index.raw}({self.arrays}, {number})"


def inserted(layers: Sequence[Layer], arguments: str) -> str:
    """Return the call that fills layers: row numbers behind bits together with these."""
    match layers:
        case (Bitmap() as bits, Direct() as rows):
            return f"insert_guarded({bits.arrays}, {rows.arrays}, {arguments})"
    return layers[0].insert(arguments)


def asked(layers: Sequence[Layer], number: str, test: bool = False) -> str:
    """Return what layers say of a number, each of what those before it let through: whether it may be in, or what belongs to it."""
    match layers:
        case (*before, last) if test:
            return last.test(asked(before, number))
        case (*before, Bitmap() as bits, Direct() as rows):
            return f"find_guarded({bits.arrays}, {rows.arrays}, {asked(before, number)})"
        case (*before, last):
            return last.find(asked(before, number))
    return number
