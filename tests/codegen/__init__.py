"""Pipelines as kernels: what is generated, and that it answers as the operators and DuckDB do."""
