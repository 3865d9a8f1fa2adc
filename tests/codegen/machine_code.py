"""Kernels become machine code for Hopper, without a GPU; what these tools have made of a source once is kept beside the kernels of queries."""

from __future__ import annotations

import os

import pytest

from fuseline.codegen.compile import compiler
from fuseline.codegen.compile.kernel_files import kernel_key, toolchain
from fuseline.codegen.cuda import emit_cuda
from fuseline.codegen.program import Program
from fuseline.settings import Settings

HOPPER = (9, 0)


def assembly_of(program: Program) -> str:
    source = emit_cuda.source(program, "a plan")
    return assembly(source, program.name, emit_cuda.signature(program))


def assembly(source: str, name: str, signature: compiler.Signature) -> str:
    """Compile a kernel, and link it to a cubin; return its PTX."""
    pytest.importorskip(
        "numba_cuda", reason="numba-cuda is not installed: pip install 'fuseline[dev]'"
    )
    key = kernel_key(source, name, repr(signature), repr(HOPPER), toolchain(cpu=False))
    file = Settings.from_environment().cache_dir / "ptx" / f"{key.hex()}.ptx"
    if file.exists():
        return file.read_text()
    text = compiler.ptx(source, name, signature, HOPPER)
    assert ".local" not in text, "registers spill, or an array is indexed at run time"
    code = compiler.link(text, name, HOPPER)
    assert code.startswith(b"\x7fELF")
    assert name.encode() in code
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.with_suffix(f".{os.getpid()}")
    whole.write_text(text)
    whole.replace(file)
    return text
