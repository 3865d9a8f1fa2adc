"""Lists and structs as DuckDB names them: by the functions that make them."""

from __future__ import annotations

from .reader import Reader, Unreadable, identifier, quoted


def nested_constant(reader: Reader) -> str:
    """Read [a, b] as list_value(a, b), or {'x': a} as struct_pack(x := a); [a for b in c] as list_apply(c, lambda)."""
    if reader.accept("map"):
        return _map(reader)
    if reader.accept("array"):
        return f"(ARRAY[{nested_constant(reader).removeprefix('list_value(')[:-1]}])"
    opening = reader.take().text
    closing, item, name = (
        ("]", reader.shown, "list_value")
        if opening == "["
        else ("}", lambda: _field(reader), "struct_pack")
    )
    values = [] if reader.peek() == closing else reader.listed(item)
    if opening == "[" and reader.accept("for"):
        return _comprehension(reader, values[0])
    reader.expect(closing)
    return f"{name}({', '.join(values)})"


def _map(reader: Reader) -> str:
    """Read {k: v}, behind the word, as map(list_value(k), list_value(v))."""
    reader.expect("{")
    pairs: list[tuple[str, str]] = []
    while reader.peek() != "}":
        key = reader.shown()
        reader.expect(":")
        pairs.append((key, reader.shown()))
        if not reader.accept(","):
            break
    reader.expect("}")
    lists = [f"list_value({', '.join(pair[i] for pair in pairs)})" for i in range(2)]
    return f'"map"({", ".join(lists)})'


def lambda_argument(reader: Reader) -> str:
    """Read what follows the word."""
    names = reader.listed(lambda: quoted(reader.name()))
    reader.expect(":")
    return f"(lambda {', '.join(names)}: {reader.shown()})"


def is_arrow(reader: Reader) -> bool:
    """Whether an argument x -> y comes next, and no path of JSON behind the arrow."""
    path = reader.kind(2) in ("text", "escaped", "dollar", "number", "parameter")
    return reader.kind() == "word" and reader.peek(1) == "->" and not path


def arrow_argument(reader: Reader) -> str:
    """Read x -> y, of which y takes in AND and OR, unlike behind an arrow of JSON."""
    name = quoted(reader.name())
    reader.expect("->")
    return f"({name} -> {reader.shown()})"


def _comprehension(reader: Reader, body: str) -> str:
    names = ", ".join(reader.listed(lambda: quoted(reader.name())))
    reader.expect("in")
    operand = reader.shown()
    condition = reader.shown() if reader.accept("if") else None
    reader.expect("]")
    if condition is None:
        return f"list_apply({operand}, (lambda {names}: {body}))"
    pairs = f'struct_pack("filter" := {condition}, result := {body})'
    made = f"list_apply({operand}, (lambda {names}: {pairs}))"
    kept = f"list_filter({made}, (lambda elem: struct_extract(elem, 'filter')))"
    return f"list_apply({kept}, (lambda elem: struct_extract(elem, 'result')))"


def _field(reader: Reader) -> str:
    word = reader.take()
    if word.kind not in ("word", "quoted", "text"):
        raise Unreadable(word)
    name = word.text[1:-1].replace("''", "'") if word.kind == "text" else identifier(word)
    reader.expect(":")
    return f"{quoted(name)} := {reader.shown()}"
