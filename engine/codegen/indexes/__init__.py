"""How a kernel finds the rows of a build side by key: an index is a stack of layers, asked one after the other.

`layers` has the index and for each layer its arrays, and the calls that fill and ask it; `choose` picks layers by how many keys there
may be, are expected and are asked for.  Below `loop`, whose `Probe` and `Insertion` hold layers; imports plan's costs.  Start at `layers.py`.
"""
