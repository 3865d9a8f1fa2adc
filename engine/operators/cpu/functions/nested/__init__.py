"""Functions of lists and structs over Arrow arrays: what they have inside is an array of its own, which kernels work on at once.

May import the kernels beside it and `cpu/nested_arrays.py`, which takes arrays apart.  Start at `list_parts.py`; `NESTED_KERNELS`
has the functions by name.
"""

from __future__ import annotations

from ..vectors import Kernel
from . import (
    list_counts,
    list_pairs,
    list_parts,
    list_series,
    list_texts,
    list_values,
    map_entries,
    structs,
)

NESTED_KERNELS: dict[str, Kernel] = {
    **list_counts.KERNELS,
    **list_parts.KERNELS,
    **list_pairs.KERNELS,
    **list_values.KERNELS,
    **list_texts.KERNELS,
    **list_series.KERNELS,
    **map_entries.KERNELS,
    **structs.KERNELS,
}
