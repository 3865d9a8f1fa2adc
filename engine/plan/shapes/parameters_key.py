"""What tells the parameters of a text from others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...errors import TypeMismatch
from ..composed.nested_literals import plain

Parameters = Sequence[object] | Mapping[str, object] | None


def parameters_key(params: Mapping[str, object] | Sequence[object]) -> Hashable:
    """Return a key that differs whenever the bound plan could: 1, 1.0, TRUE and '1' are four."""
    if isinstance(params, Mapping):
        return tuple((name, type(v), _value_key(v)) for name, v in params.items())
    listed = hasattr(params, "__len__") and hasattr(params, "__getitem__")
    if not listed or isinstance(params, str | bytes) or getattr(params, "ndim", 1) != 1:
        raise TypeMismatch(
            f"params takes a list or a dictionary, not {type(params).__name__}: give one value as [value]."
        )
    return tuple((type(v), _value_key(v)) for v in params)


def _value_key(value: object) -> Hashable:
    """Return what tells a value from others of its type; a class of the caller may show itself as it likes, so that parts count."""
    if type(value) in (int, str, bytes):
        return value
    value = plain(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, list | tuple):
        return tuple((type(v), _value_key(v)) for v in value)
    if isinstance(value, Mapping):
        return tuple((str(name), type(v), _value_key(v)) for name, v in value.items())
    try:
        return repr(value)
    except Exception as error:  # an object's own
        raise TypeMismatch(
            f"A parameter of the type {type(value).__name__} cannot be shown: {error}."
        ) from error
