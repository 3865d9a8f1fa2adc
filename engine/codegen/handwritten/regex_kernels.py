"""The kernels of `functions_regex` as files: their parameters, and where source and machine code lie; for the CPU tests compile them.

Importing this imports no compiler; a process that finds the machine code on disk never does.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..compile.compiler import Architecture, Signature
from ..compile.kernel_files import KernelFile, kernel_file
from ..regex.automata import MOST_ROWS, MOST_TAGS

SOURCE = Path(__file__).with_name("functions_regex.py")
MATCH, REPLACE = "regex_match", "regex_replace"
HALF = MOST_ROWS * MOST_TAGS
REGISTERS = 2 * HALF + MOST_TAGS
FUNCTIONS = {MATCH: "match_rows", REPLACE: "put_rows"}
_TEXT = [("rows", "int64"), ("text", "uint8"), ("offsets", "offset"), ("bits", "uint8"), ("first_bit", "int64"), ("nullable", "int64")]  # fmt: skip
_TABLES = [("classes", "uint8"), ("columns", "int64"), ("moves", "uint16"), ("ends", "int32")]
PARAMETERS = {
    MATCH: [*_TEXT, *_TABLES, ("start", "int64"), ("out", "uint8")],
    REPLACE: [
        *_TEXT, *_TABLES, ("copies", "int32"), ("lists", "int32"), ("starts", "int32"), ("tags", "int64"),
        ("pieces", "int32"), ("template", "uint8"), ("parts", "int64"), ("every", "int64"), ("rest", "int64"),
        ("writing", "int64"), ("places", "place"), ("sizes", "place"), ("out", "uint8"),
    ],
}  # fmt: skip
NUMBERS = {"rows", "first_bit", "nullable", "columns", "start", "tags", "parts", "every", "rest", "writing"}  # fmt: skip


def name_of(kernel: str, wide: bool) -> str:
    """Return the name of a kernel for offsets of 32 or 64 bits."""
    return f"{kernel}_{64 if wide else 32}"


def signature(kernel: str, wide: bool, cuda: bool) -> Signature:
    """Return the parameters of a kernel; on CUDA arrays are pointers, and registers its own."""
    words = {"offset": "int64" if wide else "int32", "place": "int64"}
    found = [
        (name, kind if name in NUMBERS else ("*{}" if cuda else "[{}]").format(words.get(kind, kind)))
        for name, kind in PARAMETERS[kernel]
    ]  # fmt: skip
    own = kernel == REPLACE and not cuda
    return [("registers", "[int32]"), *found] if own else found


def source(kernel: str, wide: bool, cuda: bool) -> str:
    """Return the text of a kernel with the functions that it calls."""
    text = SOURCE.read_text(encoding="utf-8")
    names = [name for name, _ in signature(kernel, wide, cuda)]
    given = [name for name in names if name != "registers"]
    begin = ["np.int64(0)", "np.int64(1)"]
    if cuda:
        text = text.replace("from numba import njit", "from numba import cuda")
        text = text.replace('@njit(error_model="numpy")', '@cuda.jit(device=True, inline="always")')
        begin = ["np.int64(cuda.grid(1))", "np.int64(cuda.gridsize(1))"]
    if kernel == REPLACE:
        own = f"cuda.local.array({REGISTERS}, np.int32)" if cuda else "registers"
        begin += [own, f"np.int64({HALF})"]
    call = f"{FUNCTIONS[kernel]}({', '.join([*begin, *given])})"
    return f"{text}\n\ndef {name_of(kernel, wide)}({', '.join(names)}):\n    {call}\n"


@cache
def regex_kernel(
    directory: Path, architecture: Architecture, kernel: str, wide: bool
) -> KernelFile:
    """Return a kernel."""
    name, parameters = name_of(kernel, wide), signature(kernel, wide, cuda=True)
    return kernel_file(name, source(kernel, wide, cuda=True), parameters, directory, architecture)
