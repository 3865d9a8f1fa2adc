"""Which output columns decide the order of a query's rows, in the tree of DuckDB's parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sort_keys(tree: Mapping[str, Any], names: Sequence[str]) -> list[int | None]:
    """The places of the output columns by which the outermost ORDER BY sorts, None for what is no such column."""
    node = tree["statements"][-1]["node"]
    orders = [o for m in node["modifiers"] if m["type"] == "ORDER_MODIFIER" for o in m["orders"]]
    chosen = [_column_name(item) for item in node.get("select_list", ())]
    sources = chosen if len(chosen) == len(names) else []
    return [_output_column(order["expression"], names, sources) for order in orders]


def _column_name(expression: Mapping[str, Any]) -> str | None:
    return expression["column_names"][-1] if expression["class"] == "COLUMN_REF" else None


def _output_column(
    expression: Mapping[str, Any], names: Sequence[str], sources: Sequence[str | None]
) -> int | None:
    """The place that a sort key names: by number, by the column's name, or by that of the column it was made of."""
    match expression:
        case {"class": "CONSTANT", "literal": {"kind": "INTEGER", "text": text}}:
            return int(text) - 1
        case {"class": "COLUMN_REF", "column_names": [name]}:
            for known in (names, sources):
                places = [i for i, n in enumerate(known) if n and n.lower() == name.lower()]
                if places:
                    return places[0] if len(places) == 1 else None
    return None
