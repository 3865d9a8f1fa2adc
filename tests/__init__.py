"""The tests, in folders that mirror the engine's; `compare` holds the one assertion."""
