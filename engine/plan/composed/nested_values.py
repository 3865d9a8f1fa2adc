"""Lists and structs made of values, their elements and fields: x[1], s.a, [1, 2], {'a': 1}."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidQuery, Span, TypeMismatch, UnknownColumn, Unsupported, nearest
from .. import infer, types as ty
from ..coercion import compared_pair
from ..expr import Call, ColumnRef, Expr, ListAggregate, Literal
from ..functions import aggregate_name
from ..functions.lists import element_type
from ..json.json_paths import quoted_key
from .json_calls import at_path
from .lambdas import LAMBDAS, mapped, parameter


def list_value(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return [a, b, ...], whose elements are of the type that they share."""
    values = infer.unify(args, span) if args else []
    return Call(
        "list_value", tuple(values), ty.list_of(values[0].type if values else ty.NULL), span
    )


def listed_constants(value: Expr) -> Sequence[Expr] | None:
    """Return the elements of a list that is written as constants, None for another expression."""
    listed = isinstance(value, Call) and value.function == "list_value"
    constant = listed and all(isinstance(element, Literal) for element in value.children)
    return value.children if constant else None


def struct_pack(names: Sequence[str], args: Sequence[Expr], span: Span | None) -> Expr:
    """Return {'name': value, ...}."""
    try:
        made = ty.struct_of(zip(names, (a.type for a in args), strict=True))
    except TypeMismatch as error:
        raise TypeMismatch(error.message, span) from None
    return Call("struct_pack", tuple(args), made, span)


