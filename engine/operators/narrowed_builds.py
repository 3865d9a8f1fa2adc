"""Build sides of which a chunk needs some row groups alone, as the footers say where the rows of both sides ascend by a key.

    HashJoin(chunk of l, o) on l.k = o.k  ->  HashJoin(chunk of l, row groups of o whose keys lie among those of the chunk)

Such a side is read with each chunk, and makes an index of its own: none has to be made of all its rows, nor anew for each chunk.  All
other sides are made once.  Where no key is in two chunks, the rows of a table that is joined with itself are those of the chunk, which
are there already.  Small sides are read whole with each chunk, since a GPU makes an index faster than operators make a table of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from ..plan import physical as p
from ..plan.expr import Call, Column, ColumnRef, Expr, Literal, conjunction
from ..plan.node import walk, walk_once
from ..plan.partial import PartialAggregate, in_parts
from ..plan.pipeline_steps import (
    Chain,
    HashProbe,
    PipelineSteps,
    RowLookup,
    probed,
    steps_of,
    stored_column,
)
from ..plan.types import BOOLEAN
from ..records import dataclass
from ..storage.tables.column_chunks import places_of
from .context import ChunkScan
from .known_inputs import FEWEST_ALIKE
from .scan_runs import (
    KeyBounds,
    Selection,
    files_of,
    key_bounds,
    rows_in,
    run_at,
    selected,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..storage.tables.parquet import ParquetTable

# How often the rows of a build side may be read, over all chunks, so that it is read with each of them
MOST_READ = 2
MOST_KEPT = 256  # chunks of a pipeline of which it is known what they read

Probe = HashProbe | RowLookup


class ChunkSteps(NamedTuple):
    """A chunk's own steps, the pipeline that runs for it and for others, and what it reads in the place of that one's scans."""

    steps: PipelineSteps
    node: p.Pipeline
    scans: Mapping[int, ChunkScan]


@dataclass
class ChunkPlan:
    """A pipeline that reads some build sides as inputs, which `sides` make, and what runs of it over chunks: `part`, of which `split` says how parts are put together.

    `whole` are the sides, by their identity, that are read whole with each chunk.  `fitting` are smaller chunks in the place of those
    for which there was no memory.  `ascending` is a key of groups by which chunks ascend: of these no other chunk has any but the first
    and the last.  It is kept from run to run with the nodes that run, by whose identity kernels are found.
    """

    node: p.Pipeline
    whole: frozenset[int]
    sides: tuple[p.Pipeline, ...]
    split: PartialAggregate | None = field(init=False)
    part: PipelineSteps = field(init=False)
    ascending: Column | None = field(init=False)
    fitting: dict[tuple[Selection, ...], list[Selection]] = field(default_factory=dict)
    _steps: dict[Selection, PipelineSteps] = field(default_factory=dict)
    _nodes: dict[Hashable, tuple[p.Pipeline, list[p.ParquetScan]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steps = self.node.steps
        split = None if steps.groups is None else in_parts(steps.groups)
        assert not isinstance(split, str)
        self.split, self.part = split, steps if split is None else steps_of(split.partial)
        keys = () if split is None else split.partial.keys
        every = [(key, _bounds(steps.chain, key, None)) for key in keys]
        ascend = (key for key, bounds in every if bounds is not None and bounds.ascend)
        self.ascending = next(ascend, None)

    def parted(self, chunk: PipelineSteps) -> tuple[p.FilterRows, p.FilterRows] | None:
        """Return what keeps groups that no chunk has but this one, and what keeps the others; None where nothing says which."""
        key, scan = self.ascending, chunk.source
        if key is None or not isinstance(scan, p.ParquetScan):
            return None
        bounds = _bounds(self.part.chain, key, selected(scan))
        assert bounds is not None
        ends = [Literal(int(end), key.type) for end in (bounds.lows.min(), bounds.highs.max())]

        def compared(*names: str) -> list[Expr]:
            pairs = zip(names, ends, strict=True)
            return [Call(name, (ColumnRef(key), end), BOOLEAN) for name, end in pairs]

        others = (*compared("le", "ge"), Call("is_null", (ColumnRef(key),), BOOLEAN))
        groups = p.Stored(0, self.part.body.columns, device=self.node.device)
        return (
            p.FilterRows(groups, conjunction(compared("gt", "lt")), device=groups.device),
            p.FilterRows(groups, Call("or", others, BOOLEAN), device=groups.device),
        )

    def steps(self, chunk: Selection) -> PipelineSteps:
        """Return the steps over a chunk, which an earlier run may have made."""
        made = self._steps.get(chunk)
        if made is None:
            if len(self._steps) > MOST_KEPT:
                self._steps.clear()
            made = self._steps[chunk] = of_chunk(self.part, chunk, self.whole)
        return made

    def over(self, chunks: Sequence[Selection]) -> list[ChunkSteps]:
        """Return the steps over chunks, with one pipeline for all that read alike: what is the same scan in the one is in the others.

        Of a table that is joined with itself, and of no rows or one, kernels know exactly how many there are.
        """
        if len(self._nodes) > MOST_KEPT:
            self._nodes.clear()
        whole = {id(scan) for scan in scans_read(self.part)}
        most: dict[int, int] = {}
        found = []
        for steps in map(self.steps, chunks):
            read = _scans(steps)
            first = {id(scan): place for place, scan in reversed([*enumerate(read)])}
            rows = {
                first[id(scan)]: rows_in(files_of(scan), selected(scan))
                for scan in read
                if id(scan) not in whole
            }
            joined = len(first) < len(read)
            exact = tuple([pair for pair in rows.items() if joined or pair[1] < FEWEST_ALIKE])
            alike = tuple([first[id(scan)] for scan in read]), exact
            known = self._nodes.get(alike)  # which another run may clear meanwhile
            if known is None:
                node = p.Pipeline(steps, self.node.inputs, device=self.node.device)
                known = self._nodes[alike] = node, read
            node, shared = known
            for place, count in rows.items():
                most[id(shared[place])] = max(most.get(id(shared[place]), 0), count)
            found.append((steps, node, {id(shared[place]): read[place] for place in rows}))
        return [
            ChunkSteps(steps, node, {key: ChunkScan(scan, most[key]) for key, scan in own.items()})
            for steps, node, own in found
        ]


def with_stored_builds(
    steps: PipelineSteps, count: int, chunks: Sequence[Selection], small: int
) -> tuple[PipelineSteps, list[p.Physical], list[p.Physical]]:
    """Return steps that read build sides from inputs, numbered from `count` on, and those sides: all but what each chunk needs some row groups of.

    Sides of at most `small` bytes are read whole with each chunk, and returned as well.
    """
    sides: list[p.Physical] = []
    whole: list[p.Physical] = []

    def rows(chain: Chain, runs: Sequence[Selection]) -> p.Physical:
        return _along(chain, chain.source, lambda step: build(step, runs))

    def build(step: Probe, runs: Sequence[Selection]) -> p.Physical:
        side = step.build.node
        if isinstance(side, p.Stored):
            return side
        needed = _needed(step, runs)
        if needed is not None:
            return rows(step.build, needed)
        if _bytes(side, encoded=True) <= small:
            whole.append(side)
            return side
        sides.append(side)
        return p.Stored(count + len(sides) - 1, side.columns, device=side.device)

    return _over(steps, rows(steps.chain, chunks)), sides, whole


def of_chunk(steps: PipelineSteps, chunk: Selection, whole: frozenset[int]) -> PipelineSteps:
    """Return steps over some row groups of their source, and over those that these need of the scans that are build sides and not `whole`."""
    scans: dict[tuple[int, Selection], p.Physical] = {}

    def rows(chain: Chain, run: Selection) -> p.Physical:
        key = id(chain.source), run
        if key not in scans:
            scans[key] = replace(cast("p.ParquetScan", chain.source), selection=run)
        return _along(chain, scans[key], lambda step: build(step, run))

    def build(step: Probe, run: Selection) -> p.Physical:
        side = step.build.node
        found = None if id(side) in whole else _overlapping(step, run)
        return side if found is None else rows(step.build, found)

    return _over(steps, rows(steps.chain, chunk))


def scans_read(steps: PipelineSteps) -> list[p.ParquetScan]:
    return [node for node in walk_once(steps.body) if isinstance(node, p.ParquetScan)]


def _scans(steps: PipelineSteps) -> list[p.ParquetScan]:
    """Return all readings of scans, by their places."""
    return [node for node in walk(steps.body) if isinstance(node, p.ParquetScan)]


def bytes_read(steps: PipelineSteps, encoded: bool = False) -> int:
    """Return the bytes of the columns of all scans, each counted once: as they are read, or about as kernels read them."""
    return _bytes(steps.body, encoded)


def _bytes(body: p.Physical, encoded: bool) -> int:
    columns: dict[tuple[ParquetTable, Selection], dict[str, None]] = {}
    for node in walk_once(body):
        if isinstance(node, p.ParquetScan):
            of_rows = columns.setdefault((files_of(node), selected(node)), {})
            of_rows.update(dict.fromkeys(node.sources))
    if encoded:
        return sum(t.sizes.narrow([*s], rows_in(t, run)) for (t, run), s in columns.items())
    return sum(
        int(t.sizes.of_each((*s,))[places_of(t, run)].sum()) for (t, run), s in columns.items()
    )


def _along(chain: Chain, source: p.Physical, build: Callable[[Probe], p.Physical]) -> p.Physical:
    """Return the end of a chain over another source, with other build sides."""
    made = source
    for step in chain.steps:
        place = probed(step.node)
        below = [made] * len(step.node.children)
        if isinstance(step, Probe):
            below = [made if i == place else build(step) for i in range(len(below))]
        made = step.node.with_children(below)
    return made


def _over(steps: PipelineSteps, rows: p.Physical) -> PipelineSteps:
    """Return the sink of a pipeline over other rows."""

    def sink(node: p.Physical) -> p.Physical:
        return rows if node is steps.chain.node else node.with_children([sink(node.children[0])])

    return steps_of(sink(steps.body))


def _needed(step: Probe, chunks: Sequence[Selection]) -> list[Selection] | None:
    """Return the row groups of a build side that each chunk needs; None where that is not known, or some are needed too often."""
    found: list[Selection] = []
    for chunk in chunks:
        run = _overlapping(step, chunk)
        if run is None:
            return None
        found.append(run)
    scan = cast("p.ParquetScan", step.build.source)
    read = sum(rows_in(files_of(scan), run) for run in found)
    return found if read <= MOST_READ * rows_in(files_of(scan), selected(scan)) else None


def _overlapping(step: Probe, run: Selection) -> Selection | None:
    """Return the row groups of a build side whose keys lie among those of row groups of the probe side, at least one; None where nothing says so."""
    scan = step.build.source
    if not isinstance(step, HashProbe) or not isinstance(scan, p.ParquetScan):
        return None
    if step.node.null_aware or any(step.node.null_equal):
        return None  # a NULL matters to all, or that there is any row
    places, is_known = places_of(files_of(scan), selected(scan)), False
    for probe_key, build_key in zip(step.node.probe_keys, step.node.build_keys, strict=True):
        own, other = _bounds(step.below, probe_key, run), _bounds(step.build, build_key, None)
        if own is not None and other is not None and len(own.lows) and len(places):
            lows, highs = other.at(places)
            among = (lows <= own.highs.max()) & (highs >= own.lows.min())
            places, is_known = places[among] if among.any() else places[:1], True
    return run_at(files_of(scan), places) if is_known else None


def _bounds(chain: Chain, key: Column, run: Selection | None) -> KeyBounds | None:
    """Return the bounds of a key in some row groups, or all, of a chain's source."""
    scan, column = stored_column(chain, key, through_joins=True) or (None, key)
    if not isinstance(scan, p.ParquetScan):
        return None
    bounds = key_bounds(files_of(scan), scan.sources[scan.made.index(column)])
    return bounds if run is None or bounds is None else bounds.at(places_of(files_of(scan), run))
