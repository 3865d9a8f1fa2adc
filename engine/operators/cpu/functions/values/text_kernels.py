"""Distances between texts and searches in them by kernels (`handwritten.cpu`: `functions_distances_cpu`, `functions_search_cpu`).

Of 300,000 pairs of 11 characters levenshtein takes 0.1 s of CPU time, and 17 where Python is called for each; LIKE with a pattern of its
own in each row 0.1 s and 55.  Few texts, and all until a kernel is compiled are left to Python; `FEW_TEXTS` = inf switches the kernels off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..... import stopping
from .....codegen.compile.compiler import parameters
from .....codegen.compile.native import NativeKernel
from .....plan.expr import Call
from ...handwritten_kernels import HandwrittenKernels
from ...memory.chunks import each
from ...sort.text_hashes import buffers_of
from ...string_bytes import is_ascii
from .. import vectors as vec
from .each_value import ValueFunction, of_values, python_value

FEW_TEXTS = 1 << 10  # which Python gets through soon enough
# Texts for which a kernel is compiled first, as Python would take longer
MANY_TEXTS = 1 << 15
PAIRS_AT_ONCE = 1 << 26  # pairs of characters between two looks at whether the query is to stop
SPAN_ROWS = 1 << 15
MOST_SCRATCH = 1 << 27  # words
NOT_READ = 2  # of a pattern that ends with what escapes
SET_WORDS = 0x110000 // 64 + 1  # of a set of characters

_SPAN = "start stop int64"
_PAIRS = parameters(
    f"left [uint32], left_ends [int64], right [uint32], right_ends [int64], {_SPAN}, scratch [int64], out [float64]"
)
_SEARCHED = parameters(f"text [uint8], ends [int64], needles [uint8], needle_ends [int64], {_SPAN}")
_OPTION = parameters("option int64")

Words = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]


def distances(name: str, by_python: ValueFunction) -> vec.Kernel:
    """Make a kernel of a number of two texts, and of a constant below which it is 0."""
    others = of_values(by_python)
    kernels = HandwrittenKernels("functions_distances_cpu.py", {name: _PAIRS})

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        ready = _ready(kernels, args[:2]) if all(v.is_constant for v in args[2:]) else None
        rows = max(v.length for v in args)
        if ready is None or any(v.is_null for v in args):
            return others(call, args)
        pair = [v.to_arrow(rows) for v in args[:2]]
        most = [int(np.diff(buffers_of(texts)[1]).max(initial=0)) + 2 for texts in pair]
        if most[0] * most[1] > MOST_SCRATCH:
            return others(call, args)
        out = np.empty(rows)

        def some(span: tuple[int, int]) -> None:
            scratch = np.zeros(_SCRATCH.get(name, sum)(most), np.int64)
            points = [p for texts in pair for p in _code_points(texts.slice(span[0], span[1] - span[0]))]  # fmt: skip
            step = max(1, PAIRS_AT_ONCE // (most[0] * most[1]))
            for start in range(0, span[1] - span[0], step):
                stopping.check()
                stop = min(start + step, span[1] - span[0])
                ready[name](*points, start, stop, scratch, out[span[0] : span[1]])

        each(some, _spans(rows), rows)
        valid = vec.both_valid(*args)
        wrong = out < 0 if valid is None else (out < 0) & valid
        if wrong.any():
            by_python(*(texts[vec.first_row(wrong)].as_py() for texts in pair))  # which raises
        for cutoff in args[2:]:
            out[out < cutoff.data] = 0.0
        return vec.Vector(call.type, out.astype(vec.dtype_of(call.type)), valid)

    return kernel


def searches(function: str, others: vec.Kernel, *options: int, folded: bool = False) -> vec.Kernel:
    """Make a kernel of a loop, and of what it is told, that searches for texts that differ from row to row; `others` have one for all rows."""
    is_like = function == "like"
    kernels = HandwrittenKernels(
        "functions_search_cpu.py",
        {function: [*_SEARCHED, *_OPTION[: len(options) + is_like], ("out", "[int64]")]},
    )

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        texts, needles, *escapes = args
        escape = python_value(escapes[0]) if escapes and escapes[0].is_constant else ""
        known = isinstance(escape, str) and escape.isascii() and len(escape) < 2
        known = known and all(v.is_constant for v in escapes) and not needles.is_constant
        ready = _ready(kernels, args) if known and not texts.is_null else None
        if ready is None:
            return others(call, args)
        rows = needles.length
        pair = [v.to_arrow(rows) for v in (texts, needles)]
        if folded:  # as small letters, which is what DuckDB does
            pair = [pc.utf8_lower(text) for text in pair]
        given = [b for text, ends in map(buffers_of, pair) for b in (text, ends.astype(np.int64))]
        last = [ord(escape) if isinstance(escape, str) and escape else -1] if is_like else options
        out = np.empty(rows, np.int64)
        each(lambda span: ready[function](*given, *span, *last, out), _spans(rows), rows)
        valid = vec.both_valid(*args)
        if is_like and (out == NOT_READ).any():
            return others(call, args)
        return vec.Vector(call.type, out.astype(vec.dtype_of(call.type)), valid)

    return kernel


# How many words of `scratch` a function needs for texts of so many characters and two
_SCRATCH: dict[str, Callable[[list[int]], int]] = {
    "damerau_levenshtein": lambda most: most[0] * most[1] + most[1],
    "jaccard": lambda most: 2 * SET_WORDS,
}


def _ready(
    kernels: HandwrittenKernels, args: tuple[vec.Vector, ...]
) -> Mapping[str, NativeKernel] | None:
    """Return the kernels for many texts, None where Python is to be called for each that differs."""
    varying = [v.data for v in args if not v.is_constant]
    rows = len(varying[0]) if varying else 0
    if rows <= FEW_TEXTS or any(pa.types.is_dictionary(texts.type) for texts in varying):
        return None
    return kernels.at_hand(wait=rows >= MANY_TEXTS)


def _spans(rows: int) -> list[tuple[int, int]]:
    return [(start, min(start + SPAN_ROWS, rows)) for start in range(0, rows, SPAN_ROWS)]


def _code_points(texts: pa.Array) -> tuple[Words, Numbers]:
    """Return the characters of all texts, and where those of each begin and the last one's end."""
    text, ends = buffers_of(texts)
    content, ends = text[ends[0] : ends[-1]], ends.astype(np.int64) - ends[0]
    if is_ascii(texts):
        return content.astype(np.uint32), ends
    points = np.frombuffer(content.tobytes().decode().encode("utf-32-le"), np.uint32)
    begins = np.zeros(len(content) + 1, np.int64)
    np.cumsum((content & 0xC0) != 0x80, out=begins[1:])  # bytes that no character goes on with
    return points, begins[ends]
