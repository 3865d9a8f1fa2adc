"""Arrays of a fixed length: made of values, and as vectors whose distances and products are those of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import Located, Span, TypeMismatch
from .. import infer
from ..casts import as_list
from ..expr import Call, Expr, Literal
from ..types import DOUBLE, FLOAT, NULL, DataType, array_of, list_of

Build = Callable[[Sequence[Expr], Span | None], Expr]


def array_value(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return [a, b] as an array of 2."""
    values = infer.unify(args, span)
    with Located(span):
        made = array_of(values[0].type, len(values))
    return Call("list_value", tuple(values), made, span)


def _vectors(name: str, args: Sequence[Expr], span: Span | None, length: int = 0) -> list[Expr]:
    """Return two arrays of one length as lists of FLOAT, or of DOUBLE where one is; of `length` elements both may be whole."""
    known = [a.type for a in args if a.type != NULL]
    numbers = [t for t in known if t.is_array and t.children[0].is_numeric]
    floats = [t for t in numbers if t.children[0].is_float]
    sizes = {t.precision for t in numbers}
    whole = bool(known) and not floats and not length
    if len(numbers) < len(known) or whole or len(sizes) > 1 or (length and sizes - {length}):
        given = ", ".join(str(a.type) for a in args)
        what = f"two arrays of FLOAT or DOUBLE with {length or 'equally many'} elements"
        raise TypeMismatch(f"{name} takes {what}, and not {given}: cast them.", span)
    kinds = {t.children[0] for t in floats}
    target = list_of(FLOAT if kinds == {FLOAT} else DOUBLE)
    return [infer.coerce(as_list(a), target) for a in args]


def _as_lists(ending: str) -> Build:
    """array_distance(a, b) -> list_distance(a, b)."""

    def build(args: Sequence[Expr], span: Span | None) -> Expr:
        vectors = _vectors(f"array_{ending}", args, span)
        return infer.call(f"list_{ending.replace('dot', 'inner')}", vectors, span)

    return build


def _cross_product(args: Sequence[Expr], span: Span | None) -> Expr:
    vectors = _vectors("array_cross_product", args, span, length=3)
    made: DataType = array_of(vectors[0].type.children[0], 3)
    if all(isinstance(v, Literal) and v.value is None for v in vectors):
        return Literal(None, made, span)
    return Call("cross_product", tuple(vectors), made, span)


# SQL name -> how it is built, fewest and most arguments, signature
ARRAYS: dict[str, tuple[Build, int, int, str]] = {
    "array_value": (array_value, 1, 100_000, "array_value(any, ...)"),
    "array_cross_product": (
        _cross_product,
        2,
        2,
        "array_cross_product(DOUBLE[3], DOUBLE[3])",
    ),
    **{
        f"array_{ending}": (_as_lists(ending), 2, 2, f"array_{ending}(DOUBLE[n], DOUBLE[n])")
        for ending in (
            *("distance", "cosine_similarity", "cosine_distance"),
            *("inner_product", "negative_inner_product", "dot_product", "negative_dot_product"),
        )
    },
}
