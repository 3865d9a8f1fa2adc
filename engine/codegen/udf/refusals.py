"""Why Numba refuses a Python function, in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

from ...plan.types import Kind
from ...plan.udf.python_function import PythonCall, PythonFold
from ..compile.compiler import Architecture, NotCompiled
from .row_kernel import device_row_kernel, fold_kernel, row_kernel

_LINE = re.compile(r'<python function>", line (\d+)')
_MESSAGES = re.compile(r"\(step: [^)]*\)\n(.*?)(?:\n\n|$)", re.DOTALL)
_RESULT = re.compile(r"(whole|real|single|truth)_result\((.*?), (?:Literal|int)", re.DOTALL)
_DECLARED = {"whole": "a whole number", "truth": "a BOOLEAN"}
_OF_OURS = ("Failed in", "No implementation of function Function(<intrinsic attempt")
_MEANINGS = (
    (re.compile(r"may return None"), "may return None, where NULL arguments alone make NULL"),
    (re.compile(r"NRT required"), "makes lists, texts or arrays, for which kernels have no memory"),
    (re.compile(r"exception_match"), "catches exceptions by their class"),
    (re.compile(r"The kernel \w+ calls (\w+)"), "calls what kernels do not have, {}"),
    (
        re.compile(
            r"No implementation of function Function\(<(?:built-in )?(?:function|ufunc|method|class) '?(\w+)"
        ),
        "calls {}() with arguments that Numba does not compile",
    ),
)
MOST = 200  # characters of a message


def refusal(call: PythonCall | PythonFold, directory: Path) -> str | None:
    """Return why the compiler refuses the function of a call, as a verb and what follows it; None where it has compiled it."""
    if isinstance(call, PythonFold):
        kernel, first_line = fold_kernel(call, directory), 1  # of whichever of its functions
    else:
        kernel = row_kernel(call, directory)
        first_line = 1 if call.image is None else call.image.first_line
    try:
        kernel.fetch()
    except NotCompiled as error:
        return shortened(str(error), first_line)
    return None


def device_refusal(call: PythonCall, directory: Path, architecture: Architecture) -> str | None:
    """Return why no GPU runs the function of a call that the CPU's compiler takes; None where its kernel is compiled."""
    if not call.args:
        return "takes no arguments, so that the CPU calls it once"
    if Kind.UBIGINT in (call.type.kind, *(a.type.kind for a in call.args)):
        return "has a UBIGINT, of which its registers of 64 bits with a sign hold one half"
    try:
        device_row_kernel(call, directory, architecture).machine_code()
    except NotCompiled as error:
        return shortened(str(error), 1 if call.image is None else call.image.first_line)
    return None


def shortened(text: str, first_line: int) -> str:
    """Return what a compiler's message is about, and the line of the file that it is about."""
    plain = "\n".join(line.strip() for line in text.splitlines())
    result = _RESULT.search(plain)
    if result is not None:
        kind, given = result.groups()
        return f"gives a {given.split('(')[0]} where {_DECLARED.get(kind, 'a number')} is declared"
    found = next(
        (m for m in _MESSAGES.finditer(plain) if not m.group(1).startswith(_OF_OURS)), None
    )
    said = plain if found is None else found.group(1)
    lines = _LINE.findall(plain, 0 if found is None else found.start())
    where = f" (line {first_line + int(lines[0]) - 1})" if lines else ""
    for pattern, meaning in _MEANINGS:
        known = pattern.search(said)
        if known is not None:
            return meaning.format(*known.groups()) + where
    first = " ".join(said.partition("During:")[0].split())
    return f"is refused by Numba: {first.rstrip('.')[:MOST]}{where}"
