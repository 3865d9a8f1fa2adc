"""SQL text to sqlglot trees whose nodes know their place in the text."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import re
from collections.abc import Sequence
from contextvars import ContextVar

import sqlglot.errors
from sqlglot import Token, TokenType, exp

from fuseline.errors import ParseError, Span

from ..grammar.recognize import complaint, unknown_sign, unrecognized
from .dropped import dropped
from .parser import Parser
from .pieces import Piece
from .spans import span_of
from .tokens import DUCKDB, for_parser, tokenize
from .unread import Misread, Tree, tree_of

_EMPTY_NEXT = re.compile(r"[^,']*,\s*''(?!')")  # the argument after this one is an empty string
_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE)
_MOST_ARGUMENTS = re.compile(r"supported arguments \((\d+)\)|Expected at most (\d+) arguments")
_PARSING: ContextVar[bool] = ContextVar("parsing", default=False)
# What sqlglot warns of while this file parses, such as syntax that it keeps as text, is refused with an error of ours.
logging.getLogger("sqlglot").addFilter(lambda _: not _PARSING.get())


def parse(piece: Piece) -> Tree:
    """Return the tree of one statement, with the place of every node; raises `ParseError`."""
    written = tokenize(piece)
    misread = _misread(written, piece)
    tokens = for_parser(written, piece)
    parser = Parser(dialect=DUCKDB)
    quiet = _PARSING.set(True)
    try:
        trees = parser.parse(tokens, piece.sql)
    except sqlglot.errors.ParseError as error:
        wrong = _parse_error(error, tokens, piece) if misread is None else misread.error
        raise wrong from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # sqlglot builds some calls without a look at their arguments
        if misread is not None:
            raise misread.error from None
        message = "Syntax error: a part of this statement, such as a call, lacks something."
        raise ParseError(message, Span(piece.start, piece.end)) from error
    finally:
        _PARSING.reset(quiet)
    root = trees[0] if trees else None
    if root is None:
        raise ParseError("There is no statement here.", Span(piece.start, piece.end))
    tree = tree_of(root)
    _place(tree.nodes, piece.start, tokens)
    if tree.chain is not None:
        message = "Comparisons are not chained: combine them with AND, or put one in parentheses."
        raise ParseError(message, span_of(tree.chain))
    _refuse_empty_group(tree.nodes, piece)
    _mend_empty_formats(tree.nodes, piece.text)
    fault = dropped(tokens, tree.nodes, piece)
    return dataclasses.replace(tree, fault=fault, misread=misread)


def _misread(tokens: Sequence[Token], piece: Piece) -> Misread | None:
    """Return the error for the first token that sqlglot takes and DuckDB's grammar does not, if there is one."""
    if unrecognized(tokens) is None:
        sign = unknown_sign(tokens)
        if sign is None:
            return None
        place = Span(piece.start + sign[1], piece.start + sign[1] + len(sign[0]))
        message = f'There is no operator "{sign[0]}": signs without a blank between them are one operator.'
        return Misread(ParseError(message, place), certain=True)
    found = complaint(tokens)
    at_end = found.place == len(tokens)
    token = tokens[min(found.place, len(tokens) - 1)]
    place = Span(piece.start + token.start, piece.start + token.end + 1)
    where = f'at or near "{piece.text[place.start : place.end]}"'
    expected = f": expected {found.expected}" if found.expected else ""
    message = f"Syntax error {'at the end of the statement' if at_end else where}{expected}."
    error = ParseError(" ".join(filter(None, [message, found.mistake])), place)
    return Misread(error, found.certain)


def _refuse_empty_group(nodes: Sequence[exp.Expr], piece: Piece) -> None:
    for node in nodes:
        if type(node) is exp.Group and not any(node.args.values()):
            place = Span(piece.start, piece.end)
            raise ParseError("Syntax error: an operand is missing after GROUP BY.", place)


def _mend_empty_formats(nodes: Sequence[exp.Expr], text: str) -> None:
    """Give strftime and strptime the empty format, of which sqlglot makes 'None'."""
    for node in nodes:
        if type(node) not in (exp.TimeToStr, exp.StrToTime):
            continue
        layout, place = node.args["format"], span_of(node.this)
        if place is not None and layout.name == "None" and _EMPTY_NEXT.match(text, place.end):
            layout.set("this", "")


def _parse_error(error: sqlglot.errors.ParseError, tokens: list[Token], piece: Piece) -> ParseError:
    """Return the error of a text that DuckDB's grammar takes and sqlglot's parser does not."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    token = next((t for t in tokens if (t.line, t.col) == (line, column)), None)
    if token is None:
        return ParseError("This syntax is not supported.", Span(piece.start, piece.end))
    span = Span(piece.start + token.start, piece.start + token.end + 1)
    given = _wrong_arguments(str(details.get("description", "")), tokens[: tokens.index(token) + 1])
    if given is not None:
        name, said = given
        return ParseError(f"{name.text}() {said}.", Span(piece.start + name.start, span.end))
    shown = piece.text[span.start : span.end]
    return ParseError(f'The syntax at or near "{shown}" is not supported.', span)


def _wrong_arguments(description: str, tokens: Sequence[Token]) -> tuple[Token, str] | None:
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


def _parameter_places(tokens: list[Token]) -> dict[str, tuple[int, int]]:
    """Return where each parameter stands first, since sqlglot forgets it."""
    places: dict[str, tuple[int, int]] = {}
    for sign, name in itertools.pairwise(tokens):
        if sign.token_type in (TokenType.PARAMETER, TokenType.COLON):
            places.setdefault(name.text, (sign.start, name.end))
    return places


def _place(nodes: Sequence[exp.Expr], shift: int, tokens: list[Token]) -> None:
    """Give every node the places of its first and last token; sqlglot keeps them on names and literals alone."""
    if any(isinstance(node, exp.Placeholder) for node in nodes):
        parameters = _parameter_places(tokens)
        for node in nodes:
            if isinstance(node, exp.Placeholder) and node.name in parameters:
                node.meta["start"], node.meta["end"] = parameters[node.name]
    for node in reversed(nodes):  # children come before their parents
        meta = node.meta
        if "start" in meta:
            _extend(meta, meta["start"] + shift, meta["end"] + shift + 1)
        if node.parent is not None and "first" in meta:
            _extend(node.parent.meta, meta["first"], meta["last"])


def _extend(meta: dict[str, int], first: int, last: int) -> None:
    if "first" not in meta or first < meta["first"]:
        meta["first"] = first
    if "last" not in meta or last > meta["last"]:
        meta["last"] = last
