"""Groups and aggregates: group keys as numbers, accumulators, and the result's columns made of them."""
