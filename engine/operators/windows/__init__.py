"""Window functions as arithmetic of places, once for both backends: frames, positions and moments over NumPy's functions.

The CPU backend gives them NumPy arrays, the GPU backend columns that answer the same functions (`gpu/window/device_array.py`); so
nothing here changes an array in place, and nothing reads a table but through `WindowInput`.  Imports plans.  Start at `frames.py`.
"""
