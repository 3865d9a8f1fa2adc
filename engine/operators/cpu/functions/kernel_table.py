"""Each function by its name, with what computes it over a chunk.

`expressions_chunk` imports this with the first call that it computes; packages of kernels import none of their modules by
themselves, so that threads that ask for several of them at once do not wait for one another.
"""

from __future__ import annotations

from . import (
    kernels_arithmetic,
    kernels_casts,
    kernels_dates,
    kernels_formats,
    kernels_intervals,
    kernels_logic,
    kernels_numeric,
    kernels_patterns,
    kernels_strings,
)
from .json import json_changes, json_parts, json_scan, json_skeletons, json_texts
from .kernels_infinities import beside_infinities
from .nested import (
    list_counts,
    list_pairs,
    list_parts,
    list_series,
    list_texts,
    list_values,
    map_entries,
    structs,
)
from .values import (
    attempts,
    bit_strings,
    byte_maps,
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
from .values.each_value import of_values
from .vectors import Kernel

_VALUE_KERNELS: dict[str, Kernel] = {
    **bit_strings.KERNELS,
    **decimal_quotients.KERNELS,
    **distances.KERNELS,
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
            time_buckets,
            number_texts,
            uuids,
            decimal_quotients,
        )
        for name, function in module.FUNCTIONS.items()
    },
    **byte_maps.KERNELS,
}

_NESTED_KERNELS: dict[str, Kernel] = {
    **list_counts.KERNELS,
    **list_parts.KERNELS,
    **list_pairs.KERNELS,
    **list_values.KERNELS,
    **list_texts.KERNELS,
    **list_series.KERNELS,
    **map_entries.KERNELS,
    **structs.KERNELS,
}

_JSON_KERNELS: dict[str, Kernel] = {
    **{
        name: json_scan.scanned(name, of_values(function))
        for module in (json_changes, json_parts)
        for name, function in module.FUNCTIONS.items()
    },
    **{
        name: json_skeletons.of_skeletons(of_values(function))
        for name, function in json_parts.OF_KINDS.items()
    },
    **{name: of_values(function, 0) for name, function in json_changes.MERGES.items()},
    **json_texts.KERNELS,
}
_JSON_KERNELS |= {
    several: json_scan.at_each(_JSON_KERNELS[name], _JSON_KERNELS[several])
    for name, several in json_parts.SEVERAL_PATHS.items()
}

KERNELS: dict[str, Kernel] = beside_infinities(
    kernels_logic.KERNELS
    | kernels_arithmetic.KERNELS
    | kernels_numeric.KERNELS
    | kernels_strings.KERNELS
    | kernels_patterns.KERNELS
    | _VALUE_KERNELS
    | kernels_dates.KERNELS
    | kernels_formats.KERNELS
    | kernels_intervals.KERNELS
    | _NESTED_KERNELS
    | _JSON_KERNELS
    | kernels_casts.KERNELS
)
