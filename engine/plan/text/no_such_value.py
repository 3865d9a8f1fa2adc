"""What readers of values raise where a text or a number is none: a class of its own, so that no fault of ours is taken for bad text."""


class NoSuchValue(Exception):
    """A type has no such value, or a text stands for none."""
