"""Tests of dataframe calls: each gives what the SQL beside it gives in DuckDB."""
