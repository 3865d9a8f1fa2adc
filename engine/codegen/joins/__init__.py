"""Joins in kernels: chains of steps over a row, builds that fill indexes, and probes of them."""
