"""Statements around queries, one after the other here and in DuckDB."""
