"""Functions of documents to which it does not matter what their strings and numbers are: once for all documents that are alike but for these.

Of 100,000 documents of 80 bytes json_structure() takes 0.04 s of CPU time, and 6.4 without a kernel that writes the skeletons
(`handwritten.cpu.functions_json_skeletons_cpu`); `json_scan.FEW_DOCUMENTS` = inf switches it off.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .....codegen.compile.compiler import parameters
from .....plan.expr import Call
from ... import table as tables
from ...handwritten_kernels import HandwrittenKernels
from ...sort.text_hashes import buffers_of
from .. import vectors as vec
from . import json_scan

KERNELS = HandwrittenKernels(
    "functions_json_skeletons_cpu.py",
    {
        "json_skeletons": parameters(
            "text [uint8], ends [int64], valid [uint8], start stop int64, out [uint8], out_ends [int32]"
        )
    },
    uses=("functions_json_cpu.py", "functions_json_fields_cpu.py"),
)


def skeletons(texts: pa.Array) -> pa.Array:
    """Return documents with few strings and numbers, and what is no JSON as it is; few documents, too."""
    kernels = json_scan.ready(KERNELS, texts)
    if kernels is None:
        return texts
    text, offsets = buffers_of(texts)
    ends, valid = offsets.astype(np.int64), tables.validity(texts)
    known = np.zeros(0, np.uint8) if valid is None else valid.view(np.uint8)
    out, out_ends = np.empty(int(ends[-1] - ends[0]), np.uint8), np.zeros(len(ends), np.int32)
    for start, stop in json_scan.spans(len(texts)):
        kernels["json_skeletons"](text, ends, known, start, stop, out, out_ends)
    there = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [there, pa.py_buffer(out_ends), pa.py_buffer(out[: out_ends[-1]])]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def of_skeletons(by_python: vec.Kernel) -> vec.Kernel:
    """Make a kernel of one that calls Python once for each document that differs."""

    def kernel(call: Call, args: tuple[vec.Vector, ...]) -> vec.Vector:
        documents, *others = args
        if documents.is_constant:
            return by_python(call, args)
        alike = skeletons(tables.decode(documents.data))
        return by_python(call, (vec.Vector(documents.type, alike), *others))

    return kernel
