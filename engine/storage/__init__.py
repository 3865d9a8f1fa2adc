"""Columns as they lie in memory, and what is known about them."""
