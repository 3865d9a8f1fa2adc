"""The CUDA kernel that picks groups out of slots: it writes parts of their numbers, and elements of accumulators, side by side.

`bits` say which slots hold a group, 32 a word; slots are dealt out to `warps` ranges of `share` each, whose groups begin at
`places` of the result (`handwritten.functions_groups` counts them): groups come out in the order of their slots.  Those for which
there is no `room` are not written.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...records import dataclass
from ..compile.compiler import Signature
from ..emit import header, indent
from .emit_cuda import IMPORTS

NAME = "group_pick"
# A lane looks at a word of `bits`; the warp then goes through those that mark any, a slot a lane
LOOP = """
thread = np.uint64(cuda.grid(1))
lane = thread & np.uint64(31)
warp = thread >> np.uint64(5)
while warp < np.uint64(warps):
    place = np.uint64(places[warp])
    word = warp * np.uint64(share) >> np.uint64(5)
    end = min((warp + np.uint64(1)) * np.uint64(share), np.uint64(slots))
    words = (end + np.uint64(31)) >> np.uint64(5)
    while word < words:
        votes = np.int32(0)
        if word + lane < words:
            votes = bits[word + lane]
        left = np.uint32(cuda.ballot_sync(0xFFFFFFFF, votes != 0))
        while left != np.uint32(0):
            turn = np.int32(cuda.ffs(left)) - np.int32(1)
            left = np.uint32(left & (left - np.uint32(1)))
            marked = np.int32(cuda.shfl_sync(0xFFFFFFFF, votes, turn))
            slot = ((word + np.uint64(turn)) << np.uint64(5)) + lane
            if ((marked >> np.int32(lane)) & np.int32(1)) != 0:
                row = place + np.uint64(cuda.popc(marked & cuda.lanemask_lt()))
                if row < np.uint64(room):
""".strip().splitlines()
NEXT = """
            place += np.uint64(cuda.popc(marked))
        word += np.uint64(32)
    warp += np.uint64(cuda.gridsize(1)) >> np.uint64(5)
""".strip("\n").splitlines()
DEPTH = 5  # of what is done with a slot, in `LOOP`


@dataclass(frozen=True)
class Component:
    """A part of the groups' numbers: number // stride % size, or what is left of it with a `size` of 0, `low` more, as an integer of `width` bytes."""

    stride: int
    size: int
    low: int
    width: int

    @property
    def term(self) -> str:
        """The part without `low`; the compiler makes products of divisions by constants."""
        term = "number" if self.stride == 1 else f"number // np.uint64({self.stride})"
        return term if not self.size else f"{term} % np.uint64({self.size})"


@dataclass(frozen=True)
class Wanted:
    """What is picked of groups: components of their numbers, and of accumulators `wide` ones with 64 bits and `narrow` ones as INT32.

    `types` are those of all accumulators in memory; `hashed`: the slots are those of a hash table, with the numbers as keys.
    """

    components: tuple[Component, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]
    types: Mapping[int, str]
    hashed: bool

    @property
    def results(self) -> tuple[str, ...]:
        """The types of what is written, in this order."""
        parts = (f"int{8 * component.width}" for component in self.components)
        wide = ("float64" if self.types[n] == "float64" else "int64" for n in self.wide)
        return (*parts, *wide, *("int32" for _ in self.narrow))


def signature(wanted: Wanted) -> Signature:
    """The kernel's parameters: `keys` are the slots' of a hash table; `low0` is added to the first component, and so on."""
    read = dict.fromkeys((*wanted.wide, *wanted.narrow))
    return [
        *((name, "int64") for name in ("slots", "warps", "share", "room")),
        ("bits", "*int32"),
        ("places", "*int64"),
        *([("keys", "*int64")] if wanted.hashed else []),
        *((f"low{i}", "int64") for i in range(len(wanted.components))),
        *((f"from{n}", f"*{wanted.types[n]}") for n in read),
        *((f"to{i}", f"*{kind}") for i, kind in enumerate(wanted.results)),
    ]


def source(wanted: Wanted, description: str) -> str:
    """Return the kernel's file."""
    values = [f"np.int64({part.term}) + low{i}" for i, part in enumerate(wanted.components)]
    values += [f"from{n}[slot]" for n in (*wanted.wide, *wanted.narrow)]
    steps = [f"number = np.uint64({'keys[slot]' if wanted.hashed else 'slot'})"]
    pairs = zip(wanted.results, values, strict=True)
    steps += [f"to{i}[row] = np.{kind}({value})" for i, (kind, value) in enumerate(pairs)]
    lines = header(IMPORTS, description, [])
    lines.append(f"def {NAME}({', '.join(name for name, _ in signature(wanted))}):")
    return "\n".join([*lines, *indent([*LOOP, *indent(steps, DEPTH), *NEXT], 1)]) + "\n"
