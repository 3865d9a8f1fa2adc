"""From programs to machine code and its run: source text for the CPU and for CUDA, the cache of it, and the functions that it calls."""
