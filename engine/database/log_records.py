"""What a commit's changes are as JSON, and the objects that they make; nothing in a log is carried out or unpickled."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import FileError, FuselineError
from ..plan.changes import catalog_objects as co
from ..plan.changes.sequences import Position, Sequence, SequenceValues
from ..plan.types import DataType, Kind
from .rows_files import NAME, InlineRows, RowsFile
from .stored_table import RowsPlace, StoredTable

Stored = StoredTable | co.View | co.Macro | co.UserType | Sequence | co.SchemaObject
Objects = dict[co.ObjectKey, Stored]
Record = Mapping[str, Any]


def record_of(key: co.ObjectKey, entry: Stored | None) -> Record:
    """Return what a log keeps of an object, or of its end."""
    place = {"schema": key.schema}
    match entry:
        case None:
            return {"drop": key.kind, **place, "name": key.name}
        case co.SchemaObject(name=name):
            return {"new schema": name}
        case co.View(name=name, text=text, columns=columns, comments=comments):
            said = _comments_record(comments)
            return {"view": str(name), **place, "text": text, "columns": columns, **said}
        case co.UserType(name=name, type=data_type, comment=comment):
            return {"type": str(name), **place, "of": _type_record(data_type), **_said(comment)}
        case Sequence(name=name, values=values, position=position):
            counts = dataclasses.asdict(values)
            return {"sequence": name, **place, **counts, **dataclasses.asdict(position)}
        case co.Macro():
            others = [_macro_record(each) for each in entry.overloads]
            said = {**_said(entry.comment), **({"overloads": others} if others else {})}
            return {"macro": str(entry.name), **place, **_macro_record(entry), **said}
        case StoredTable():
            return {
                "table": str(entry.name),
                **place,
                "columns": [(name, _type_record(t)) for name, t in entry.fields],
                "rules": _rules_record(entry.table_rules),
                "files": entry.files,
                "rows": [(part.count, part.text()) for part in entry.tail],
            }


def appended_record(key: co.ObjectKey, parts: tuple[InlineRows, ...]) -> Record:
    """Return what a log keeps of rows behind those of a table."""
    rows = [(part.count, part.text()) for part in parts]
    return {"append": key.name, "schema": key.schema, "rows": rows}


def moved_record(key: co.ObjectKey, sequence: Sequence) -> Record:
    """Return what a log keeps of how far a sequence is."""
    return {"moved": key.name, "schema": key.schema, **dataclasses.asdict(sequence.position)}


def carry_out(changes: list[Record], objects: Objects, place: RowsPlace) -> None:
    """Change objects, whose keys have no database, as a commit says; raises `FileError` for what is no change."""
    try:
        for change in changes:
            _carry_out(change, objects, place)
    except (KeyError, TypeError, ValueError, AttributeError, FuselineError) as error:
        raise FileError(
            f'The catalog of "{place.data.parent}" has a change that cannot be read ({type(error).__name__}: {error}): '
            "restore it from a backup."
        ) from error


def _carry_out(change: Record, objects: Objects, place: RowsPlace) -> None:
    schema = str(change.get("schema", ""))
    match change:
        case {"new schema": str(name)}:
            objects[co.ObjectKey("", "schema", name.lower(), "")] = co.SchemaObject(name)
        case {
            "drop": ("relation" | "macro" | "type" | "sequence" | "schema") as kind,
            "name": str(name),
        }:
            del objects[co.ObjectKey("", kind, schema, name)]
        case {"view": str(name), "text": str(text), "columns": list(columns)}:
            named, comments = tuple(map(str, columns)), _comments_of(change)
            view = co.View(name, text, named, comments=comments)
            objects[_key("relation", schema, name)] = view
        case {"type": str(name), "of": dict(kind)}:
            objects[_key("type", schema, name)] = co.UserType(
                name, _type_of(kind), change.get("comment")
            )
        case {"sequence": str(name)}:
            counts = {f.name: change[f.name] for f in dataclasses.fields(SequenceValues)}
            made = Sequence(name, SequenceValues(**counts), _position(change))
            objects[_key("sequence", schema, name)] = made
        case {"moved": str(name)}:
            known = objects[_key("sequence", schema, name)]
            if not isinstance(known, Sequence):
                raise ValueError(name)
            moved = Sequence(known.name, known.values, _position(change))
            objects[_key("sequence", schema, name)] = moved
        case {"macro": str(name)}:
            objects[_key("macro", schema, name)] = _macro_of(name, change)
        case {"table": str(name), "columns": list(columns)}:
            fields = tuple((str(column), _type_of(kind)) for column, kind in columns)
            files = tuple(_file(*parts) for parts in change["files"])
            rules = _rules_of(change["rules"])
            given = {column for column, _ in (*rules.defaults, *rules.generated)}
            if (
                not given.union(rules.not_null, *(k.columns for k in rules.keys))
                <= dict(fields).keys()
            ):
                raise ValueError(f"rules of {name}")
            table = StoredTable(name, fields, rules, place, files)
            objects[_key("relation", schema, name)] = table.changed(tail=_tail(change))
        case {"append": str(name)}:
            table = objects[_key("relation", schema, name)]  # type: ignore[assignment]
            objects[_key("relation", schema, name)] = table.changed(
                tail=(*table.tail, *_tail(change))
            )
        case _:
            raise ValueError(str(change)[:100])


def _macro_record(macro: co.Macro) -> Record:
    types = {name: _type_record(kind) for name, kind in macro.types.items()}
    return {
        "text": macro.text,
        "parameters": macro.parameters,
        "defaults": dict(macro.defaults),
        "is_table": macro.is_table,
        **({"types": types} if types else {}),
    }


def _macro_of(name: str, change: Record) -> co.Macro:
    match change:
        case {"text": str(text), "parameters": list(parameters)}:
            return co.Macro(
                name,
                text,
                tuple(map(str, parameters)),
                {str(k): str(v) for k, v in change["defaults"].items()},
                bool(change["is_table"]),
                change.get("comment"),
                {str(k): _type_of(kind) for k, kind in change.get("types", {}).items()},
                tuple(_macro_of(name, other) for other in change.get("overloads", ())),
            )
    raise ValueError(name)


def _said(comment: str | None) -> Record:
    return {} if comment is None else {"comment": comment}


def _comments_record(comments: co.Comments) -> Record:
    """Return comments by those that there are."""
    said = [*comments.columns]
    return {**_said(comments.text), **({"comments": said} if said else {})}


def _comments_of(record: Record) -> co.Comments:
    said = tuple((str(name), str(text)) for name, text in record.get("comments", ()))
    return co.Comments(record.get("comment"), said)


def _position(change: Record) -> Position:
    last = change["last"]
    return Position(_whole(change["following"]), None if last is None else _whole(last))


def _key(kind: co.ObjectKind, schema: str, name: str) -> co.ObjectKey:
    return co.ObjectKey("", kind, schema, name.lower())


def _tail(change: Record) -> tuple[InlineRows, ...]:
    return tuple(InlineRows(_whole(count), str(text)) for count, text in change["rows"])


def _file(name: str, size: int, rows: int, checksum: int) -> RowsFile:
    if not NAME.fullmatch(name):
        raise ValueError(name)
    return RowsFile(name, _whole(size), _whole(rows), _whole(checksum))


def _whole(number: object) -> int:
    """Return a number, of which nothing here is larger than those of 64 bits; raises `ValueError`."""
    if not isinstance(number, int) or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(number)
    return number


def _type_record(data_type: DataType) -> Record:
    """Return a type by those of its fields that are set."""
    found: dict[str, object] = {}
    for part in dataclasses.fields(data_type):
        value = getattr(data_type, part.name)
        if isinstance(value, Kind):
            found[part.name] = value.name
        elif isinstance(value, tuple):
            parts = [_type_record(v) if isinstance(v, DataType) else str(v) for v in value]
            found |= {part.name: parts} if parts else {}
        elif value:
            found[part.name] = value
    return found


def _type_of(record: Record) -> DataType:
    found: dict[str, Any] = {}
    for name, value in record.items():
        if name == "kind":
            found[name] = Kind[value]
        elif isinstance(value, list):
            found[name] = tuple(v if isinstance(v, str) else _type_of(v) for v in value)
        else:
            found[name] = value
    return DataType(**found)


def _rules_record(rules: co.TableRules) -> Record:
    return {
        "not_null": sorted(rules.not_null),
        "defaults": [(name, e.text, e.shown) for name, e in rules.defaults],
        "checks": [(e.text, e.shown) for e in rules.checks],
        "keys": [(key.columns, key.primary) for key in rules.keys],
        **_comments_record(rules.comments),
        **({"indexes": [dataclasses.astuple(i) for i in rules.indexes]} if rules.indexes else {}),
        **(
            {"generated": [(n, e.text, e.shown) for n, e in rules.generated]}
            if rules.generated
            else {}
        ),
    }


def _rules_of(record: Record) -> co.TableRules:
    return co.TableRules(
        frozenset(map(str, record["not_null"])),
        tuple(
            (str(name), co.StoredExpression(text, shown))
            for name, text, shown in record["defaults"]
        ),
        tuple(co.StoredExpression(text, shown) for text, shown in record["checks"]),
        tuple(
            co.UniqueKey(tuple(map(str, names)), bool(primary)) for names, primary in record["keys"]
        ),
        tuple((str(n), co.StoredExpression(t, s)) for n, t, s in record.get("generated", ())),
        _comments_of(record),
        tuple(
            co.TableIndex(str(n), tuple(map(str, of)), bool(unique), tuple(map(str, shown)))
            for n, of, unique, shown in record.get("indexes", ())
        ),
    )
