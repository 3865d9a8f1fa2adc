"""Functions of JSON: what lies at paths, changed values, JSON made of other values, and other values made of JSON.

May import the kernels beside it, those of `values/`, which call a function once for each distinct text, and `plan/json/`, which reads
and writes the texts; `json_scan.py` reads what is usual in compiled loops.  Start at `json_parts.py`; `JSON_KERNELS` has the functions by name.
"""

from __future__ import annotations

from ..values.each_value import of_values
from ..vectors import Kernel
from . import json_changes, json_parts, json_scan, json_texts

JSON_KERNELS: dict[str, Kernel] = {
    **{
        name: json_scan.scanned(name, of_values(function))
        for module in (json_changes, json_parts)
        for name, function in module.FUNCTIONS.items()
    },
    **{name: of_values(function, 0) for name, function in json_changes.MERGES.items()},
    **json_texts.KERNELS,
}
