"""Texts cut into lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....plan.expr import Call
from ... import table as tables
from ...nested_arrays import list_array
from .over_arrays import over_arrays


def _split(call: Call, args: list[pa.Array]) -> pa.Array:
    """The parts between separators; an empty separator cuts into characters, and NULL does not cut."""
    texts, separators = (tables.decode(a) for a in args)
    valid = np.asarray(texts.is_valid())
    distinct = pc.unique(separators)
    if len(distinct) == 1 and distinct[0].is_valid and distinct[0].as_py():
        found = pc.split_pattern(texts, distinct[0].as_py())
        return found.cast(tables.physical_type(call.type))
    parts = [
        text.split(by) if by else list(text) if by is not None and text else [text]
        for text, by, known in zip(texts.to_pylist(), separators.to_pylist(), valid, strict=True)
        if known
    ]
    lengths = np.zeros(len(texts), np.int64)
    lengths[valid] = [len(part) for part in parts]
    elements = pa.array([p for part in parts for p in part], pa.string())
    return list_array(lengths, elements, valid, tables.physical_type(call.type))


KERNELS = {"string_split": over_arrays(_split)}
