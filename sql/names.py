"""The name of a result column without an alias: the expression as DuckDB writes it.

DuckDB prints its own tree: every operator in parentheses, function names as written, quoted where the name is a keyword.
sqlglot renames functions and reorders arguments, so calls are read from the query text instead.  What is not known here
is shown as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from fuseline.errors import Span, balanced

from .cast_types import written_type
from .spans import span_of

# Words of DuckDB's grammar that are likely names of columns or functions; it quotes them.
_QUOTED = frozenset((
    "action", "cache", "century", "columns", "comment", "content", "cost", "current", "cycle",
    "data", "database", "day", "days", "decade", "domain", "event", "external", "family",
    "filter", "first", "force", "generated", "glob", "groups", "hour", "hours", "if", "index",
    "input", "key", "label", "language", "large", "last", "left", "level", "list", "location",
    "map", "mapping", "match", "method", "microsecond", "millennium", "millisecond", "minute",
    "minutes", "mode", "month", "months", "name", "names", "new", "next", "nullif", "object",
    "option", "overlay", "owner", "partition", "password", "path", "percent", "policy",
    "position", "prior", "program", "quarter", "range", "ref", "reference", "release",
    "replace", "right", "role", "row", "rows", "rule", "sample", "schema", "second",
    "seconds", "sequence", "server", "session", "set", "share", "simple", "skip", "source",
    "start", "statement", "statistics", "storage", "struct", "substring", "system", "tables",
    "target", "temp", "template", "text", "ties", "transaction", "trigger", "trim", "type",
    "unknown", "unnest", "unpack", "user", "valid", "value", "values", "variable", "version",
    "view", "week", "weeks", "work", "year", "years", "zone",
))  # fmt: skip
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.Like: "~~",
    exp.ILike: "~~*",
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CONSTANT = re.compile(r"\b(?:null|true|false)\b", re.IGNORECASE)
_INTERVAL = re.compile(r"\binterval\s*('[^']*'|\d+)\s*([a-z]+)?", re.IGNORECASE)
_QUERY = re.compile(r"\((?=\s*(?:select|with|from|values)\b)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[(),]|[^\s'\"(),]+|\s+")


def output_name(node: exp.Expr, text: str) -> str:
    """Return DuckDB's name for the expression `node` of the query `text`."""
    writer = _WRITERS.get(type(node))
    if writer is not None:
        return writer(node, text)
    if isinstance(node, exp.Escape):
        return _escaped(node, text)
    if isinstance(node.args.get("expression"), exp.Any | exp.All):
        return _quantified(node, text)
    symbol = _symbol(node, text)
    if symbol is not None:
        return _infix(node, symbol, text)
    pattern = _pattern_function(node, text)
    if pattern is not None:
        return f"{pattern}({output_name(node.this, text)}, {output_name(node.expression, text)})"
    if isinstance(node, exp.Func):
        return _call(node, text) or _source(node, text) or node.sql_name().lower()
    return _source(node, text) or node.sql("duckdb")


def _infix(node: exp.Expr, symbol: str, text: str) -> str:
    return f"({output_name(node.this, text)} {symbol} {output_name(node.expression, text)})"


def _column(node: exp.Expr, text: str) -> str:
    assert isinstance(node, exp.Column)
    return ".".join(_identifier(part) for part in node.parts)


def _literal(node: exp.Expr, text: str) -> str:
    if node.args.get("is_string"):
        return "'" + node.name.replace("'", "''") + "'"
    return _source(node, text) or node.name.removeprefix("0")  # sqlglot writes `.5` as 0.5


def _logic(node: exp.Expr, text: str) -> str:
    word = " AND " if isinstance(node, exp.And) else " OR "
    return "(" + word.join(output_name(n, text) for n in _chain(node, type(node))) + ")"


def _negative(node: exp.Expr, text: str) -> str:
    operand = output_name(node.this, text)
    return f"-{operand}" if isinstance(node.this, exp.Literal) else f"(-({operand}))"


def _is(node: exp.Expr, text: str) -> str:
    if isinstance(node.expression, exp.Null):
        return f"({output_name(node.this, text)} IS NULL)"
    operand = f"CAST({output_name(node.this, text)} AS BOOLEAN)"
    return f"({operand} IS NOT DISTINCT FROM {output_name(node.expression, text)})"


def _between_bounds(node: exp.Expr, text: str) -> str:
    operand, low, high = (output_name(node.args[key], text) for key in ("this", "low", "high"))
    return f"({operand} BETWEEN {low} AND {high})"


