"""Window functions against DuckDB: what each does, frames, bad input, and random queries."""
