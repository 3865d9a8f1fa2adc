"""One statement of a script to what the connection carries out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal as OneOf

from sqlglot import exp

from fuseline.errors import Located, ParseError, Span, UnknownName, Unsupported, nearest
from fuseline.plan import statements as st
from fuseline.plan.changes.catalog_objects import rules_of
from fuseline.plan.changes.database_changes import Checkpoint
from fuseline.setting_values.of_duckdb import FIXED, SWITCHES, is_fixed
from fuseline.sql.binding.constants.known_values import known_value

from ..binding.relations.about_tables import SHOWN, bind_text, setting_shown, summarized
from ..binding.scope import Scope
from ..parsing.pieces import Piece, first_word, split, split_explain
from ..parsing.unread import use
from .bind_alter import alter
from .bind_changes import delete_rows, insert_rows, truncate, update_rows
from .bind_database import DATABASE_BINDERS, change_schema, schema_named
from .bind_explain import explained
from .bind_macro import create_macro, drop_macro
from .bind_merge import merge_rows
from .bind_secret import create_secret, drop_secret
from .bind_sequence import create_sequence, drop_sequence
from .bind_session_statement import (
    Binder,
    deallocate,
    execute,
    is_variable,
    prepare,
    reset_variable,
    set_variable,
)
from .bind_table_statement import comment, create, drop
from .bind_types import create_type, drop_type
from .bind_with_changes import Write, bind_with_changes, has_changes
from .copy_options import copy_statement

_PIVOTS = ("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER")
_QUERY_WORDS = ("SELECT", "FROM", "VALUES", "WITH", "TABLE", *_PIVOTS, "")
_OTHER_QUERIES = ("SUMMARIZE",)
_TRANSACTION = r"(?:\s+(?:transaction|work))?"
_OF_TABLE = r'(?:\s+(?!verbose\b|full\b)(?P<table>\w+|"[^"]+")(?:\s*\([^()]+\))?)?'
# What may follow the words of statements that do nothing.
_READS = r"(?:\s+read\s+(?:(?P<only>only)|write))?"
_TRANSACTIONS: dict[str, tuple[str, OneOf["begin", "commit", "roll back"]]] = {
    "BEGIN": (_TRANSACTION + _READS, "begin"),
    "START": (r"\s+transaction" + _READS, "begin"),
    "COMMIT": (_TRANSACTION, "commit"),
    "END": (_TRANSACTION, "commit"),
    "ROLLBACK": (_TRANSACTION, "roll back"),
    "ABORT": (_TRANSACTION, "roll back"),
}
_NO_OPERATION = {
    "ANALYZE": _OF_TABLE,
    "VACUUM": rf"(?:\s+analyze)?{_OF_TABLE}",
}
_REFUSED = {
    "GRANT": "there are no users",
    "REVOKE": "there are no users",
}
_HARMLESS_PRAGMAS = (
    "enable_progress_bar",
    "disable_progress_bar",
    "enable_print_progress_bar",
    "disable_print_progress_bar",
    "enable_profiling",
    "disable_profiling",
    "enable_object_cache",
    "disable_object_cache",
    "enable_verification",
    "disable_verification",
    "verify_parallelism",
    "disable_verify_parallelism",
    "verify_external",
)


def starts_query(piece: Piece) -> bool:
    """Whether a statement begins as a query does."""
    return first_word(piece) in (*_QUERY_WORDS, *_OTHER_QUERIES)


def bind_statement(piece: Piece, scope: Scope) -> st.Statement:
    """Return what one statement asks for; `scope` is empty."""
    word = first_word(piece)
    if word == "EXPLAIN":
        rest, analyze = split_explain(piece)
        place = Span(rest.start, rest.end)
        if not [*split(rest.sql)]:
            raise ParseError("EXPLAIN stands before a query, and there is none.", place)
        return explained(bind_statement(rest, scope), analyze, place)
    if word in _TRANSACTIONS:
        pattern, action = _TRANSACTIONS[word]
        return st.Transaction(action, bool(_behind(piece, word, pattern).groupdict().get("only")))
    if word in _NO_OPERATION:
        return _no_operation(piece, word, scope)
    if word in _REFUSED:
        raise Unsupported(f"{word} is not supported: {_REFUSED[word]}.", _word_span(piece, word))
    if word in _QUERY_WORDS:
        node = scope.session.parse(piece)
        bind = _WRITES.get(type(node), bind_result)
        if has_changes(node):
            return bind_with_changes(node, scope, bind, lambda n, s: _CHANGES[type(n)](n, s))
        return bind(node, scope)
    binder = _BINDERS.get(word)
    if binder is None:
        place = _word_span(piece, word)
        known = [*_BINDERS, *_QUERY_WORDS[:-1], "EXPLAIN"]
        raise ParseError(
            f'Syntax error at or near "{piece.text[place.start : place.end]}": a statement starts with a word like SELECT or CREATE.'
            f"{nearest(word, known)}",
            place,
        )
    return binder(piece, scope)


def _write(piece: Piece, scope: Scope) -> st.Statement:
    node = scope.session.parse(piece)
    return _WRITES[type(node)](node, scope)


def _no_operation(piece: Piece, word: str, scope: Scope) -> st.Statement:
    """Return a statement that does nothing, once all of it was read."""
    found = _behind(piece, word, _NO_OPERATION[word])
    table = found.groupdict().get("table")
    catalog = scope.session.catalog
    if table is not None and catalog.table(table.strip('"')) is None:
        rest = Span(_word_span(piece, word).end, piece.end)
        raise UnknownName(f"There is no table {table}.{nearest(table, catalog.names())}", rest)
    return st.NoOperation()


def _behind(piece: Piece, word: str, pattern: str) -> re.Match[str]:
    """Match what stands behind the first word of a statement; raises `ParseError` for anything else."""
    rest = Span(_word_span(piece, word).end, piece.end)
    found = re.fullmatch(pattern + r"\s*", piece.text[rest.start : rest.end], re.IGNORECASE)
    if found is None:
        raise ParseError(f"This is not supported behind {word}.", rest)
    return found


def _word_span(piece: Piece, word: str) -> Span:
    start = piece.start + piece.sql.upper().index(word)
    return Span(start, start + len(word))


def bind_result(node: exp.Expr, scope: Scope) -> st.Query:
    """Bind a query whose rows are the result."""
    return st.Query(scope.bind_query(node))


def _describe(piece: Piece, scope: Scope) -> st.Statement:
    if len(piece.sql.split()) == 1:
        return st.Query(bind_text("describe", SHOWN["all tables"], scope))
    scope = _describing(scope)
    node = scope.session.parse(piece)
    use(node)
    target = node.this
    if isinstance(target, exp.Table):
        return _describe_table(target, scope)
    return st.Describe(bind_result(target, scope))


def _describe_table(node: exp.Table, scope: Scope) -> st.Describe:
    whole = _whole_table(node, scope)
    located = scope.session.catalog.located([part.name for part in node.parts])
    return st.Describe(whole, rules_of(scope.session.catalog.table(located) if located else None))


def _summarize(piece: Piece, scope: Scope) -> st.Statement:
    node = scope.session.parse(piece)
    assert isinstance(node, exp.Summarize)
    return st.Query(summarized(node, scope))


def _describing(scope: Scope) -> Scope:
    return Scope(replace(scope.session, describes=True))


def _whole_table(node: exp.Table, scope: Scope) -> st.Query:
    return bind_result(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)), scope)


def _show(piece: Piece, scope: Scope) -> st.Statement:
    rest = piece.sql.split(maxsplit=1)[1:]
    what = " ".join(rest[0].split()) if rest else ""
    if what.lower() == "tables":
        return st.ShowTables()
    if what.lower() in ("", "all"):
        return st.Query(bind_text("show", SHOWN["all tables"], scope))
    within = re.fullmatch(r"tables\s+(?:from|in)\s+(\S+)", what, re.IGNORECASE)
    if within is not None:
        return _tables_in(within[1], piece, scope)
    if what.lower() in SHOWN:
        return st.Query(bind_text(what.lower(), SHOWN[what.lower()], scope))
    if re.fullmatch(r"[A-Za-z_]\w*|\"[^\"]+\"", what):
        start = piece.start + piece.sql.index(what)
        name = exp.to_identifier(what.strip('"'), quoted=True)
        name.meta.update(first=start, last=start + len(what))
        if scope.session.catalog.located([name.name]) is None:
            setting = setting_shown(name.name, scope)
            if setting is not None:
                return st.Query(setting)
        table = exp.Table(this=name)
        table.meta.update(name.meta)
        return _describe_table(table, _describing(scope))
    raise Unsupported(
        "SHOW takes TABLES, TABLES FROM schema, ALL TABLES, DATABASES, SCHEMAS, VARIABLES or the name of a table or setting.",
        Span(piece.start, piece.end),
    )


def _tables_in(name: str, piece: Piece, scope: Scope) -> st.Statement:
    """Return the names of tables and views in a schema or database."""
    parts = [part.strip('"') for part in name.split(".")]
    place = scope.session.catalog.place_of(parts)
    if place is None:
        start = piece.start + piece.sql.rindex(name)
        raise UnknownName(f'There is no schema "{name}".', Span(start, start + len(name)))
    database, schema = (part.replace("'", "''") for part in place)
    text = (
        "select table_name as name from information_schema.tables "
        f"where lower(table_catalog) = '{database}' and lower(table_schema) = '{schema}' order by name"
    )
    return st.Query(bind_text("show", text, scope))


def _call(piece: Piece, scope: Scope) -> st.Statement:
    """Bind CALL f(...): the rows of a table function."""
    if re.fullmatch(r"\s*call\s+[\w.]+\s*\(.*\)\s*", piece.sql, re.IGNORECASE | re.DOTALL) is None:
        message = "Syntax error: the statement is written CALL function(arguments)."
        raise ParseError(message, Span(piece.start, piece.end))
    place = _word_span(piece, "CALL")
    text = f"{piece.text[: place.start]}FROM{piece.text[place.end :]}"  # at the same places
    return bind_result(scope.session.parse(Piece(text, piece.start, piece.end)), scope)


_PRAGMAS = {
    "version": "from pragma_version()",
    "database_size": "from pragma_database_size()",
    "database_list": "from pragma_database_list",
    "show_databases": SHOWN["databases"],
    "show_tables_expanded": SHOWN["all tables"],
}


_ZONE = re.compile(r"\s*set\s+time\s+zone\s+(.*?)\s*$", re.IGNORECASE | re.DOTALL)
_SETTING = re.compile(
    r"\s*\w+\s+(?:(?:session|global)\s+)?(\w+)\s*(?:=|\bto\b)\s*(.*?)\s*$",
    re.IGNORECASE | re.DOTALL,
)


def _set(piece: Piece, scope: Scope) -> st.Statement:
    if is_variable(piece):
        return set_variable(piece, scope)
    if (zone := _ZONE.match(piece.sql)) is not None:
        if zone.group(1).lower() in ("local", "default"):
            return st.SetOption("timezone", None, reset=True)
        start, end = (piece.start + zone.start(1), piece.start + zone.end(1))
        return st.SetOption("timezone", _setting_value(Piece(piece.text, start, end), scope))
    found = _SETTING.match(piece.sql)
    if found is None or not found.group(2):
        raise ParseError(
            "SET takes a name and a value: SET threads = 4.", Span(piece.start, piece.end)
        )
    name = found.group(1).lower()
    written = Piece(piece.text, piece.start + found.start(2), piece.start + found.end(2))
    value = _setting_value(written, scope)
    with Located(Span(piece.start, piece.end)):
        if (name in SWITCHES and value is not None) or is_fixed(name, value):
            return st.NoOperation()
    if name in ("schema", "search_path") and isinstance(value, str):
        return schema_named(value, Span(written.start, written.end), scope)
    return st.SetOption(name, value)


def _setting_value(piece: Piece, scope: Scope) -> object:
    """Return a number, string or boolean; a bare word counts as a string."""
    if re.fullmatch(r"[A-Za-z_]\w*", piece.sql):
        return {"true": True, "false": False, "null": None}.get(piece.sql.lower(), piece.sql)
    node = scope.session.parse(piece)
    return known_value(scope.inside("SET").bind(node), "The value of a setting", scope)


def _reset(piece: Piece, scope: Scope) -> st.Statement:
    if is_variable(piece):
        return reset_variable(piece, scope)
    found = re.match(r"\s*\w+\s+(?:(?:session|global)\s+)?(\w+)\s*$", piece.sql, re.IGNORECASE)
    if found is None:
        raise ParseError("RESET takes the name of a setting.", Span(piece.start, piece.end))
    name = found.group(1).lower()
    if name in SWITCHES or name in FIXED:
        return st.NoOperation()
    return st.SetOption(name, None, reset=True)


# What CREATE and DROP are about; of tables, views and indexes sqlglot's parser reads them
_CREATE_OR_DROP = re.compile(
    r"\s*(?:create|drop)\s+(?:or\s+replace\s+)?(?:(?:temp|temporary|persistent)\s+)?(\w+)",
    re.IGNORECASE,
)
_KINDS: dict[str, tuple[Binder, Binder]] = {
    "SECRET": (create_secret, drop_secret),
    "TYPE": (create_type, drop_type),
    "SEQUENCE": (create_sequence, drop_sequence),
    "SCHEMA": (change_schema, change_schema),
    "MACRO": (create_macro, drop_macro),
    "FUNCTION": (create_macro, drop_macro),
}


def _create_or_drop(piece: Piece, scope: Scope) -> st.Statement:
    found = _CREATE_OR_DROP.match(piece.sql)
    kinds = _KINDS.get(found[1].upper() if found else "", (create, drop))
    return kinds[first_word(piece) == "DROP"](piece, scope)


def _pragma(piece: Piece, scope: Scope) -> st.Statement:
    called = re.fullmatch(
        r"\s*pragma\s+(table_info|show)\s*\(\s*(.*?)\s*\)\s*", piece.sql, re.IGNORECASE | re.DOTALL
    )
    if called is not None:
        function, table = called.group(1).lower(), called.group(2).strip("'\"").replace("'", "''")
        return st.Query(bind_text("pragma", f"from pragma_{function}('{table}')", scope))
    found = re.match(r"\s*pragma\s+(\w+)\s*(=|$)", piece.sql, re.IGNORECASE)
    name = found.group(1).lower() if found else ""
    if found and found.group(2) == "=":
        return _set(piece, scope)
    if name == "force_checkpoint":
        return Checkpoint()
    if name in _HARMLESS_PRAGMAS:
        return st.NoOperation()
    if name == "show_tables":
        return st.ShowTables()
    if name in _PRAGMAS:
        return st.Query(bind_text("pragma", _PRAGMAS[name], scope))
    raise Unsupported(f"PRAGMA {name} is not supported here.", Span(piece.start, piece.end))


_CHANGES: dict[type[exp.Expr], Write] = {
    exp.Insert: insert_rows,
    exp.Update: update_rows,
    exp.Delete: delete_rows,
}
_WRITES: dict[type[exp.Expr], Callable[[exp.Expr, Scope], st.Statement]] = {
    **_CHANGES,
    exp.Merge: merge_rows,
}
_BINDERS: dict[str, Binder] = {
    "CALL": _call,
    "CREATE": _create_or_drop,
    "COPY": copy_statement,
    "PREPARE": prepare,
    "EXECUTE": execute(bind_statement),
    "DEALLOCATE": deallocate,
    "INSERT": _write,
    "UPDATE": _write,
    "DELETE": _write,
    "MERGE": _write,
    "TRUNCATE": truncate,
    "ALTER": alter,
    "DROP": _create_or_drop,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _show,
    "SUMMARIZE": _summarize,
    "COMMENT": comment,
    "SET": _set,
    "RESET": _reset,
    "PRAGMA": _pragma,
    **DATABASE_BINDERS,
}
