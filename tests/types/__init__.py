"""Types against DuckDB, each through queries, casts, Arrow, Parquet, tables and Python values."""
