"""What Arrow's types are in SQL, and nested arrays of checked children; imports types alone.  Start at `arrow_types.from_arrow`."""
