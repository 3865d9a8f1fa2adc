"""What Arrow's types are in SQL; imports types alone.  Start at `arrow_types.from_arrow`."""
