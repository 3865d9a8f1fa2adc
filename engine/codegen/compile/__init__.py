"""Source text to machine code, for either target: found in memory or on disk, or compiled by processes of their own.

`kernel_files` is the door; `compile_pool` and `compile_worker` are the processes, `compiler` what they call, and `native` loads what
comes out on the CPU.  Imports `codegen.stored`; Numba and LLVM in `compiler` alone, and LLVM in `native`.  Start at `kernel_files.py`.
"""
