"""Errors that show a place: queries have ^...^ around what the caret is to mark."""

from __future__ import annotations

from fuseline import errors


def assert_marks(error: errors.FuselineError, marked: str, message: str = "") -> None:
    """The message has the text, and the caret is below what is between the two marks of it, to the end of the line."""
    before, inside, _ = (part.split("\n") for part in marked.split("^"))
    number, start = len(before), before[-1]
    line = marked.replace("^", "").split("\n")[number - 1]
    indent = "".join("\t" if c == "\t" else " " for c in start)
    prefix = f"LINE {number}: "
    sentence, *place = str(error).split("\n")
    assert message in sentence
    assert place == [prefix + line, " " * len(prefix) + indent + "^" * len(inside[0])]
