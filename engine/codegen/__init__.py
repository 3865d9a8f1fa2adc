"""Pipelines as kernels: a source, steps and a sink (`plan.pipeline_steps`) become generated loops over encoded columns.

In the order in which a pipeline passes through:
- `compile_pipeline` (steps -> programs: `program`) has a `program_builder`, which grows statements in the language of `loop`, with
  the proofs of `ranges`, over the leaves that `row_sources` describes:
  - `joins`: `chains` and `join_steps` for what a kernel does to a row, `builds` for build sides, `probe_keys` and `probes` for
    how rows are found by key (`indexes`), `clustered_self_join` where that needs no index
  - `groups`: `grouping` for group keys, `accumulate` for aggregates,
    `conditions` for HAVING (`wide_sums`: its sums of more than 64 bits), `ordered` for rows in the order of the key, `results` (accumulators -> columns)
  - `expressions`: `translate`, `arithmetic`, `compare`, `lookup`
- `cpu` and `cuda` print a program as source and run it; they share `emit`, `index_checks` and
  `kernel_fingerprint` (programs of one kernel)
- `compile`: source -> machine code, kept by `stored`
- `handwritten`: kernels that no plan generates, compiled in the same way

A new aggregate is a row in `groups/accumulate`, and in `groups/conditions` where HAVING may read it; a new encoding of columns a class
in `storage/columns/encodings`, which says what arrays kernels read; a new way to find rows a class in `indexes/layers`, with functions for each target.

May import plan and storage's encodings; numba in `compile/compiler` and the function files alone.  Start reading at `compile_pipeline.py`.
"""
