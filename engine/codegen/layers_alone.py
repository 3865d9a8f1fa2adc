"""Probes that choose rows ask the small layers of an index alone: what lies behind these is read for rows that are chosen.

`find(bits, heads, number) >= 0` becomes a test of the bits, without a branch, and `find(heads, number)` for the few that pass.
"""

from __future__ import annotations

from dataclasses import replace

from . import loop as ir
from .indexes.layers import Buckets, Layer

Choosing = ir.Let | ir.Guard | ir.Doubt


def layers_alone(
    choosing: tuple[Choosing, ...], kind: type[Layer], everywhere: bool
) -> tuple[tuple[Choosing, ...], dict[str, ir.Let], tuple[ir.Guard, ...]]:
    """Ask probes only as far as a layer of some kind whether a row may be chosen; `everywhere`: not just those of buckets.

    Returns the rewritten statements, what looks behind that layer later, by name, and the guards of that.
    """
    made: list[Choosing] = []
    behind: dict[str, ir.Let] = {}
    guards: list[ir.Guard] = []
    some, none = ir.Number(0, ir.Machine.I32), ir.Number(-1, ir.Machine.I32)
    for statement in choosing:
        kept: Choosing = statement
        match statement:
            case ir.Let(found, value) if (
                parts := _parted(value, kind, everywhere)
            ) and _only_asked(found, choosing):
                may_be, exact = parts
                if found.type is not ir.Machine.BOOL:
                    may_be = ir.Select(may_be, some, none, ir.Machine.I32)
                behind[found.text] = ir.Let(found, exact)
                kept = replace(statement, value=may_be)
            case ir.Guard(condition) if parts := _parted(condition, kind, everywhere):
                may_be, exact = parts
                guards.append(ir.Guard(exact))
                kept = replace(statement, condition=may_be)
            case ir.Guard(condition) if ir.names_in(condition) & set(behind):
                guards.append(ir.Guard(condition))
        made.append(kept)
    return tuple(made), behind, tuple(guards)


def _parted(term: ir.Term, kind: type[Layer], everywhere: bool) -> tuple[ir.Term, ir.Term] | None:
    """Whether layers up to one of some kind let the number of a probe through, and what those behind say; None where there are none."""
    match term:
        case ir.Probe(layers, number) if everywhere or isinstance(layers[-1], Buckets):
            for count, layer in enumerate(layers[:-1], 1):
                if isinstance(layer, kind):
                    before = ir.Probe(layers[:count], number, ir.Machine.BOOL)
                    return before, replace(term, layers=layers[count:])
        case ir.Apply(">=", (row, ir.Number(0) as first)) if parts := _parted(
            row, kind, everywhere
        ):
            may_be, exact = parts
            return may_be, replace(term, args=(exact, first))
    return None


def _only_asked(row: ir.Name, choosing: tuple[Choosing, ...]) -> bool:
    """Whether it only matters for the cut that there is a row, not which; of a truth value, that it is true."""
    there: ir.Term = row
    if row.type is not ir.Machine.BOOL:
        there = ir.Apply(">=", (row, ir.Number(0, ir.Machine.I32)), ir.Machine.BOOL)
    readers = [s for s in choosing if row.text in ir.names_in(*ir.terms_of(s))]
    return all(isinstance(s, ir.Guard) and s.condition == there for s in readers) and bool(readers)
