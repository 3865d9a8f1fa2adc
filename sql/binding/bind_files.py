"""Files in FROM: by their path, and by the functions that read them; and values of options, which are no expressions of a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from fuseline.errors import FuselineError, InvalidQuery
from fuseline.plan.files.read_options import (
    READ_OPTIONS,
    SAID_BY_NAME,
    TABLE_FUNCTIONS,
    format_read,
)
from fuseline.plan.logical import CatalogTable

from ...records import dataclass
from ..parsing.pieces import span_of
from ..parsing.unread import use
from .constants.known_values import known_or_listed
from .scope import Scope

FILES_BY_NAME = (
    "A file is read by a name that ends in .parquet, .csv, .json, .arrow or the like, "
    "any other by read_parquet, read_csv, read_json or read_text."
)

# What files have besides their columns, where a query names it, by formats
_TOLD = {"filename": ("parquet", "csv", "json", "arrow"), "file_row_number": ("parquet",)}


@dataclass(frozen=True)
class FileTable:
    """The table of files, whose last columns `told` are none of * but names that the query knows."""

    table: CatalogTable
    told: tuple[str, ...] = ()


def file_of_path(path: str, around: Scope, node: exp.Expr) -> FileTable | None:
    """Return the table of a name in FROM that is a path, None for one that is none."""
    form = format_read(path)
    return None if form is None else _opened(form, [path], {}, around, node)


def file_function(name: str, function: exp.Expr, around: Scope) -> FileTable | None:
    """Return the table of a function that reads files, None for another function."""
    form = TABLE_FUNCTIONS.get(name.lower())
    if form is None:
        return None
    paths: list[str] = []
    said, options = SAID_BY_NAME.get(name.lower(), {}), dict[str, object]()
    path_first = [function.this] if isinstance(function, exp.ReadCSV) else []
    for argument in (*path_first, *function.expressions):
        if isinstance(argument, exp.EQ | exp.PropertyEQ | exp.Kwarg):
            use(argument, argument.this)
            if isinstance(argument.this, exp.Column):  # name = value; else name := value
                use(argument.this.this)
            key, value = argument.this.name.lower(), option_value(argument.expression, around)
            with _at(argument):
                if form in READ_OPTIONS:
                    key, value = READ_OPTIONS[form].read(key, value)
            if key in options:
                raise InvalidQuery(f"The option {key} is given twice.", span_of(argument))
            options[key] = value
            continue
        given = option_value(argument, around)
        several = given if isinstance(given, list) else [given]
        if not all(isinstance(path, str) for path in several):
            raise InvalidQuery(
                f"{name.lower()} takes a path or a list of paths as strings.", span_of(argument)
            )
        paths.extend(str(path) for path in several)
    if not paths:
        raise InvalidQuery(f"{name.lower()} needs a path.", span_of(function))
    return _opened(form, paths, {**said, **options}, around, function)


def _opened(
    form: str, paths: list[str], options: dict[str, object], around: Scope, node: exp.Expr
) -> FileTable:
    catalog, text = around.session.catalog, around.session.text.lower()
    with _at(node):
        table = catalog.read_files(form, paths, options)
        known = {name.lower() for name, _ in table.fields}
        told = tuple(
            name
            for name, forms in _TOLD.items()
            if name in text and form in forms and name not in known and options.get(name) is None
        )
        if not told:
            return FileTable(table)
        more = {**options, **dict.fromkeys(told, True)}
        return FileTable(catalog.read_files(form, paths, more), told)


@contextmanager
def _at(node: exp.Expr) -> Iterator[None]:
    try:
        yield
    except FuselineError as error:
        error.span = error.span or span_of(node)
        raise


def option_value(node: exp.Expr, scope: Scope) -> object:
    """Return a constant, a list of values, or a dictionary of them; names of columns are texts."""
    match node:
        case exp.Paren():
            use(node)
            return [option_value(node.this, scope)]
        case exp.Array() | exp.Tuple() | exp.List():
            use(node)
            return [option_value(item, scope) for item in node.expressions]
        case exp.Struct():
            use(node)
            return dict(_entry(item, scope) for item in node.expressions)
        case exp.Column(this=exp.Identifier() as name) if len(node.parts) == 1:
            use(node, name)
            return name.name
    inside = scope.inside("an option")
    return known_or_listed(inside.bind(node), "An option", inside)


def _entry(item: exp.Expr, scope: Scope) -> tuple[str, object]:
    use(item, item.this)
    return str(item.this.name), option_value(item.expression, scope)
