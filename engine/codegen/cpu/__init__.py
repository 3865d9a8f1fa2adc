"""The CPU target: a program becomes a loop over a range of rows, which threads run and whose accumulators are merged.

`emit_cpu` prints the loop; `host_functions` compiles and loads it, `host_kernels` runs it, with `host_indexes`, `hash_groups`,
`clustered_rows` and `sparse_groups`, in steps, so that a query can be stopped.  Imports the rooms of `codegen` that make programs, and `compile`;
Numba in the function files alone.  Start at `host_kernels.py`.
"""
