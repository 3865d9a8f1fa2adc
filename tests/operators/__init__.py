"""Operators of each backend, on physical nodes built by hand, against DuckDB."""
