"""Sources of kernels that operators of the CPU call: each is read as text, and imports Numba and others here alone.

`operators.cpu.handwritten_kernels` compiles them.  Start at `functions_like_cpu.py`.
"""
