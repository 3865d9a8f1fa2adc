"""What a connection tells of itself as tables: DuckDB's `duckdb_...()` functions, `information_schema` and `pg_catalog`.

`snapshots` has the functions, whose rows are read from the catalog whenever a query of them runs; `system_views` has the rest, as views over
them.  May import whatever lies below the connection.  Start reading at `snapshots.py`.
"""
