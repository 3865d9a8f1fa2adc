"""Counts that share words while a pipeline's kernel runs: laid out, and given 32 bits each before anything else reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ....codegen.compile_pipeline import Stages
from ....codegen.cuda.accumulator_layout import Cell, Layout
from ....codegen.cuda.packed_counters import count_bits, packed_words
from ....codegen.handwritten import group_kernels as kernels
from ....records import dataclass
from . import launch
from .launch import Launch
from .regions import BufferSpan, Regions

SLOTS_A_THREAD = 4


@dataclass(frozen=True)
class Unpacking:
    """`packed` counts of `bits` bits, the launches that unpack them, and `lost`: a word that is not 0 if a count outgrew its bits."""

    bits: int
    packed: BufferSpan
    lost: BufferSpan
    steps: tuple[Launch, ...]


def with_packed_counts(made: Stages, groups: float | None, least: int) -> Stages:
    """Have counts of the main kernel take `least` bits or more, where that many groups are expected."""
    main = made.main
    if main.grouping is None:
        return made
    expected = main.grouping.groups if groups is None else groups
    main = replace(main, count_bits=count_bits(main, expected, least))
    return replace(made, programs=(*made.programs[:-1], main))


def unpacking(
    cells: Sequence[Cell],
    slots: int,
    out_n: BufferSpan,
    regions: Regions,
    codes: Mapping[str, bytes],
) -> Unpacking | None:
    """Lay out the words of packed counts, whose places in `out_n` need no filling; None where there are none."""
    if not cells:
        return None
    bits, words = cells[0].packed, packed_words(slots, cells[0].packed)
    packed, lost = (
        regions.short_accumulators(len(cells) * words),
        regions.small(np.zeros(1, np.int64)),
    )
    name, steps = kernels.UNPACK, []
    for place, cell in enumerate(cells):
        counts = out_n.part(cell.outs[0] * slots, slots)
        given = {"slots": slots, "width": bits, "counts": counts, "lost": lost}
        given["packed"] = packed.part(place * words, words)
        turns = -(-slots // SLOTS_A_THREAD)
        steps.append(
            launch.prepared_fixed(codes[name], name, kernels.SIGNATURES[name], turns, given)
        )
    return Unpacking(bits, packed, lost, tuple(steps))


def short_results(where: Layout, slots: int, regions: Regions) -> BufferSpan:
    """Add the array of results of 32 bits, zeros unless all of them are unpacked into it."""
    rows = len(where.identities("out_n"))
    if rows == len(where.packed):
        return regions.working(rows * slots, 4)
    return regions.short_accumulators(rows * slots)
