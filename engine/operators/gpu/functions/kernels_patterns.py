"""LIKE, by a kernel of our own or the simplest search that its pattern allows, and regular expressions that have an automaton."""

from __future__ import annotations

import re
from collections.abc import Callable

import pylibcudf as plc

from ....codegen.compile.compiler import NotCompiled
from ....codegen.compile.kernel_files import warn_without
from ....codegen.regex.automata import Automaton, matcher
from ....codegen.regex.replacements import Replacement, extracting, replacing
from ....errors import ExecutionError
from ....plan.expr import Call, Literal
from ....plan.patterns import (
    Literals,
    Part,
    anywhere,
    literals,
    pattern_parts,
    quoted,
    with_options,
)
from ... import text_limits
from ..columns import BOOL, TEXT, constant, null_column, scalar, select, sequence
from ..table import count_true, device_type
from . import regular_expressions
from .kernels_like import matches
from .letters import in_case, letters
from .values import Constant, RowScope, Value, as_column, binary, operand, settled

Op = plc.binaryop.BinaryOperator
_ESCAPE = "\\"
# From so many rows on, strings are first searched for the longest part of a pattern; the pattern itself is then tried on the
# strings that have it, unless these are more than one in a few.
NEEDLE_ROWS = 100_000


def like(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _like(call, scope, args[0], fold=False)


def ilike(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _like(call, scope, args[0], fold=True)


def _like(call: Call, scope: RowScope, text: Value, fold: bool) -> plc.Column:
    pattern, escape = text_argument(call, 1), text_argument(call, 2, "")
    if pattern is None or escape is None:
        return constant(None, BOOL, scope.rows)
    column = as_column(text, scope.rows)
    if fold:
        column, pattern = in_case(column, upper=False), pattern.translate(letters(upper=False))
    parts = pattern_parts(pattern, escape)
    known = literals(parts)
    found = None if known is None else matches(column, known)
    return _by_libcudf(column, parts) if found is None else found


def _by_libcudf(column: plc.Column, parts: list[Part]) -> plc.Column:
    literal = [value for kind, value in parts if kind == "text"]
    find = plc.strings.find
    match [kind for kind, _ in parts]:
        case []:
            return binary(column, Constant("", TEXT), Op.EQUAL, BOOL)
        case ["text"]:
            return binary(column, Constant(literal[0], TEXT), Op.EQUAL, BOOL)
        case ["text", "run"]:
            return find.starts_with(column, operand(Constant(literal[0], TEXT)))
        case ["run", "text"]:
            return find.ends_with(column, operand(Constant(literal[0], TEXT)))
        case ["run", "text", "run"]:
            return find.contains(column, operand(Constant(literal[0], TEXT)))
    return _searched(column, _written(parts), max(literal, key=len, default=""))


def _searched(column: plc.Column, pattern: str, needle: str) -> plc.Column:
    """LIKE with a pattern that contains `needle`: few long strings have that, and it is found faster than a pattern."""
    like_ = plc.strings.contains.like
    if not needle or column.size() < NEEDLE_ROWS:
        return like_(column, pattern, _ESCAPE)
    possible = _contains(column, Constant(needle, TEXT))
    if count_true(possible) * text_limits.NEEDLE_SHARE > column.size():
        return like_(column, pattern, _ESCAPE)
    table = plc.Table([sequence(column.size()), column])
    rows, strings = plc.stream_compaction.apply_retention_mask(table, possible).columns()
    found = plc.Table([like_(strings, pattern, _ESCAPE)])
    return plc.copying.scatter(found, rows, plc.Table([possible])).columns()[0]


def _written(parts: list[Part]) -> str:
    """The pattern anew, with backslash as its escape character."""
    written = {"run": "%", "one": "_"}
    return "".join(
        re.sub(r"[%_\\]", lambda m: _ESCAPE + m[0], value) if kind == "text" else written[kind]
        for kind, value in parts
    )


def contains(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _contains(as_column(args[0], scope.rows), args[1])


def _contains(column: plc.Column, needle: Value) -> plc.Column:
    found = _matches(column, needle, anywhere)
    return plc.strings.find.contains(column, operand(needle)) if found is None else found


def starts_with(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    found = _matches(column, args[1], lambda text: Literals(text.encode(), (), b""))
    return plc.strings.find.starts_with(column, operand(args[1])) if found is None else found


def ends_with(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    column = as_column(args[0], scope.rows)
    found = _matches(column, args[1], lambda text: Literals(b"", (), text.encode()))
    return plc.strings.find.ends_with(column, operand(args[1])) if found is None else found


def _matches(
    column: plc.Column, text: Value, pattern: Callable[[str], Literals]
) -> plc.Column | None:
    """Answer by a kernel of our own, for a text that is the same in all rows."""
    return matches(column, pattern(text.value)) if isinstance(text, Constant) else None


def regexp_matches(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _walked(call, scope, args[0], _matcher(call))


def regexp_full_match(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    return _walked(call, scope, args[0], _full_matcher(call))


def regexp_replace(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """The first match, or with the option g all of them."""
    return _walked(call, scope, args[0], _replacement(call))


def regexp_extract(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """A group of the first match, 0 for all of it; '' where nothing matches."""
    return _walked(call, scope, args[0], _extraction(call))


def _walked(
    call: Call, scope: RowScope, text: Value, made: Automaton | Replacement | None
) -> plc.Column:
    """Have a kernel walk the automaton of a call; where it cannot be compiled, the host computes all values."""
    assert made is not None
    column = as_column(text, scope.rows)
    try:
        if isinstance(made, Automaton):
            return regular_expressions.matches(column, made)
        return regular_expressions.replaced(call.function, column, made)
    except NotCompiled as error:
        warn_without(call.function, error)
    nothing = null_column(column.size(), device_type(call.type))
    return settled(call, scope, column, nothing, constant(False, BOOL, column.size()))


def _matcher(call: Call) -> Automaton | None:
    return matcher(with_options(_pattern(call), _text(call, 2)))


def _full_matcher(call: Call) -> Automaton | None:
    pattern, options = _pattern(call), _text(call, 2)
    if "l" in options:
        pattern, options = quoted(pattern), options.replace("l", "")
    return matcher(with_options(rf"\A(?:{pattern})\z", options))


def _replacement(call: Call) -> Replacement | None:
    options = _text(call, 3)
    return replacing(with_options(_pattern(call), options), _text(call, 2), "g" in options)


def _extraction(call: Call) -> Replacement | None:
    return extracting(with_options(_pattern(call), _text(call, 3)), _group(call))


def _pattern(call: Call) -> str:
    return _text(call, 1)


def _text(call: Call, place: int) -> str:
    return text_argument(call, place) or ""


def filled(parts: plc.Column, column: plc.Column) -> plc.Column:
    """Return parts of strings, '' for one that is not there and NULL for NULL alone."""
    if not parts.null_count():
        return parts
    found = plc.replace.replace_nulls(parts, scalar("", TEXT))
    if not column.null_count():
        return found
    return select(plc.unary.is_valid(column), found, scalar(None, TEXT))


def _group(call: Call) -> int:
    if len(call.args) < 3:
        return 0
    literal = call.args[2]
    assert isinstance(literal, Literal)
    return int(str(literal.value or 0))


def text_argument(call: Call, place: int, default: str = "") -> str | None:
    """Return a literal text argument, None for NULL."""
    if place >= len(call.args):
        return default
    argument = call.args[place]
    assert isinstance(argument, Literal)
    return None if argument.value is None else str(argument.value)


def literal_refusal(call: Call) -> str | None:
    """All arguments but the first have to be constants."""
    if all(isinstance(a, Literal) for a in call.args[1:]):
        return None
    return f"{call.function}() with a column as its pattern or count"


def _regex_refusal(
    made: Callable[[Call], Automaton | Replacement | None],
) -> Callable[[Call], str | None]:
    """Return what says why a call has no automaton, if it has none."""

    def refused(call: Call) -> str | None:
        reason = literal_refusal(call)
        if reason is not None:
            return reason
        if any(isinstance(a, Literal) and a.value is None for a in call.args[1:]):
            return f"{call.function}() with NULL as its pattern or option"
        try:
            found = made(call)
        except ExecutionError:  # an option that there is none of, which the CPU says
            found = None
        if found is None:
            return f"{call.function}() with the pattern '{_pattern(call)}'"
        return None

    return refused


def _like_refusal(call: Call) -> str | None:
    reason = literal_refusal(call)
    if reason is not None or call.function == "like":
        return reason
    pattern = text_argument(call, 1)
    return None if pattern is None or pattern.isascii() else "ILIKE with letters beyond ASCII"


KERNELS = {
    "like": like,
    "ilike": ilike,
    "contains": contains,
    "starts_with": starts_with,
    "ends_with": ends_with,
    "regexp_matches": regexp_matches,
    "regexp_full_match": regexp_full_match,
    "regexp_replace": regexp_replace,
    "regexp_extract": regexp_extract,
}
REFUSALS = {
    "like": _like_refusal,
    "ilike": _like_refusal,
    "regexp_matches": _regex_refusal(_matcher),
    "regexp_full_match": _regex_refusal(_full_matcher),
    "regexp_replace": _regex_refusal(_replacement),
    "regexp_extract": _regex_refusal(_extraction),
}
