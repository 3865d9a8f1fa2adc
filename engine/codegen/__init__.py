"""Pipelines as kernels: a tree of joins, filters and projections and its sink become generated loops over encoded columns.

In the order in which a pipeline passes through:
- `stages` (body -> programs: `steps`) grows a `kernel`, in the language of `loop`, with the proofs of `ranges`, over the
  leaves that `relations` describes:
  - `joins`: `chains` and `joins` for what a kernel does to a row, `builds` for build sides, `join_keys` and `probes` for
    how rows are found by key (`indexes`)
  - `groups`: `grouping` and `row_groups` for group keys, `accumulate` for aggregates, `results` (accumulators -> columns)
  - `expressions`: `translate`, `arithmetic`, `compare`, `lookup`
- `targets`: `emit_cpu`, with `two_passes`, or `emit_cuda` (program -> source), `cache` (source -> file), and `host`, with
  `host_indexes`, `hash_groups` and `sparse_groups`, or `device` (file -> machine code and its run)
- `handwritten`: kernels that no plan generates, made to run by the same `cache` and `device`

May import plan and storage's encodings; numba in `host`, `device` and the function files alone.  Start reading at `stages.py`.
"""
