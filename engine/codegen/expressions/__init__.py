"""Expressions as terms of a kernel: arithmetic and comparisons with proven ranges, and lookup tables for the rest."""
