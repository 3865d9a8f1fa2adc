"""Regular expressions over strings by kernels of our own (`codegen.regex`), whose answers are RE2's for every pattern that they take.

There is one kernel for each use, whatever the pattern: its automaton is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.compile.compile_pool import compiled
from ....codegen.handwritten import regex_kernels as kernels
from ....codegen.regex.automata import Automaton
from ....codegen.regex.replacements import Replacement
from ....storage.columns.encodings import Array
from ...text_limits import check_bytes
from ..columns import BOOL, INT32, INT64, TEXT, cast, constant, empty
from ..memory.device import kernel_files
from ..pipeline import launch
from ..pipeline.fixed_kernels import NO_DIRECTORY

ALIGNED = 16  # bytes
TABLES_KEPT = 64


def matches(column: plc.Column, automaton: Automaton) -> plc.Column:
    """Return whether each string has a match, NULL for NULL."""
    rows = column.size()
    if not rows:
        return empty(BOOL)
    out = DeviceBuffer(size=rows, stream=plc.utils.CUDF_DEFAULT_STREAM)
    tables = _uploaded(automaton)
    _run(kernels.MATCH, column, {**tables.given, "start": automaton.start, "out": out.ptr})
    return _with_nulls(plc.Column(BOOL, rows, plc.gpumemoryview(out), None, 0, 0, []), column)


def replaced(function: str, column: plc.Column, made: Replacement) -> plc.Column:
    """Return strings with their matches replaced, NULL for NULL; `function` is who asks, for the error that they become too long."""
    rows = column.size()
    if not rows:
        return empty(TEXT)
    sizes = constant(0, INT64, rows + 1)
    address = int(sizes.data().ptr)
    automaton, pieces = _uploaded(made.automaton), _uploaded_pieces(made)
    given = {
        **automaton.given, **pieces.given, "tags": made.automaton.tags, "parts": len(made.pieces) // 3,
        "every": int(made.every), "rest": int(made.rest), "writing": 0, "places": address, "sizes": address,
        "out": address,
    }  # fmt: skip
    _run(kernels.REPLACE, column, given)
    places = plc.reduce.scan(sizes, plc.aggregation.sum(), plc.reduce.ScanType.EXCLUSIVE)
    total = int(plc.copying.get_element(places, rows).to_py())
    check_bytes(function, total)
    out = DeviceBuffer(size=total, stream=plc.utils.CUDF_DEFAULT_STREAM)
    if total:
        given |= {"writing": 1, "places": int(places.data().ptr), "out": out.ptr}
        _run(kernels.REPLACE, column, given)
    texts = plc.Column(TEXT, rows, plc.gpumemoryview(out), None, 0, 0, [cast(places, INT32)])
    return _with_nulls(texts, column)


def _run(kernel: str, column: plc.Column, given: Mapping[str, int]) -> None:
    rows, offsets = column.size(), column.child(0)
    wide = offsets.type().id() == plc.TypeId.INT64
    data, mask = column.data(), column.null_mask()
    first = column.offset() + offsets.offset()
    nullable = bool(column.null_count())
    place = int(offsets.data().ptr) + first * (8 if wide else 4)
    text = {
        "rows": rows, "text": place if data is None else int(data.ptr), "offsets": place,
        "bits": int(mask.ptr) if nullable else place, "first_bit": int(column.offset()), "nullable": int(nullable),
    }  # fmt: skip
    files = kernel_files.place
    code = _code(NO_DIRECTORY if files is None else files[0], kernel, wide)
    parameters = kernels.signature(kernel, wide, cuda=True)
    launch.run_fixed(code, kernels.name_of(kernel, wide), parameters, rows, {**text, **given})


@lru_cache(maxsize=16)
def _code(directory: Path, kernel: str, wide: bool) -> bytes:
    """Return a kernel's machine code, which is waited for: no library does the same."""
    file = kernels.regex_kernel(directory, launch.architecture(), kernel, wide)
    if directory == NO_DIRECTORY:
        return compiled(file.source, file.name, file.signature, file.architecture)
    return file.machine_code()[0]


def _with_nulls(made: plc.Column, column: plc.Column) -> plc.Column:
    nulls = column.null_count()
    if not nulls:
        return made
    mask = column.null_mask()
    if column.offset():
        mask = plc.gpumemoryview(plc.null_mask.copy_bitmask(column))
    return made.with_mask(mask, nulls)


class _Tables:
    """Arrays in device memory, one after another, and where each lies."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        parts, self.given, size = [], {}, 0
        for name, array in arrays.items():
            data = array.tobytes()
            self.given[name] = size
            parts.append(data + bytes(-len(data) % ALIGNED + ALIGNED))
            size += len(parts[-1])
        self.memory = DeviceBuffer.to_device(b"".join(parts))
        self.given = {name: self.memory.ptr + place for name, place in self.given.items()}


@lru_cache(maxsize=TABLES_KEPT)
def _uploaded(automaton: Automaton) -> _Tables:
    tables = _Tables({
        name: getattr(automaton, name)
        for name in ("classes", "moves", "ends", "copies", "lists", "starts")
    })  # fmt: skip
    tables.given["columns"] = automaton.columns
    return tables


@lru_cache(maxsize=TABLES_KEPT)
def _uploaded_pieces(made: Replacement) -> _Tables:
    return _Tables({"pieces": made.pieces, "template": made.text})
