"""Calls of functions of JSON whose type depends on a constant: on a path, or on the structure that is made of a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...errors import InvalidQuery, Located, Span, TypeMismatch
from .. import infer
from ..casts import cast
from ..coercion import parse_type
from ..expr import Call, Cast, Expr, Literal
from ..functions.json_functions import (
    ALIASES,
    CHANGES,
    ENTRIES,
    MAKERS,
    OF_DOCUMENTS,
    OF_PATHS,
    OF_TEXTS,
    SEVERAL,
    TRANSFORMS,
)
from ..json import documents
from ..json.json_paths import compiled
from ..types import BIGINT, JSON, NULL, VARCHAR, DataType, Kind, list_of, map_of, struct_of

ENTRY_TABLES = {"json_each": "json_entries", "json_tree": "json_entries_within"}


def document(expr: Expr, function: str) -> Expr:
    """Return an argument as a text that is read as JSON: text as it is, lists and structs as `to_json` writes them."""
    if expr.type.is_nested:
        return Call("to_json", (value_of(expr),), JSON, expr.span)
    if expr.type.kind is Kind.NULL:
        return Literal(None, JSON, expr.span)
    if expr.type.kind is not Kind.VARCHAR:
        raise TypeMismatch(
            f"{function}() takes JSON, and this is {expr.type}: cast it to JSON.", expr.span
        )
    return expr


def at_path(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Return json_extract(j, '$.a') and its kin: a list of values for several paths and for one with wildcards."""
    result, of_numbers, _ = OF_PATHS[name]
    value = document(args[0], name)
    if len(args) == 1:
        return Call(name, (value,), result, span)
    path = args[1]
    if path.type.kind is Kind.LIST:
        return _at_paths(name, value, path, list_of(result), span)
    if path.type.kind is Kind.NULL:
        return Literal(None, result, span)
    if path.type.is_whole and of_numbers:
        return Call(name, (value, infer.coerce(path, BIGINT)), result, span)
    if path.type.kind is not Kind.VARCHAR:
        raise TypeMismatch(f"A path of {name}() is text, and this is {path.type}.", path.span)
    if isinstance(path, Literal) and isinstance(path.value, str):
        with Located(path.span or span):
            several = compiled(path.value).has_wildcard
        if several:
            return Call(f"{name}{SEVERAL}", (value, path), list_of(result), span)
    return Call(name, (value, path), result, span)


def _at_paths(name: str, value: Expr, paths: Expr, result: DataType, span: Span | None) -> Expr:
    while isinstance(paths, Cast):
        paths = paths.operand
    if isinstance(paths, Literal) and paths.value is None:
        return Literal(None, result, span)
    given = [_without_cast(p) for p in paths.children] if isinstance(paths, Call) else []
    if not isinstance(paths, Call) or paths.function != "list_value":
        raise InvalidQuery(f"The paths of {name}() have to be constant.", paths.span or span)
    for path in given:
        if not isinstance(path, Literal):
            raise InvalidQuery(f"The paths of {name}() have to be constant.", path.span or span)
        if not isinstance(path.value, str):
            raise InvalidQuery("A JSON path is text, and not NULL.", path.span or span)
        with Located(path.span or span):
            if compiled(path.value).has_wildcard:
                raise InvalidQuery("Of several JSON paths none has wildcards.")
    listed = Call("list_value", tuple(given), list_of(VARCHAR), span)
    return Call(f"{name}{SEVERAL}", (value, listed), result, span)


def _without_cast(expr: Expr) -> Expr:
    return expr.operand if isinstance(expr, Cast) else expr


def _checked(expr: Expr, function: str) -> Expr:
    """Return an argument as JSON, where text that is none fails also if nothing reads it."""
    return cast(document(expr, function), JSON)


def value_of(expr: Expr) -> Expr:
    """Return what JSON is made of, a moment with a time zone as text in the session's."""
    if expr.type.kind is Kind.TIMESTAMPTZ:
        return cast(expr, VARCHAR)
    return cast(expr, JSON) if expr.type.holds(Kind.TIMESTAMPTZ) else expr


