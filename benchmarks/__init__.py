"""Benchmarks: Fuseline beside DuckDB and others on the same data, every answer checked. Start at `run`."""
