"""How many encoded bytes of each column a query must read, by the programs of its kernels and the planner's estimates.

A column that every row needs counts whole.  One that is needed only behind a filter or probe counts the 32-byte sectors in which at
least one row is left, where those that are left lie spread evenly; a column of a build side those that random row numbers hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

SECTOR = 32  # bytes that device memory gives at least; host memory gives 64


def least_bytes(held: dict[str, int | None], nodes: Iterable[Any]) -> dict[str, int | None]:
    """Return, for `table.column` to encoded bytes, the bytes that must be read; None where a column is not held.

    Columns that no program names are read by operators, or once after the kernel: they count whole.
    """
    least: dict[str, float] = {}
    for node in nodes:
        if node.receipt is None or not node.receipt.fused or node.receipt.program is None:
            continue
        for program in (node.receipt.program, *(build.program for build in node.receipt.builds)):
            for name, size in _of_program(program):
                least[name] = max(size, least.get(name, 0.0))
    return {
        name: None if size is None else round(min(size, least.get(name, size)))
        for name, size in held.items()
    }


def _of_program(program: Any) -> Iterator[tuple[str, float]]:
    """`table.column` and bytes of what one kernel reads of tables."""
    rows = program.relations[0].rows
    shares = _shares(program)
    sources = [(i, 0) for i in program.inputs]
    sources += [(element.input, element.relation) for element in program.elements]
    for source, number in sources:
        relation = program.relations[number]
        name = _stored_name(relation, source.column)
        share = shares[program.names[source.column]]
        if name is None:
            continue
        if number == 0:
            a_sector = max(SECTOR // source.width, 1)
            yield name, rows * source.width * (1 - (1 - share) ** a_sector)
        else:
            sectors = max(relation.rows * source.width / SECTOR, 1.0)
            yield name, SECTOR * sectors * (1 - (1 - 1 / sectors) ** (rows * share))


def _shares(program: Any) -> dict[str, float]:
    """The share of the rows that need each column, by its name in the kernel: those left where it is first read."""
    from fuseline.codegen.loop import Guard, Lookup, names_in, subterms, terms_of

    names = set(program.names.values())
    shares: dict[str, float] = {}
    left = 1.0
    for statement in program.body:
        terms = terms_of(statement)
        tables = {part.table for t in terms for part in subterms(t) if isinstance(part, Lookup)}
        read = {n.removesuffix("_code").removesuffix("_valid") for n in names_in(*terms)}
        for name in (read | tables | names_in(*terms)) & names:
            shares.setdefault(name, left)
        if isinstance(statement, Guard) and statement.share is not None:
            left *= statement.share
    return {name: shares.get(name, left) for name in names}


def _stored_name(relation: Any, alias: Any) -> str | None:
    """`table.column` of a scan's column; None for what a pipeline stored, or derived of a column."""
    leaf = relation.leaf
    column = relation.stored.get(alias)
    if not hasattr(leaf, "sources") or column not in leaf.columns:
        return None
    return f"{leaf.table.name}.{leaf.sources[leaf.columns.index(column)]}"
