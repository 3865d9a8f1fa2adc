"""Functions that Python or its library computes, once for each distinct value of a chunk: distances of texts, digests, formats.

May import the kernels beside it.  Start at `each_value.py`, which applies them; `VALUE_KERNELS` has them by name.
"""

from __future__ import annotations

from ..vectors import Kernel
from . import (
    attempts,
    bit_strings,
    byte_strings,
    decimal_quotients,
    digests,
    distances,
    formatting,
    hashes,
    number_texts,
    path_parts,
    time_buckets,
    uuids,
)
from .each_value import of_values

VALUE_KERNELS: dict[str, Kernel] = {
    **bit_strings.KERNELS,
    **decimal_quotients.KERNELS,
    **hashes.KERNELS,
    **attempts.KERNELS,
    **hashes.KERNELS,
    **attempts.KERNELS,
    **number_texts.KERNELS,
    **path_parts.KERNELS,
    **time_buckets.KERNELS,
    **uuids.KERNELS,
    **{
        name: of_values(function)
        for module in (
            bit_strings,
            byte_strings,
            digests,
            distances,
            formatting,
            distances,
            distances,
            time_buckets,
            number_texts,
            uuids,
            decimal_quotients,
        )
        for name, function in module.FUNCTIONS.items()
    },
}