def _cast(node: exp.Expr, text: str) -> str:
    function = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    return f"{function}({output_name(node.this, text)} AS {written_type(node, text)})"


def _extract(node: exp.Expr, text: str) -> str:
    return f"date_part('{node.this.name}', {output_name(node.expression, text)})"


def _filter(node: exp.Expr, text: str) -> str:
    condition = output_name(node.expression.this, text)
    return f"{output_name(node.this, text)} FILTER (WHERE {condition})"


def _identifier(node: exp.Expr) -> str:
    name = node.name
    plain = _WORD.fullmatch(name) is not None and name.lower() not in _QUOTED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _source(node: exp.Expr, text: str) -> str:
    span = span_of(node)
    if span is None:
        return ""
    span = balanced(text, span)
    return text[span.start : span.end]


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    for side in (node.this, node.expression):
        if isinstance(side, kind):
            yield from _chain(side, kind)
        else:
            yield side


def _negation(node: exp.Expr, text: str) -> str:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({output_name(inner.this, text)} IS NOT NULL)"
    return f"(NOT {output_name(inner, text)})"


def _escaped(node: exp.Expr, text: str) -> str:
    like = node.this
    function = "ilike_escape" if isinstance(like, exp.ILike) else "like_escape"
    operands = (like.this, like.expression, node.expression)
    call = f"{function}({', '.join(output_name(o, text) for o in operands)})"
    return f"(NOT {call})" if like.args.get("negate") else call


def _membership(node: exp.Expr, text: str) -> str:
    left = output_name(node.this, text)
    query = node.args.get("query")
    if query is not None:
        return f"({left} = ANY{_query(query, text)})"
    values = ", ".join(output_name(value, text) for value in node.expressions)
    return f"({left} IN ({values}))"


def _case(node: exp.Expr, text: str) -> str:
    operand = node.this
    parts = ["CASE "]
    for branch in node.args["ifs"]:
        condition = output_name(branch.this, text)
        if operand is not None:
            condition = f"({output_name(operand, text)} = {condition})"
        parts.append(f"WHEN ({condition}) THEN ({output_name(branch.args['true'], text)})")
    default = node.args.get("default")
    parts.append(f"ELSE {'NULL' if default is None else output_name(default, text)} END")
    return " ".join(parts)


def _interval(node: exp.Expr, text: str) -> str:
    """Return the function that an interval stands for; sqlglot rewrites its parts, so they are read from the text."""
    parent = node.parent
    start = parent.meta.get("first", 0) if parent is not None else 0
    if isinstance(parent, exp.Binary) and parent.this is node:  # `start` is the right operand's
        found = next(reversed([*_INTERVAL.finditer(text, 0, start)]), None)
    else:
        found = _INTERVAL.search(text, start)
    if found is None:
        return _source(node, text) or "interval"
    amount, unit = found.groups()
    if unit is None:
        return f"CAST({amount} AS INTERVAL)"
    return f"to_{unit.lower().rstrip('s')}s(CAST(trunc(CAST({amount} AS DOUBLE)) AS INTEGER))"


def _subquery(node: exp.Expr, text: str) -> str:
    word = "EXISTS" if isinstance(node, exp.Exists) else ""
    return word + _query(node, text)


def _query(node: exp.Expr, text: str) -> str:
    """Return a subquery in parentheses, as written."""
    span = span_of(node)
    if span is None:
        return "(SELECT)"
    openings = [m.start() for m in _QUERY.finditer(text, 0, span.start)]
    for start in reversed(openings):
        around = balanced(text, Span(start, span.end))
        if around.start == start:
            inside = text[start + 1 : around.end - 1].strip()
            return "(" + re.sub(r"^select\b", "SELECT", inside, flags=re.IGNORECASE) + ")"
    return _source(node, text)


def _quantified(node: exp.Expr, text: str) -> str:
    """Return a comparison with ANY or ALL; DuckDB makes NOT ANY of the opposite of ALL."""
    symbol = _OPERATORS[type(node)]
    operand, query = output_name(node.this, text), _query(node.expression, text)
    if isinstance(node.expression, exp.Any):
        return f"({operand} {symbol} ANY{query})"
    return f"(NOT ({operand} {_OPPOSITE[symbol]} ANY{query}))"


def _symbol(node: exp.Expr, text: str) -> str | None:
    if isinstance(node, exp.Mod | exp.Pow):
        if "start" in node.meta:  # mod(a, b), pow(a, b)
            return None
        between = _between(node.this, node.expression, text)
        return next((s for s in ("**", "%", "^") if s in between), None)
    symbol = _OPERATORS.get(type(node))
    return f"!{symbol}" if symbol is not None and node.args.get("negate") else symbol


