"""What sqlglot's parser says of a call that has the wrong number of arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType

_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_MOST_ARGUMENTS = re.compile(r"supported arguments \((\d+)\)|Expected at most (\d+) arguments")


def wrong_arguments(description: str, tokens: Sequence[Token]) -> tuple[Token, str] | None:
    """Return the name of a function and what is wrong with the number of its arguments; `tokens` end with the parenthesis behind these."""
    if tokens[-1].token_type is not TokenType.R_PAREN:
        return None
    name, depth = None, 0
    for before, token in zip(tokens[-2::-1], tokens[:0:-1], strict=True):
        depth += (token.token_type is TokenType.R_PAREN) - (token.token_type is TokenType.L_PAREN)
        if depth == 0:
            name = before
            break
    if name is None or not _NAME.fullmatch(name.text):
        return None
    found = _MOST_ARGUMENTS.search(description)
    if found:
        most = int(found[1] or found[2])
        return name, f"takes at most {most} argument{'' if most == 1 else 's'}"
    if description.startswith("Required") and tokens[-2].token_type is TokenType.L_PAREN:
        return name, "needs arguments"
    return None
