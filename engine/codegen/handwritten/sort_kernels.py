"""The kernels of `functions_sort` as files: their parameters, and where source and machine code lie.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from pathlib import Path

from ..compile.compiler import Signature, parameters
from ..compile.kernel_files import kernels_of

SOURCE = Path(__file__).with_name("functions_sort.py")
DIGIT, LEAD = "sort_digit", "text_lead"
SIGNATURE: Signature = parameters(
    "rows narrow int64, keys32 *int32, keys64 *int64, bits *uint32, "
    "first_bit nullable turned base null size begun int64, numbers *int64, short int64, "
    "out32 *int32, out64 *int64"
)


LEAD_SIGNATURE: Signature = parameters(
    "rows int64, characters *uint8, wide int64, offsets32 *int32, offsets64 out *int64"
)
sort_kernel = kernels_of(SOURCE, {DIGIT: SIGNATURE, LEAD: LEAD_SIGNATURE})
