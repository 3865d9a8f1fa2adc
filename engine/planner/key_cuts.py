"""By which key the rows of each scan are cut among the workers of a cluster, so that joins and groups find equal keys on one worker.

A table whose row groups ascend by a key, as their footers say, can be cut at values of it.  Tables that are joined on such keys are
cut at the same values, those that give the largest of them even shares; then the join needs no exchange, and neither does grouping
by the key.  Where a plan asks for several keys of one table, the one that saves most bytes is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from ..plan import physical as p
from ..plan.exchange import expected_bytes
from ..plan.expr import Cast, Column, ColumnRef, Expr
from ..plan.node import walk_once
from ..plan.partitioning import KeyCut
from ..plan.types import Kind
from ..plan.window.window_operator import WindowRows
from ..records import dataclass

INTEGERS = frozenset((Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT))
MOST_SKEW = 2.0  # of a share, by what an even one has, for tables to be cut at keys


class Sharing(Protocol):
    """What the planner has to know of tables whose rows the workers share."""

    workers: int

    def is_whole(self, scan: p.ParquetScan) -> bool:
        """Whether each worker reads all rows."""

    def may_be_key(self, scan: p.ParquetScan, source: str) -> bool:
        """Whether no value of a column has turned out to come twice."""

    def usual_key(self, scan: p.ParquetScan) -> str | None:
        """The column by which a table is cut where a plan asks for no other."""

    def is_clustered(self, scan: p.ParquetScan, source: str) -> bool:
        """Whether the table can be cut at values of a column."""

    def cuts(self, scan: p.ParquetScan, source: str) -> tuple[int, ...]:
        """The values of a column at which it is cut evenly."""

    def skew(self, scan: p.ParquetScan, source: str, cuts: tuple[int, ...]) -> float:
        """How many times as many rows as an even share the largest one has."""

    def limits(self, cuts: tuple[int, ...]) -> tuple[int | None, int | None]:
        """The least key of this worker, and the one above its largest; None: no limit."""

    def share(self, scan: p.ParquetScan, cut: KeyCut | None) -> p.ParquetScan:
        """What this worker reads; cut by rows where there is no key."""


class _Place(NamedTuple):
    """A column of one scan."""

    scan: p.ParquetScan
    source: str


@dataclass
class _Wish:
    """That scans are cut at the same values of these columns; so many bytes need not be moved then."""

    places: tuple[_Place, ...]
    saved: float


def keys_of_scans(plan: p.Physical, sharing: Sharing) -> dict[int, KeyCut]:
    """Return by which key each scan is cut, by the scan's `id`; those that each worker reads whole, or a run of rows of, are left out."""
    scans = [
        node
        for node in walk_once(plan)
        if isinstance(node, p.ParquetScan) and not sharing.is_whole(node)
    ]
    families = _Families()
    wishes = list(_wishes(plan, {id(scan) for scan in scans}, sharing))
    for wish in sorted(wishes, key=lambda wish: -wish.saved):
        families.grant(wish)
    found: dict[int, KeyCut] = {}
    for members in families.members():
        found |= _cut(members, sharing)
    for scan in scans:
        usual = None if id(scan) in found else sharing.usual_key(scan)
        if usual is not None:
            found |= {i: cut._replace(asked=False) for i, cut in _cut([_Place(scan, usual)], sharing).items()}  # fmt: skip
    return found


def _cut(members: list[_Place], sharing: Sharing) -> dict[int, KeyCut]:
    """Cut tables at the values that suit the largest; one whose rows would then be with few workers is not."""
    largest = max(members, key=lambda place: place.scan.table.statistics().rows or 0)
    cuts = sharing.cuts(*largest)
    return {
        id(scan): KeyCut(source, cuts, asked=True)
        for scan, source in members
        if sharing.skew(scan, source, cuts) <= MOST_SKEW
    }


class _Families:
    """Scans that are cut at the same values."""

    def __init__(self) -> None:
        self._source: dict[int, str] = {}
        self._of: dict[int, list[_Place]] = {}

    def grant(self, wish: _Wish) -> None:
        """Join the families of a wish, unless one of its scans is cut by another key already."""
        if any(self._source.get(id(w.scan), w.source) != w.source for w in wish.places):
            return
        together: list[_Place] = []
        for place in wish.places:
            known = self._of.get(id(place.scan), [place])
            together += [k for k in known if all(k.scan is not other.scan for other in together)]
        for place in together:
            self._source[id(place.scan)] = place.source
            self._of[id(place.scan)] = together

    def members(self) -> Iterator[list[_Place]]:
        """Yield each family once."""
        yield from {id(members): members for members in self._of.values()}.values()


def _wishes(plan: p.Physical, shared: set[int], sharing: Sharing) -> Iterator[_Wish]:
    origins: dict[Column, _Place | Column] = {}
    for node in walk_once(plan):
        match node:
            case p.ParquetScan(made=made, sources=sources) if id(node) in shared:
                origins |= {c: _Place(node, s) for c, s in zip(made, sources, strict=True)}
            case p.ComputeColumns(items=items):
                origins |= {
                    new: old for new, e in items if (old := same_integer(e)) not in (None, new)
                }

    def place(column: Column) -> _Place | None:
        """The column of a shared table from which a column has its values, where the table can be cut by it."""
        found: _Place | Column | None = column
        while isinstance(found, Column):
            found = origins.get(found)
        clustered = found is not None and sharing.is_clustered(*found)
        return found if clustered else None

    for node in walk_once(plan):
        pairs: Iterable[tuple[Column, Column]] = ()
        match node:
            case p.HashJoin(left_keys=left, right_keys=right) if not node.null_aware:
                pairs = zip(left, right, strict=True)
            case p.HashSetOperation():
                pairs = zip(node.left.columns, node.right.columns, strict=True)
            case p.HashAggregate(keys=keys) | p.DistinctOn(keys=keys) | WindowRows(partition=keys):
                for found in filter(None, map(place, keys)):
                    yield _Wish((found,), expected_bytes(node))
        for pair in pairs:
            sides = [(known, child) for c, child in zip(pair, node.children, strict=True) if (known := place(c))]  # fmt: skip
            if sides:
                saved = sum(expected_bytes(child) for _, child in sides)
                yield _Wish(tuple(dict.fromkeys(known for known, _ in sides)), saved)


def same_column(expr: Expr) -> Column | None:
    """Return the column that an expression is."""
    return expr.column if isinstance(expr, ColumnRef) else None


def same_integer(expr: Expr) -> Column | None:
    """Return the column whose values an expression has: the column itself, or as an integer of another width."""
    match expr:
        case ColumnRef(column=column):
            return column
        case Cast(operand=ColumnRef(column=column)) if not expr.safe:
            return column if {column.type.kind, expr.type.kind} <= INTEGERS else None
    return None
