"""COMMENT ON: what people write about tables, views, their columns, macros and types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

Commented = OneOf["relation", "macro", "type"]


@dataclass(frozen=True)
class CommentOn:
    """COMMENT ON kind name IS text, or of one of its columns; None ends the comment that there is."""

    kind: Commented
    parts: tuple[str, ...]
    column: str | None
    text: str | None
