"""LIKE over many strings by a kernel (`handwritten.cpu.functions_like_cpu`) that looks through their bytes in order.

Until the kernel is there (`handwritten_kernels`) `matches` has no answer and the caller asks Arrow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....codegen.compile.compiler import Signature, parameters
from ....plan.patterns import ANY, Literals
from ..handwritten_kernels import HandwrittenKernels
from .vectors import Array

FEW_ROWS = 1 << 14  # up to which Arrow is quick enough
SEEN = 4  # bytes by which a part is noticed
LAST_ASCII = 0x7F
CASE_BIT = np.uint8(0x20)  # of letters
RARE = 2  # bytes of a part that not nearly all strings have

NAME = "search"


def _signature(wide: bool) -> Signature:
    return [
        *parameters("text [uint8]"),
        ("offsets", "[int64]" if wide else "[int32]"),
        *parameters("out pattern keep [uint8], bounds [int64]"),
        *((name, "int64") for name in ("size", "suffix", "wanted")),
        *parameters("seen mask [uint8]"),
    ]


KERNELS = {
    wide: HandwrittenKernels("functions_like_cpu.py", {NAME: _signature(wide)})
    for wide in (False, True)  # whether offsets have 64 bits
}


def matches(
    strings: pa.Array, parts: Literals, folded: bool = False
) -> npt.NDArray[np.bool_] | None:
    """Return whether each string matches a pattern, anything for NULL; None when Arrow has to say it.

    A single wild card is a byte, as a character of ASCII is: 800,000 comments by LIKE '_e%' take DuckDB's time, five times that where
    RE2 searches them.  `folded`: capital letters match small ones, which ASCII alone can tell.  Six million comments by ILIKE
    '%REGULAR%deposits%' take two CPU cores 0.6 times DuckDB's time, and 1.6 times where RE2 searches them.
    """
    if folded:
        parts = parts.lowered
        if not parts.text.replace(ANY, b"").isascii():
            return None
    rows, kind = len(strings), pa.types
    if rows < max(FEW_ROWS, 1) or kind.is_dictionary(strings.type):
        return None
    wide = kind.is_large_string(strings.type)
    kernels = KERNELS[wide].at_hand()
    if kernels is None:
        return None
    _, ends, characters = strings.buffers()
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[strings.offset :][: rows + 1]
    text = np.frombuffer(characters or b"", np.uint8)
    if (folded or ANY in parts.text) and text[offsets[0] : offsets[-1]].max(initial=0) > LAST_ASCII:
        return None
    out = np.zeros(rows, np.uint8)
    kernels[NAME](text, offsets, out, *_arguments(parts, folded))
    return out.view(np.bool_)


def _arguments(parts: Literals, folded: bool) -> list[Array | int]:
    """The pattern with a mask of its bits, the number of the floating part to look for, -1 for none, and its first bytes with a mask."""
    sizes = [len(part[:SEEN].replace(ANY, b"")) for part in parts.floating]
    enough = max(sizes, default=0)
    wanted = next((i for i, size in enumerate(sizes) if size >= max(enough, RARE)), -1)
    first = parts.floating[wanted][:SEEN] if wanted >= 0 else b""
    pattern, bounds = np.frombuffer(parts.text, np.uint8), np.array(parts.bounds, np.int64)
    small = (pattern >= ord("a")) & (pattern <= ord("z"))
    keep = np.where(small & folded, ~CASE_BIT, ~np.uint8(0))
    keep[pattern == ord(ANY)] = 0
    seen, mask = np.zeros(SEEN, np.uint8), np.zeros(SEEN, np.uint8)
    seen[: len(first)] = np.frombuffer(first, np.uint8)
    mask[: len(first)] = keep[bounds[max(wanted, 0)] :][: len(first)]
    return [pattern, keep, bounds, parts.size, len(parts.suffix), wanted, seen, mask]
