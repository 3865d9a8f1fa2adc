"""Trees of row-wise operators and joins become pipelines, which generated kernels run.

What a pipeline holds is in `pipeline_shape`, the order of its probes in `arrange_probes` and `probe_order`, its group keys in
`group_keys` and `two_phase_aggregation`, its build sides in `reduce_builds`, and what becomes several pipelines in
`full_joins` and `aggregate_unions`.
What comes of all is data: a source, steps and a sink (`plan.pipeline_steps`).

Imports `plan`, `estimates` and `join_order`; it sees physical plans that are placed already.  Start at `fuse.py`.
"""
