"""Pipelines as kernels: a chain of row-wise operators and its sink becomes one generated loop over encoded columns.

In the order in which a pipeline passes through: `steps` (operators -> program, with `translate`, `arithmetic`, `compare`, `lookup`
for expressions, `grouping` for group keys and `accumulate` for aggregates, in the language of `loop` with the proofs of
`ranges`), `emit_cpu` or `emit_cuda` (program -> source), `cache` (source -> file), `host` with `hash_groups`, or `device` (file
-> machine code and its run), `results` (accumulators -> columns).
May import plan and storage's encodings; numba in `host`, `device` and the function files alone.  Start reading at `steps.py`.
"""