def changed(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Return json_set(j, '$.a', value) and its kin."""
    value, path, *rest = args
    if isinstance(path, Literal) and isinstance(path.value, str):
        with Located(path.span or span):
            if compiled(path.value).has_wildcard:
                raise InvalidQuery(f"The path of {name}() has no wildcards.")
    for other in rest:
        if other.type.is_numeric:
            raise TypeMismatch(
                f"{name}() takes JSON, and this is {other.type}: cast it to JSON.", other.span
            )
    puts = [cast(other, JSON) for other in rest]
    return infer.call(name, [_checked(value, name), path, *puts], span)


def of_documents(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Return a function of one or several values of JSON."""
    given = document if name in OF_TEXTS else _checked
    return infer.call(name, [given(a, name) for a in args], span)


def whole(args: Sequence[Expr], span: Span | None) -> Expr:
    """json(j) -> json_extract(j, '$')."""
    return at_path("json_extract", [args[0], Literal("$", VARCHAR)], span)


def entries(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Return what json_each and json_tree have rows of, as a list of structs."""
    if len(args) not in (1, 2):
        raise TypeMismatch(f"{name}() takes JSON and a path.", span)
    value, *paths = args
    for path in paths:
        if path.type.kind is Kind.NULL:
            return Literal(None, ENTRIES, span)
        if path.type.kind is not Kind.VARCHAR:
            raise TypeMismatch(f"A path of {name}() is text, and this is {path.type}.", path.span)
        if isinstance(path, Literal) and isinstance(path.value, str):
            with Located(path.span or span):
                if path.value.startswith("/") or compiled(path.value).has_wildcard:
                    raise InvalidQuery(f"The path of {name}() begins with $ and has no wildcards.")
    return Call(ENTRY_TABLES[name], (document(value, name), *paths), ENTRIES, span)


def _made(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    return infer.call(name, [value_of(a) for a in args], span)


def transformed(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Return json_transform(j, structure) or its strict form."""
    value, structure = args
    if structure.type.kind is Kind.NULL:
        return Literal(None, NULL, span)
    if not isinstance(structure, Literal) or not isinstance(structure.value, str):
        raise InvalidQuery(f"The structure of {name}() has to be a constant text.", structure.span)
    with Located(structure.span or span):
        kind = structure_type(documents.read(structure.value))
    return Call(name, (document(value, name),), kind, span)


def structure_type(structure: object) -> DataType:
    """Return the type that {"a": "INTEGER", "b": ["DATE"]} stands for; raises `InvalidQuery` and `UnknownName`."""
    if isinstance(structure, str):
        return type_of_text(structure)
    if isinstance(structure, list) and len(structure) == 1:
        return list_of(structure_type(structure[0]))
    if isinstance(structure, dict) and structure:
        return struct_of((name, structure_type(kind)) for name, kind in structure.items())
    raise InvalidQuery(
        'A structure of JSON is a type, {"key": structure, ...} or [structure]: {"a": "INTEGER"}.'
    )


_NESTED_TYPE = re.compile(r"(map|struct)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r'"(?:[^"]|"")*"|[(),]|[^"(),]+')
_FIELD = re.compile(r'\s*("(?:[^"]|"")*"|\S+)\s+(.*)', re.DOTALL)


def type_of_text(text: str) -> DataType:
    """Return the type that a text names, such as STRUCT(a INTEGER[]); raises `InvalidQuery` and `UnknownName`."""
    text = text.strip()
    if text.endswith("[]"):
        return list_of(type_of_text(text[:-2]))
    found = _NESTED_TYPE.fullmatch(text)
    if found is None:
        return parse_type(text)
    inside = _top_level(found[2])
    if found[1].lower() == "map" and len(inside) == 2:
        return map_of(*map(type_of_text, inside))
    fields = [_FIELD.fullmatch(part) for part in inside]
    if found[1].lower() == "map" or None in fields:
        raise InvalidQuery(f"{text} is no type.")
    known = [(f[1].strip('"').replace('""', '"'), type_of_text(f[2])) for f in fields if f]
    return struct_of(known)


def _top_level(text: str) -> list[str]:
    """Return the parts of a list of types, between its commas."""
    parts, depth = [""], 0
    for piece in _PARTS.findall(text):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


Build = Callable[[Sequence[Expr], Span | None], Expr]


def _of(function: Callable[[str, Sequence[Expr], Span | None], Expr], name: str) -> Build:
    return lambda args, span: function(name, args, span)


# SQL name -> how it is built, fewest and most arguments, signature
JSON_CALLS: dict[str, tuple[Build, int, int, str]] = {
    **{
        name: (
            _of(at_path, known),
            1 if alone else 2,
            2,
            f"{name}(JSON{'[, path]' if alone else ', path'})",
        )
        for known, (_, _, alone) in OF_PATHS.items()
        for name in (known, *ALIASES.get(known, ()))
    },
    **{
        name: (
            _of(of_documents, name),
            least,
            most,
            f"{name}({', '.join(['JSON'] * least)}{', ...' if most > least else ''})",
        )
        for name, (least, most) in OF_DOCUMENTS.items()
    },
    **{
        name: (
            _of(changed, name),
            count,
            count,
            f"{name}(JSON, path{', JSON' if count > 2 else ''})",
        )
        for name, count in CHANGES.items()
    },
    **{
        name: (
            _of(transformed, known),
            2,
            2,
            f"{name}(JSON, structure)",
        )
        for name, known in TRANSFORMS.items()
    },
    **{
        name: (
            _of(_made, known),
            least,
            most,
            f"{name}({given})",
        )
        for name, (known, least, most, given) in MAKERS.items()
    },
    "json": (whole, 1, 1, "json(JSON)"),
}
