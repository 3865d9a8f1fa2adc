"""Whether a statement's tokens are one that the grammar describes, and else the token that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf

from sqlglot import Token, TokenType

from fuseline.plan.text.quoted_name import several
from fuseline.sql.grammar.ranks import SIGNS, unknown_operator

from ...records import dataclass
from .machine import GrammarMachine
from .mistakes import MisreadKeys, mistake
from .parts import END, NUMBER, OTHER_SIGN, OTHER_WORD, QUOTED, STRING, GrammarRules
from .rules import RULES, sentence

_KINDS = dict.fromkeys((kind for kind in TokenType if kind.name.endswith("STRING")), STRING) | {
    TokenType.IDENTIFIER: QUOTED,
    TokenType.NUMBER: NUMBER,
}


_STATEMENTS = several("""
    select from values with table create insert update delete merge truncate alter drop
    describe desc summarize pivot unpivot pivot_wider pivot_longer
    """)
_TAKEN_FOR_NAMES = ("abort", "bernoulli", "reservoir", "system", "unbounded")
_BEGIN_TWO = ("<", ">", "!")


def is_word_of_grammar(word: str) -> bool:
    """Whether a word in lower case stands in a rule, or is one of those that rules take for names."""
    return _machine().keys.get(word) == word or word in _TAKEN_FOR_NAMES


def unrecognized(tokens: Sequence[Token]) -> int | None:
    """Return the number of the first token that the grammar cannot go on with, that of no token at the end, or None."""
    keys, owners = keys_of(tokens)
    wrong = _machine().run(keys)
    return None if wrong is None else owners[wrong]


def unknown_sign(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """Return an operator that DuckDB makes of signs without blanks and that the grammar lacks, and the first character of it."""
    known = _machine().keys.keys()
    run, start, end = "", 0, -1
    for token in (*tokens, None):
        is_sign = (
            token is not None
            and SIGNS.fullmatch(token.text)
            and _KINDS.get(token.token_type) is None
        )
        if run and not (is_sign and token is not None and token.start == end):
            unknown = unknown_operator(run, known)
            if unknown:
                return unknown, start + run.index(unknown)
            run = ""
        if is_sign and token is not None:
            start = start if run else token.start
            run, end = run + token.text, token.end + 1
    return None


@dataclass(frozen=True)
class Complaint:
    """What is wrong with the token `place`, which may be behind the last; `certain` where one change mends all of the text."""

    place: int
    expected: str
    mistake: str
    certain: bool = False


def complaint(tokens: Sequence[Token]) -> Complaint:
    """Return what is wrong with tokens that the grammar does not take; a second, slower reading of them."""
    keys, owners = keys_of(tokens)
    # A name before a colon could stand at most places, and an expression at the beginning: they are not what is missing
    machine = _machine(labels=":" in keys, expressions=keys[0] not in _STATEMENTS)
    wrong = machine.run(keys)
    assert wrong is not None, "asked only of what is not recognized"
    words = ["" if owner == len(tokens) else tokens[owner].text.lower() for owner in owners]
    found = mistake(MisreadKeys(machine, keys, words, wrong))
    if found is not None:
        return Complaint(owners[found.place], "", found.sentence, found.gain == inf)
    return Complaint(owners[wrong], sentence(machine.expected(keys, wrong), machine.rules), "")


def keys_of(tokens: Sequence[Token]) -> tuple[list[str], list[int]]:
    """Return the keys of tokens and, for each, the number of the token that it is of."""
    machine = _machine()
    keys: list[str] = []
    owners: list[int] = []
    end = -1
    before = ""
    for i, token in enumerate(tokens):
        near = end == token.start
        key = _KINDS.get(token.token_type)
        text = "" if key else token.text.lower()
        key = key or machine.keys.get(text)
        if near and text and before in _BEGIN_TWO and before + text in machine.keys:
            keys[-1] = before + text  # sqlglot makes two tokens of `<<`, and of `!~`
        elif key is None:
            for part in _parts(text):
                keys.append(machine.keys.get(part) or _other(part))
                owners.append(i)
        else:
            if key is NUMBER and not near and keys and keys[-1] == ".":
                key = OTHER_SIGN  # `. 5`, which is no number
            keys.append(key)
            owners.append(i)
        end, before = token.end + 1, text
    keys.append(END)
    owners.append(len(tokens))
    return keys, owners


def _parts(text: str) -> Sequence[str]:
    """Return the words or signs that sqlglot makes one token of."""
    return ("?", "::") if text == "?::" else text.split()


def _other(text: str) -> str:
    return OTHER_WORD if text[0].isalpha() or text[0] == "_" else OTHER_SIGN


@cache
def _machine(labels: bool = True, expressions: bool = True) -> GrammarMachine:
    rules = RULES
    if not labels:
        rules = rules.replace("prefix? ", "").replace("(LABEL / expr) ':'", "expr ':'")
    if not expressions:
        rules = rules.replace("/ summarize / expr", "/ summarize")
    return GrammarMachine(GrammarRules(rules))