def _pattern_function(node: exp.Expr, text: str) -> str | None:
    """Return the function that `~` or SIMILAR TO stands for."""
    if isinstance(node, exp.SimilarTo):
        return "regexp_full_match"
    written = isinstance(node, exp.RegexpLike) and "~" in _between(node.this, node.expression, text)
    return "regexp_matches" if written and "start" not in node.meta else None


def _between(left: exp.Expr, right: exp.Expr, text: str) -> str:
    before, after = span_of(left), span_of(right)
    return "" if before is None or after is None else text[before.end : after.start]


def _call(node: exp.Func, text: str) -> str | None:
    """Return `name(arguments)`, the arguments read from the text between the parentheses."""
    span = span_of(node)
    if span is None:
        return None
    found = _WORD.match(text, span.start)
    opening = None if found is None else re.compile(r"\s*\(").match(text, found.end())
    if found is None or opening is None or "start" not in node.meta:
        # sqlglot keeps no place of this name: it stands before the first argument.
        found = re.search(
            r"([A-Za-z_]\w*)\s*\(\s*(?:distinct\s+)?(?:(?:null|true|false)\s*,\s*)*$",
            text[: span.start],
            re.IGNORECASE,
        )
        if found is None:
            return None
        name, start = found.group(1).lower(), text.index("(", found.start()) + 1
    else:
        name, start = found.group().lower(), opening.end()
    if name == "count" and re.match(r"\s*\*?\s*\)", text[start:]):
        return "count_star()"
    arguments = ", ".join(_arguments(node, text, _pieces(text, start)))
    shown = name.upper() if name in ("coalesce", "grouping") else name
    return f'"{shown}"({arguments})' if shown in _QUOTED else f"{shown}({arguments})"


def _pieces(text: str, start: int) -> list[Span]:
    """Return the places of the arguments after an opening parenthesis."""
    depth, begin = 0, start
    pieces: list[Span] = []
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        if depth == 0 and mark in (",", ")"):
            pieces.append(Span(begin, token.start()))
            begin = token.end()
            if mark == ")":
                break
        depth += {"(": 1, ")": -1}.get(mark, 0)
    return [p for p in pieces if text[p.start : p.end].strip()]


def _arguments(node: exp.Func, text: str, pieces: Sequence[Span]) -> Iterator[str]:
    """Yield the arguments as DuckDB writes them; NULL, TRUE and FALSE keep no place, but their order."""
    children = list(node.iter_expressions())
    placed = [c for c in children if span_of(c) is not None]
    constants = [c for c in children if span_of(c) is None and c.find(exp.Null, exp.Boolean)]
    free = [p for p in pieces if not any(_within(c, p) for c in placed)]
    free = [p for p in free if _CONSTANT.search(text, p.start, p.end)]
    known = dict(zip(free, constants, strict=True)) if len(free) == len(constants) else {}
    for piece in pieces:
        constant = known.get(piece)
        yield _argument(text, piece, placed) if constant is None else output_name(constant, text)


def _argument(text: str, piece: Span, children: Sequence[exp.Expr]) -> str:
    """Return one argument, with its DISTINCT and ORDER BY."""
    written = text[piece.start : piece.end].strip()
    prefix = "DISTINCT " if re.match(r"distinct\b", written, re.IGNORECASE) else ""
    flat: list[exp.Expr] = []
    for child in children:
        flat += child.expressions if isinstance(child, exp.Distinct) else [child]
    found = [c for c in flat if _within(c, piece)]
    if len(found) != 1 or isinstance(found[0], exp.Order):
        return re.sub(r"\border\s+by\b", "ORDER BY", written, flags=re.IGNORECASE)
    return prefix + output_name(found[0], text)


def _within(node: exp.Expr, piece: Span) -> bool:
    span = span_of(node)
    return span is not None and piece.start <= span.start and span.end <= piece.end


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr, str], str]] = {
    exp.Paren: lambda node, text: output_name(node.this, text),
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, text: "true" if node.this else "false",
    exp.Null: lambda node, text: "NULL",
    exp.Placeholder: lambda node, text: f"${node.name}",
    exp.And: _logic,
    exp.Or: _logic,
    exp.Neg: _negative,
    exp.Not: _negation,
    exp.Is: _is,
    exp.Between: _between_bounds,
    exp.In: _membership,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.Filter: _filter,
    exp.Subquery: _subquery,
    exp.Exists: _subquery,
}
