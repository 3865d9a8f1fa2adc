"""What the grammar looks for, in words of users: the tables of names, and which of them an error shows first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .machine import ExpectedPart
from .parts import END, NUMBER, QUOTED, STRING, GrammarPart, GrammarRules

MOST_SHOWN = 6
MOST_OTHERS = 3  # that go on with what stands before, where something has to follow
_EXPRESSION = ("an expression",)
_OPERATOR = ("an operator",)
_QUERY = ("a query",)
# Rules by what they describe; one that is empty is known by few, and says nothing of a mistake.
RULE_WORDS: dict[str, tuple[str, ...]] = {
    "query": _QUERY,
    "plain_query": _QUERY,
    "term": _QUERY,
    "cte": ("a name with AS and a query in parentheses",),
    "items": ("a column", "an expression", "*"),
    "item": ("a column", "an expression", "*"),
    "source": ("a table name", "a subquery in parentheses", "a file in quotes"),
    "table": ("a table name", "a subquery in parentheses", "a file in quotes"),
    "inside": ("a query", "a table name"),
    "exprs": _EXPRESSION,
    "expr": _EXPRESSION,
    "logical": _EXPRESSION,
    "compared": _EXPRESSION,
    **dict.fromkeys(("matched", "operated", "unary", "signed"), _EXPRESSION),
    "atom": _EXPRESSION,
    "argument": ("an argument",),
    "cell": _EXPRESSION,
    "keys": _EXPRESSION,
    "key": _EXPRESSION,
    "sort_key": _EXPRESSION,
    "paren": ("an expression in parentheses",),
    "row": ("values in parentheses",),
    "type": ("a type",),
    "dotted": ("a name",),
    "aliases": ("names of columns in parentheses",),
    "columns": ("names of columns in parentheses",),
    "column": ("a column with its type",),
    "window": ("a window in parentheses",),
    "limiting": ("UNBOUNDED PRECEDING", "CURRENT ROW", "a number with PRECEDING or FOLLOWING"),
    "arguments": ("arguments in parentheses",),
    **dict.fromkeys(
        ("sign", "compare", "distinct", "tested", "behind", "among", "matching"), _OPERATOR
    ),
    "set": ("UNION",),
    "join": ("JOIN",),
    "label": ("an alias",),
    "table_name": ("an alias",),
    "direction": ("ASC", "DESC"),
    "bound": (),
    "change": (),
    "prefix": (),
    "quantity": (),
    "qualify": (),
    "sample": (),
    "sampled": (),
    "suffix": (),
    "unless": (),
    "windows": (),
}
_KEYS = {
    END: "the end of the statement",
    NUMBER: "a number",
    STRING: "a text in single quotes",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "partition": "PARTITION BY",
}
# What is mostly forgotten comes first, and what could stand nearly everywhere last.
_FIRST = (")", "]", "END", "THEN", "a table name", "a subquery in parentheses", "a column", "an expression", "FROM", ",", "AND", "OR", "WHERE", "JOIN")  # fmt: skip
_LAST = ("an operator", "an alias", "the end of the statement")
_RARE = frozenset(["tablesample", "escape", "with", "ignore", "respect", "at", "collate", "isnull", "notnull", "nulls", "lateral", "?", "$", "%", "percent", "->", ":=", "=>", "::"])  # fmt: skip
# What may follow each name is no news.
_TACIT = frozenset(["called", "dotted", "type"])


def sentence(wanted: Sequence[ExpectedPart], rules: GrammarRules) -> str:
    """Return what could have stood at a place, the most useful first, or nothing where too little is known."""
    needed: dict[str, None] = {}
    others: dict[str, None] = {}
    for each in wanted:
        if not each.needed and each.within in _TACIT:
            continue
        (needed if each.needed else others).update(dict.fromkeys(_words(each, rules)))
    if "an expression" in needed:  # which begins in many ways
        others = {}
        for word in ("NOT", "ANY", "SOME", "ALL"):
            needed.pop(word, None)
    ends = needed.pop(_KEYS[END], _KEYS) is None
    most = MOST_OTHERS if needed else MOST_SHOWN
    found = _ranked(needed)[:MOST_SHOWN]
    found += _ranked({word: None for word in others if word not in needed})[:most]
    if ends and not needed:
        found.append(_KEYS[END])
    return " or ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))


def _ranked(words: dict[str, None]) -> list[str]:
    ranks = {word: rank for rank, word in enumerate(_FIRST)} | dict.fromkeys(_LAST, 1000)
    return sorted(
        (_shown(word) for word in words), key=lambda word: ranks.get(word.strip('"'), 500)
    )


def _shown(word: str) -> str:
    return word if word == "*" or any(c.isalpha() for c in word) else f'"{word}"'


def _words(wanted: ExpectedPart, rules: GrammarRules) -> Iterator[str]:
    """Yield the words of the outermost rule that would begin there, or of the part itself."""
    for rule in wanted.rules:
        if rule in RULE_WORDS:
            yield from RULE_WORDS[rule]
            return
    yield from _of_part(wanted.part, rules)


def _of_part(part: GrammarPart, rules: GrammarRules) -> Iterator[str]:
    match part.kind:
        case "keys":
            yield from _of_keys(part)
        case "rule" if part.rule in RULE_WORDS:
            yield from RULE_WORDS[part.rule]
        case "rule":
            yield from _of_part(rules.rules[part.rule], rules)
        case "row":
            for each in part.parts:
                yield from _of_part(each, rules)
                if not rules.first(each)[1]:
                    return
        case _:
            for each in part.parts:
                yield from _of_part(each, rules)


def _of_keys(part: GrammarPart) -> Iterator[str]:
    if QUOTED in part.keys:
        yield "a name"
    elif part.keys == {STRING}:
        yield _KEYS[STRING]
    else:
        for key in sorted(part.keys - _RARE):
            yield _KEYS.get(key, key.upper())
