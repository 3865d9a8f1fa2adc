"""The kernels of `functions_rows` as files: their parameters, what a job consists of, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ...records import dataclass
from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_rows.py")
NAME = "row_fetch"
LEAST, BOUND, ROWS = "top_least", "top_bound", "top_rows"
FIRST, LIST = "first_of_slots", "first_rows"
TEXTS = "text_extremes"
MARK, COUNT, TEST = "mark_values", "count_marks", "test_marks"
SLOTS = 2048  # that rows are dealt out to
WARP = 32
MARKED = 32 * WARP  # values that a warp counts at a time
WORD = 8  # bytes of a word of a job, of a text's place and length, and of a cursor
SIGNATURE: Signature = parameters(
    "rows columns int64, jobs *int64, picking int64, picked *int32, memory8 *uint8, "
    "memory16 *int16, memory32 *int32, memory64 *int64, result8 *uint8, result16 *int16, "
    "result32 *int32, result64 *int64, cursors [int64]"
)
_NUMBERS: Signature = parameters("rows width int64, keys32 *int32, keys64 *int64")
_KEYS: Signature = [*_NUMBERS, ("turned", "int64")]
_CHOSEN: Signature = parameters("room int64, state [int64], chosen *int32")
SIGNATURES: dict[str, Signature] = {
    NAME: SIGNATURE,
    LEAST: [*_KEYS, ("least", "[int64]")],
    BOUND: parameters("wanted int64, least state *int64"),
    ROWS: [*_KEYS, *_CHOSEN],
    FIRST: [*_NUMBERS, ("first", "[int32]")],
    LIST: [*_NUMBERS, ("first", "*int32"), *_CHOSEN],
    MARK: parameters("rows grouped int64, keys values *int32, least words int64, marks [uint32]"),
    TEST: parameters("rows int64, values *int32, marks *uint32, found *uint8"),
    COUNT: parameters("slots words int64, marks *uint32, counts [int64]"),
    TEXTS: parameters(
        "rows step grouped int64, keys *int32, turned width data characters bits first int64, "
        "memory8 *uint8, memory32 *int32, memory64 *int64, best [int32]"
    ),
}


@dataclass
class Job:
    """Where a column lies and where its rows go, as the kernel reads it, a word for each.

    `data` are the values of `width` bytes, or the offsets to `characters`.  `bits` is a bitmap that begins `first` bits before
    the column, `paths` are the column's row numbers (INT32), a negative one for NULL; 0 for none of these.  `out` and `valid`
    are places in the result, where `room` bytes are left for characters after the words of the texts; `valid` is -1 without NULLs.
    """

    text: int
    width: int
    data: int
    characters: int
    bits: int
    first: int
    places: int
    out: int = 0
    valid: int = -1
    room: int = 0

    @property
    def words(self) -> tuple[int, ...]:
        # `astuple` copies what it finds, which takes ten times as long
        return tuple(vars(self).values())


row_kernel = kernels_of(SOURCE, SIGNATURES)
