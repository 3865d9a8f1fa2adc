"""Whether a statement's tokens are one that the grammar describes, and else the token that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import Token, TokenType

from .machine import Machine
from .parts import END, NUMBER, OTHER_SIGN, OTHER_WORD, QUOTED, STRING, Rules
from .rules import RULES

_KINDS = dict.fromkeys((kind for kind in TokenType if kind.name.endswith("STRING")), STRING) | {
    TokenType.IDENTIFIER: QUOTED,
    TokenType.NUMBER: NUMBER,
}


_SHIFTS = ("<", ">")


def unrecognized(tokens: Sequence[Token]) -> int | None:
    """Return the number of the first token that the grammar cannot go on with, that of no token at the end, or None."""
    machine = _machine()
    keys: list[str] = []
    owners: list[int] = []
    end = -1
    for i, token in enumerate(tokens):
        near = end == token.start
        key = _KINDS.get(token.token_type)
        text = "" if key else token.text.lower()
        key = key or machine.keys.get(text)
        if key is None:
            for part in _parts(text):
                keys.append(machine.keys.get(part) or _other(part))
                owners.append(i)
        elif near and keys and key == keys[-1] and key in _SHIFTS:
            keys[-1] = key + key  # sqlglot makes two tokens of a shift
        else:
            if key is NUMBER and not near and keys and keys[-1] == ".":
                key = OTHER_SIGN  # `. 5`, which is no number
            keys.append(key)
            owners.append(i)
        end = token.end + 1
    keys.append(END)
    owners.append(len(tokens))
    wrong = machine.run(keys)
    return None if wrong is None else owners[wrong]


def _parts(text: str) -> Sequence[str]:
    """Return the words or signs that sqlglot makes one token of."""
    return ("?", "::") if text == "?::" else text.split()


def _other(text: str) -> str:
    return OTHER_WORD if text[0].isalpha() or text[0] == "_" else OTHER_SIGN


@cache
def _machine() -> Machine:
    return Machine(Rules(RULES))
