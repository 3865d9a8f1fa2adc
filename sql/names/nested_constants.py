"""Lists and structs as DuckDB names them: by the functions that make them."""

from __future__ import annotations

from .reader import Reader, Unreadable, identifier, quoted


def nested_constant(reader: Reader) -> str:
    """Read [a, b] as list_value(a, b), or {'x': a} as struct_pack(x := a)."""
    opening = reader.take().text
    closing, item, name = (
        ("]", reader.shown, "list_value")
        if opening == "["
        else ("}", lambda: _field(reader), "struct_pack")
    )
    values = [] if reader.peek() == closing else reader.listed(item)
    reader.expect(closing)
    return f"{name}({', '.join(values)})"


def _field(reader: Reader) -> str:
    word = reader.take()
    if word.kind not in ("word", "quoted", "text"):
        raise Unreadable(word)
    name = word.text[1:-1].replace("''", "'") if word.kind == "text" else identifier(word)
    reader.expect(":")
    return f"{quoted(name)} := {reader.shown()}"
