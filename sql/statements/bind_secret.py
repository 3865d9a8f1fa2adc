"""CREATE SECRET and DROP SECRET: what is read of them is in no message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType

from fuseline.errors import InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan.files.remote_secret import SCOPES, SECRET_TYPES, RemoteSecret
from fuseline.plan.statements import CreateSecret, DropSecret, Statement

from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords
from ..parsing.tokens import tokenize
from .assignments import what_if_there

_HEAD = re.compile(
    r"\s*create\s+(?P<replace>or\s+replace\s+)?(?:(?P<kind>temp|temporary|persistent)\s+)?secret\b"
    r"(?P<unless>\s+if\s+not\s+exists\b)?",
    re.IGNORECASE,
)
_FORM = "Syntax error: the statement is written CREATE SECRET name (TYPE s3, KEY_ID '...', SECRET '...')."


def create_secret(piece: Piece, _: Scope) -> Statement:
    head = _HEAD.match(piece.sql)
    if head is None:
        raise ParseError(_FORM)
    _check_kept(head["kind"])
    tokens = [t for t in tokenize(piece) if t.start >= head.end()]
    name = ""
    if tokens and tokens[0].token_type is not TokenType.L_PAREN:
        name = tokens.pop(0).text
    given = dict(_options(tokens))
    kind = str(given.pop("type", "")).lower()
    if kind not in SECRET_TYPES:
        raise InvalidQuery(f"CREATE SECRET takes a TYPE: one of {', '.join(SECRET_TYPES)}.")
    table = SECRET_TYPES[kind]
    options = dict(table.read(key, value, tells=False) for key, value in given.items())
    provider = str(options.pop("provider", "config"))
    scope = options.pop("scope", SCOPES[kind])
    assert isinstance(scope, tuple)
    if ("key_id" in options) != ("secret" in options):
        raise InvalidQuery("A secret has both KEY_ID and SECRET, or neither.")
    made = RemoteSecret((name or f"__default_{kind}").lower(), kind, provider, scope, options)
    if_there = what_if_there(head["replace"], head["unless"], Span(piece.start, piece.end))
    return CreateSecret(made, if_there)


def drop_secret(piece: Piece, _: Scope) -> Statement:
    words = StatementWords(piece, "DROP SECRET name")
    words.expect("DROP")
    kept = next((k for k in ("TEMP", "TEMPORARY", "PERSISTENT") if words.accepts(k)), None)
    words.expect("SECRET")
    named = words.dropped()
    if len(named.parts) > 1 or named.how:
        raise words.error()
    _check_kept(kept)
    return DropSecret(named.parts[0].lower(), named.exists)


def _check_kept(kind: str | None) -> None:
    if (kind or "").lower() == "persistent":
        raise Unsupported(
            "Secrets are not kept on a disk: write CREATE SECRET in each session, or use the environment."
        )


def _options(tokens: Sequence[Token]) -> Iterator[tuple[str, object]]:
    """Yield names and values of what stands in parentheses."""
    inside, depth = [], 0
    if len(tokens) < 3 or tokens[0].text != "(" or tokens[-1].text != ")":
        raise ParseError(_FORM)
    part: list[Token] = []
    for token in tokens[1:-1]:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth == 0 and token.text == "," and token.token_type is TokenType.COMMA:
            inside.append(part)
            part = []
        else:
            part.append(token)
    inside.append(part)
    seen: set[str] = set()
    for name, *value in filter(None, inside):
        if not value or name.text.lower() in seen:
            raise ParseError(f"{_FORM} Each option has a value, and stands there once.")
        seen.add(name.text.lower())
        yield name.text.lower(), _value(value)


def _value(tokens: Sequence[Token]) -> object:
    """Return a text, a truth value, a list of texts or a map of them."""
    words = [token.text for token in tokens]
    if words[0].lower() == "map" and words[1:2] == ["{"] and words[-1] == "}":
        return _pairs(tokens[2:-1])
    if words[0] in ("(", "[") and words[-1] in (")", "]"):
        return [_single(token) for token in tokens[1:-1] if token.text != ","]
    if len(tokens) > 1:
        raise ParseError(f"{_FORM} Values are texts in quotes.")
    return _single(tokens[0])


def _single(token: Token) -> object:
    if token.token_type is TokenType.STRING:
        return token.text
    if token.text.lower() in ("true", "false"):
        return token.text.lower() == "true"
    if not re.fullmatch(r"\w+", token.text):
        raise ParseError(f"{_FORM} Values are texts in quotes.")
    return token.text


def _pairs(tokens: Sequence[Token]) -> dict[str, str]:
    texts = [t.text for t in tokens if t.token_type is TokenType.STRING]
    signs = [t.text for t in tokens if t.token_type is not TokenType.STRING]
    expected = [sign for _ in range(len(texts) // 2) for sign in (":", ",")][:-1]
    if not texts or len(texts) % 2 or signs != expected:
        raise ParseError(f"{_FORM} A map is written MAP {{'name': 'value'}}.")
    return dict(zip(texts[::2], texts[1::2], strict=True))
