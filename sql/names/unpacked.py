"""The text of an item with other columns in the place of `*COLUMNS(...)`."""

from __future__ import annotations

from .reader import words


def without_columns(text: str, listed: str) -> str:
    """Return `text` with `listed` for each `*COLUMNS(...)` in it."""
    tokens = words(text)
    parts: list[str] = []
    end = i = 0
    while i < len(tokens):
        if [token.lower for token in tokens[i : i + 3]] == ["*", "columns", "("]:
            parts += text[end : tokens[i].start], listed
            depth, i = 1, i + 3
            while depth and i < len(tokens):
                depth += {"(": 1, ")": -1}.get(tokens[i].lower, 0)
                i += 1
            end = tokens[i - 1].end
        else:
            i += 1
    return "".join([*parts, text[end:]])
