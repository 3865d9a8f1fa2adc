"""The cheapest order of joins: `join_graph` states the problem in bit sets, `cheapest_order` solves it.

The rule `reorder_joins` asks for it, and `pipelines.probe_order` for probes.  Imports `plan` and `estimates`.  Start at `join_graph.py`.
"""