def row_value(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return (a, b) or row(a, b), a struct whose fields have no names."""
    if not args:
        raise Unsupported("A row without values is not supported: row(1, 'a') has some.", span)
    return Call("struct_pack", tuple(args), ty.tuple_of(a.type for a in args), span)


def values_of_row(row: Expr) -> list[Expr] | None:
    """Return the values of a row that is written as such, None for another expression."""
    written = isinstance(row, Call) and row.function == "struct_pack" and row.type.is_tuple
    return list(row.children) if written else None


def field(struct: Expr, name: str, span: Span | None) -> Expr:
    """Return s.name, whatever its case; of a struct that is NULL, NULL, and of JSON or a MAP what it has by that key."""
    if struct.type == ty.JSON:
        return Call(
            "json_extract", (struct, Literal(f"$.{quoted_key(name)}", ty.VARCHAR)), ty.JSON, span
        )
    if struct.type.kind is ty.Kind.MAP:
        return infer.call("map_extract_value", [struct, Literal(name, ty.VARCHAR)], span)
    if struct.type.kind is not ty.Kind.STRUCT:
        raise TypeMismatch(f'{struct.type} has no field "{name}": a STRUCT has fields.', span)
    if struct.type.is_tuple:
        raise UnknownColumn(
            f'{struct.type} has no field "{name}": its values have places, as in x[1].', span
        )
    folded = [known.lower() for known in struct.type.names]
    if name.lower() not in folded:
        hint = nearest(name, struct.type.names)
        raise UnknownColumn(f'{struct.type} has no field "{name}".{hint}', span)
    return _field_at(struct, folded.index(name.lower()), span)


def _field_at(struct: Expr, place: int, span: Span | None) -> Expr:
    known = Literal(struct.type.names[place], ty.VARCHAR)
    return Call("struct_field", (struct, known), struct.type.children[place], span)


def parts_of(struct: Expr, span: Span | None) -> list[Expr]:
    """Return the fields of a struct, or of a row value, in their order."""
    if struct.type.kind is not ty.Kind.STRUCT:
        raise TypeMismatch(f"{struct.type} has no fields: a STRUCT has.", struct.span or span)
    return [_field_at(struct, place, span) for place in range(len(struct.type.names))]


def element(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return x[i]: of a list an element, of a text a character, of a struct the field of that name, of JSON what is there."""
    value, place = args
    if value.type == ty.JSON:
        return at_path("json_extract", args, span)
    if value.type.is_tuple:
        return _numbered(args, span)
    if value.type.kind is ty.Kind.STRUCT:
        if not isinstance(place, Literal) or not isinstance(place.value, str):
            raise InvalidQuery(
                "A field of a STRUCT is named by a constant string.", place.span or span
            )
        return field(value, place.value, span)
    if value.type.kind is ty.Kind.MAP:
        return infer.call("map_extract_value", [value, place], span)
    if place.type == ty.NULL and value.type.kind is ty.Kind.LIST:
        return Literal(None, ty.NULL, span)
    if value.type.kind is ty.Kind.LIST:
        return infer.call("list_element", [value, _whole(place)], span)
    _refuse_numbers(value, "elements")
    return infer.call("substring", [value, place, infer.literal(1)], span)


def _extracted(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return list_extract(x, i), which is x[i], but that of JSON it is a character of the text."""
    value, place = args
    if value.type == ty.JSON:
        return element([infer.cast(value, ty.VARCHAR, span=span), _whole(place)], span)
    return element(args, span)


def cut(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return x[from:to] or x[from:to:step], of a list or a text."""
    value = args[0]
    if value.type.kind is ty.Kind.LIST:
        return infer.call("list_cut", [value, *map(_whole, args[1:])], span)
    _refuse_numbers(value, "a slice")
    if len(args) > 3:
        raise TypeMismatch("A slice of a text has no step.", span)
    return infer.call("text_slice", args, span)


def repeated(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return repeat(x, n): of a list its elements n times, flatten([x for each of range(n)])."""
    value, count = args
    if value.type.kind is not ty.Kind.LIST:
        return infer.call("repeat", args, span)
    places = infer.call("list_of_range", [infer.coerce(count, ty.BIGINT)], span)
    copies = mapped(places, ["repeat"], lambda _: value, None, 0, span)
    return _unless_null(args, infer.call("flatten", [copies], span), span)


def _refuse_numbers(value: Expr, what: str) -> None:
    if value.type.kind not in (ty.Kind.VARCHAR, ty.Kind.NULL):
        raise TypeMismatch(f"{value.type} has no {what}: a list or a text has.", value.span)


def _whole(place: Expr) -> Expr:
    if place.type.is_whole or place.type == ty.NULL:
        return infer.coerce(place, ty.BIGINT)
    raise TypeMismatch(f"A place in a list is an integer, and this is {place.type}.", place.span)


def joined(lists: Sequence[Expr], span: Span | None) -> Expr:
    """Return a || b, which is NULL where one of the lists is; list_concat skips those.  Raises `TypeMismatch` for text beside lists."""
    for text in lists:
        if text.type == ty.VARCHAR:
            raise TypeMismatch(
                "|| takes no list beside VARCHAR: cast one of them.", text.span or span
            )
    found = infer.call("list_concat", lists, span)
    unknown = [infer.call("is_null", [each], span) for each in lists]
    return infer.case([infer.call("or", unknown, span)], [Literal(None, found.type)], found, span)


def named_aggregate(name: str) -> str | None:
    """Return the aggregate whose name follows list_ in that of a function: list_sum."""
    found = aggregate_name(name.lower().removeprefix("list_"))
    return found if name.lower().startswith("list_") else None


def list_aggregate(args: Sequence[Expr], span: Span | None) -> Expr:
    """Return the aggregate of a list's elements that a text names."""
    if len(args) < 2:
        raise TypeMismatch("An aggregate of elements takes a list.", span)
    operand, name = args[0], args[1]
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise InvalidQuery("The name of an aggregate is a constant string.", name.span or span)
    if operand.type == ty.NULL:
        return Literal(None, ty.NULL, span)
    kind = element_type(operand.type)
    if kind is None:
        raise TypeMismatch(
            f"An aggregate of elements takes a list, and this is {operand.type}.", span
        )
    if aggregate_name(name.value) is None:
        raise infer.unknown_function(name.value, span)
    made = parameter("element", kind, 0, 0)
    body = infer.aggregate(name.value, [ColumnRef(made), *args[2:]], span=span)
    return ListAggregate(infer.coerce(operand, ty.list_of(kind)), made, body, body.type, span)


def appended(args: Sequence[Expr], span: Span | None) -> Expr:
    """list_append(l, x) -> list_concat(l, [x])."""
    return infer.call("list_concat", [args[0], list_value(args[1:], span)], span)


def prepended(args: Sequence[Expr], span: Span | None) -> Expr:
    """list_prepend(x, l) -> list_concat([x], l)."""
    return infer.call("list_concat", [list_value(args[:1], span), args[1]], span)


def to_string(args: Sequence[Expr], span: Span | None) -> Expr:
    """array_to_string(l, ',') -> the texts of the elements with the separator between them; NULL where all are."""
    operand, separator = args
    kind = element_type(operand.type)
    if kind is None:
        raise TypeMismatch(f"array_to_string takes a list, and this is {operand.type}.", span)
    texts = infer.cast(operand, ty.list_of(ty.VARCHAR), span=span)
    found = list_aggregate([texts, Literal("string_agg", ty.VARCHAR), separator], span)
    size = infer.call("list_length", [operand], span)
    empty = infer.compare("eq", size, Literal(0, ty.BIGINT), span)
    return infer.case([empty], [Literal("", ty.VARCHAR)], found, span)


def _fields(struct: Expr, span: Span | None) -> dict[str, Expr]:
    if struct.type.is_tuple:
        raise TypeMismatch(f"{struct.type} has no names of fields.", struct.span or span)
    return dict(zip(struct.type.names, parts_of(struct, span), strict=True))


def inserted(
    args: Sequence[Expr], names: Sequence[str], values: Sequence[Expr], span: Span | None
) -> Expr:
    """struct_insert(s, b := 2) -> {'a': s.a, 'b': 2}."""
    known = _fields(args[0], span)
    return struct_pack([*known, *names], [*known.values(), *values], span)


def updated(
    args: Sequence[Expr], names: Sequence[str], values: Sequence[Expr], span: Span | None
) -> Expr:
    """struct_update(s, a := 2) -> as `inserted`, and a field that is there gets another value."""
    known = {name.lower(): (name, value) for name, value in _fields(args[0], span).items()}
    struct_pack(names, values, span)  # which refuses a name that comes twice
    for name, value in zip(names, values, strict=True):
        known[name.lower()] = (name, value)
    return struct_pack([n for n, _ in known.values()], [v for _, v in known.values()], span)


def _together(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_concat(s, t) -> {'a': s.a, 'b': t.b}; of row values one."""
    if all(struct.type.is_tuple for struct in args):
        return row_value([part for struct in args for part in parts_of(struct, span)], span)
    pairs = [pair for struct in args for pair in _fields(struct, span).items()]
    return struct_pack([name for name, _ in pairs], [value for _, value in pairs], span)


def _keys(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_keys(s) -> the names of the fields, NULL of a struct that is."""
    names = list_value([Literal(name, ty.VARCHAR) for name in _fields(args[0], span)], span)
    missing = infer.call("is_null", [args[0]], span)
    return infer.case([missing], [Literal(None, names.type)], names, span)


def _numbered(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_extract_at(s, n) -> the n-th field, from 1 on."""
    struct, place = args
    if struct.type == ty.NULL:
        return struct
    fields = parts_of(struct, span)
    if not isinstance(place, Literal) or not isinstance(place.value, int):
        raise InvalidQuery("The place of a field is a constant integer.", place.span or span)
    if not 1 <= place.value <= len(fields):
        raise InvalidQuery(f"{args[0].type} has {len(fields)} fields.", place.span or span)
    return fields[place.value - 1]


def _values(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_values(s) -> (s.a, s.b), NULL of a struct that is."""
    if args[0].type == ty.NULL:
        return args[0]
    return _unless_null([args[0]], row_value(parts_of(args[0], span), span), span)


def _unless_null(args: Sequence[Expr], value: Expr, span: Span | None) -> Expr:
    missing = infer.call("or", [infer.call("is_null", [arg], span) for arg in args], span)
    return infer.case([missing], [Literal(None, value.type)], value, span)


def _equal_parts(args: Sequence[Expr], span: Span | None) -> list[Expr]:
    """Return for each value of a row whether it is another value, or both are NULL; text and numbers never are alike."""
    row, wanted = args
    if not row.type.is_tuple:
        raise TypeMismatch(
            f"{row.type} is no row value, in which values are searched for.", row.span or span
        )
    same: list[Expr] = []
    for part in parts_of(row, span):
        kinds = {part.type, wanted.type} - {ty.NULL}
        mixes = ty.VARCHAR in kinds and len(kinds) > 1
        if mixes or compared_pair(part.type, wanted.type) is None:
            same.append(Literal(False, ty.BOOLEAN, span))
        else:
            same.append(infer.compare("is_not_distinct", part, wanted, span))
    return same


def _contains(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_contains((a, b), x) -> whether one of the values is x."""
    if args[0].type == ty.NULL:
        return Literal(None, ty.BOOLEAN, span)
    return _unless_null(args, infer.call("or", _equal_parts(args, span), span), span)


def _position(args: Sequence[Expr], span: Span | None) -> Expr:
    """struct_position((a, b), x) -> the place of the first value that is x, or NULL."""
    if args[0].type == ty.NULL:
        return Literal(None, ty.INTEGER, span)
    same = _equal_parts(args, span)
    places = [Literal(place, ty.INTEGER) for place in range(1, len(same) + 1)]
    found = infer.case(same, places, Literal(None, ty.INTEGER), span)
    return _unless_null(args[:1], found, span)


# Functions of a struct and of values with names: name := value
OF_NAMED_VALUES = {"struct_insert": inserted, "struct_update": updated}


def _without_names(args: Sequence[Expr], span: Span | None) -> Expr:
    raise TypeMismatch("The values have names here: struct_insert(s, b := 2).", span)


def _without_lambda(args: Sequence[Expr], span: Span | None) -> Expr:
    raise TypeMismatch(
        "The second argument is a function of the elements: lambda x: x + 1.",
        args[1].span or span,
    )


# SQL name -> how it is built, fewest and most arguments, signature
NESTED_VALUES = {
    **dict.fromkeys(("list_value", "list_pack"), (list_value, 0, 10_000, "list_value(any, ...)")),
    **dict.fromkeys(
        ("array_extract", "list_extract", "list_element"),
        (_extracted, 2, 2, "list_extract(any[] or VARCHAR, BIGINT)"),
    ),
    **dict.fromkeys(
        ("array_slice", "list_slice"),
        (cut, 3, 4, "list_slice(any[] or VARCHAR, BIGINT, BIGINT[, BIGINT])"),
    ),
    "repeat": (repeated, 2, 2, "repeat(any[], BIGINT)"),
    **dict.fromkeys(
        OF_NAMED_VALUES, (_without_names, 1, 10_000, "struct_insert(STRUCT, name := any, ...)")
    ),
    "struct_concat": (_together, 1, 10_000, "struct_concat(STRUCT, STRUCT, ...)"),
    "struct_keys": (_keys, 1, 1, "struct_keys(STRUCT)"),
    "struct_extract_at": (_numbered, 2, 2, "struct_extract_at(STRUCT, BIGINT)"),
    "struct_extract": (element, 2, 2, "struct_extract(STRUCT, VARCHAR)"),
    "row": (row_value, 0, 10_000, "row(any, ...)"),
    "struct_values": (_values, 1, 1, "struct_values(STRUCT)"),
    **dict.fromkeys(
        ("struct_contains", "struct_has"), (_contains, 2, 2, "struct_contains(TUPLE, any)")
    ),
    **dict.fromkeys(
        ("struct_position", "struct_indexof"), (_position, 2, 2, "struct_position(TUPLE, any)")
    ),
    **dict.fromkeys(
        ("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"),
        (list_aggregate, 2, 10, "list_aggregate(any[], name, ...)"),
    ),
    **dict.fromkeys(
        ("list_append", "array_append", "array_push_back"),
        (appended, 2, 2, "list_append(any[], any)"),
    ),
    **dict.fromkeys(
        ("list_prepend", "array_prepend"), (prepended, 2, 2, "list_prepend(any, any[])")
    ),
    "array_push_front": (
        lambda args, span: prepended(args[::-1], span),
        2,
        2,
        "array_push_front(any[], any)",
    ),
    **{
        name: (
            _without_lambda,
            2,
            2 + (function == "list_reduce"),
            f"{function}(any[], lambda {', '.join('xyi'[: counts[0]])}: any)",
        )
        for name, (function, counts) in LAMBDAS.items()
    },
    "array_to_string": (to_string, 2, 2, "array_to_string(any[], VARCHAR)"),
}
