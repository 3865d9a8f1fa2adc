"""The CUDA target: a program becomes the source of a kernel, and functions that it calls.

`accumulator_layout` says where accumulators lie (`packed_counters`: counts that share words), `warp_split` whether a kernel parts in
two, and which bits it copies to shared memory.  `emit_cuda` prints the loop, or `warp_queue` that of rows that wait
in a queue of their warp, or `emit_sorted` that of groups in the order of their rows, over columns as `vector_loads`; sinks are in
`emit_fold`, `emit_runs` (rows of one group after each other) and, of rows that come out as rows, in `emit_cuda`, the kernel of a HAVING in `emit_groups`, that of the groups
that come out in `emit_picks`.

Imports the rooms of `codegen` that make programs, and `compile`; Numba in the function files alone.  Start at `emit_cuda.py`;
`device_kernels.py` is what the backend calls.
"""
