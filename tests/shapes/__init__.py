"""Plans that serve other constants than those they were planned with (`plan.shapes`): guards, texts, and pairs of texts against DuckDB."""
