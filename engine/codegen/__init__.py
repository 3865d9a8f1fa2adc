"""Pipelines as kernels: a tree of joins, filters and projections and its sink become generated loops over encoded columns.

In the order in which a pipeline passes through:
- `stages` (body -> programs: `steps`) grows a `kernel`, in the language of `loop`, with the proofs of `ranges`, over the
  leaves that `relations` describes:
  - `joins`: `chains` and `joins` for what a kernel does to a row, `builds` for build sides, `join_keys` and `probes` for
    how rows are found by key (`indexes`), `neighbours` where that needs no index
  - `groups`: `grouping` and `row_groups` for group keys, `accumulate` for aggregates, `existence` for counts that nobody needs,
    `conditions` for HAVING (`parts`: its sums of more than 64 bits), `ordered` for rows in the order of the key, `results` (accumulators -> columns)
  - `expressions`: `translate`, `arithmetic`, `compare`, `lookup`
- `targets` (program -> source -> machine code -> its run), which share `emit`, `cache` (source -> file), `shapes`
  (programs of one file) and `listing`:
  - the CPU: `emit_cpu`, with `two_passes`; `host`, with `host_indexes`, `hash_groups` and `sparse_groups`;
    `functions_cpu`, `functions_alike_cpu`, `functions_ranks_cpu` and `functions_atomic_cpu`
  - CUDA: `places` says where accumulators lie (`packed`: counts that share words), and `cuts` whether rows wait for others
    (`near`: what is asked of all of them is copied); `emit_cuda` prints the loop, or `survivors` that of rows that wait, or
    `emit_sorted` that of groups in the order of their rows, over columns as `words`; sinks are in `emit_fold`, `emit_runs`
    (rows of one group after each other) and `emit_rows`, the kernel of a HAVING in `emit_groups`; `device` compiles;
    `functions_cuda`, `functions_alike_cuda` and `functions_ranks_cuda`
- `handwritten`: kernels that no plan generates, made to run by the same `cache` and `device`

A new aggregate is a row in `groups/accumulate`, and in `groups/conditions` where HAVING may read it; a new encoding of columns a case
in `inputs`, and in `words` for CUDA; a new way to find rows a form in `indexes`, with functions of its name for each target.

May import plan and storage's encodings; numba in `host`, `device` and the function files alone.  Start reading at `stages.py`.
"""
