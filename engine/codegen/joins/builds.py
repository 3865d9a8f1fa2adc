"""Build sides of joins: a program each, which puts the rows of a chain into an index."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from ...plan.device_costs import costs_of
from ...plan.expr import Call, Column, ColumnRef, Expr, conjunction
from ...plan.join_kinds import JoinKind
from ...plan.physical import HashJoin, MemoryScan, ParquetScan, Physical, Stored
from ...plan.pipeline_steps import HashProbe, payload
from ...plan.text.concealed_text import concealed_name
from ...plan.types import BOOLEAN
from ...records import dataclass
from ..expressions.translate import translate
from ..groups.accumulate import Accumulator
from ..indexes.choose import IndexedRows, index_of
from ..indexes.layers import Bitmap, Index, Ranks
from ..loop import Apply, Convert, Let, Machine, Name, Number, Term, negated
from ..names import free_name, identifier
from ..program import Program, Ranking
from ..program_builder import ROW, ProgramBuilder
from ..row_sources import LeafColumns
from ..typed_values import Element, Multiplied, NotFusable, Value
from .probe_keys import Domains, TooWide, domains, key_number
from .probes import insert, number_machine

ONE = Number(1, Machine.I64)


@dataclass(frozen=True, slots=True)
class Side:
    """A build side as probes see it; `wanted` are its columns that the join or what comes after it reads."""

    index: Index
    keys: Domains
    wanted: frozenset[Column]


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """What a join wants of the index of a build side, which is made once for all joins that want the same.

    `kind` is that of a join which asks for rows; `counts`: it matters how often a row is found.
    """

    build: int
    keys: tuple[Column, ...]
    null_equal: tuple[bool, ...]
    kind: str | None
    read: frozenset[Column]
    counts: bool


@dataclass(frozen=True, slots=True)
class AscendingKey:
    """That the only key of a build side is a column of its leaf whose values ascend strictly; `whole`: all rows are in."""

    column: Column
    whole: bool


@dataclass
class Builds:
    """The build programs of a pipeline, in the order in which they run."""

    source: LeafColumns
    programs: list[Program] = field(default_factory=list)
    indexes: list[Index] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    sides: dict[WantedIndex, Side] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._parted: dict[int, HashProbe] = {}

    def join(
        self, step: HashProbe, wanted: frozenset[Column], counts: bool
    ) -> tuple[HashProbe, Side]:
        """Return a join with its build side, made at first use; keys that are too wide have become part of its condition.

        `wanted`: columns of the join that are read; `counts`: it matters how often a row is found.
        """
        step = self._parted.get(id(step.node), step)
        before, names = len(self.programs), set(self.names)
        try:
            return step, self._side(step, payload(step.node, wanted), counts)
        except TooWide as wide:
            # Nested build sides are made anew, as more of their columns may be read now
            del self.programs[before:], self.indexes[before:]
            self.names = names
            self.sides = {k: s for k, s in self.sides.items() if s.index.number < before}
            node = _parted(step.node, wide.kept)
            parted = self._parted[id(step.node)] = replace(step, node=node)
            return parted, self._side(parted, payload(node, wanted), counts)

    def _side(self, step: HashProbe, wanted: frozenset[Column], counts: bool) -> Side:
        node, member = step.node, step.node.kind.is_membership
        by_row = bool(wanted) or node.residual is not None or node.kind is JoinKind.SINGLE
        kind = ("member" if member else node.kind) if by_row else None
        keys, counts = node.build_keys, counts and not member
        key = WantedIndex(id(step.build), keys, node.null_equal, kind, wanted, counts)
        if key not in self.sides:
            # An index that tells keys apart says which are there as well
            found = None if by_row else self.sides.get(replace(key, counts=True))
            if found is None or found.index.linked:
                found = self._build(step, wanted, counts)
            self.sides[key] = found
        return self.sides[key]

    def _build(self, step: HashProbe, read: frozenset[Column], counts: bool) -> Side:
        from .chains import ChainStatements  # the two call each other

        node, build, keys = step.node, step.build.node, step.node.build_keys
        wanted = read | frozenset(keys)
        counts = counts and not node.kind.is_membership
        by_row = bool(read) or node.residual is not None
        kernel = ProgramBuilder(self.source)
        once = build if counts or by_row else None
        chain = ChainStatements(kernel, self, counts=counts, once=once)
        scope = chain.state(step.build, wanted)
        values = [translate(scope[k], kernel) for k in keys]
        made = domains(values, [k.name for k in keys], node.null_equal)
        ordered = _ordered([scope[k] for k in keys], made, kernel)
        index = self._index(step, made, counts, by_row, kernel.relations[0].rows, ordered)
        if kernel.repeats and index.form is not Bitmap:
            raise Multiplied(build)
        self.indexes.append(index)
        self.programs.append(_program(index, values, made, kernel, ordered))
        return Side(index, made, wanted)

    def _index(
        self,
        step: HashProbe,
        keys: Domains,
        counts: bool,
        by_row: bool,
        rows: int,
        ordered: AscendingKey | None,
    ) -> Index:
        node, number = step.node, len(self.indexes)
        name = free_name(leaf_name(step.build.source), self.names)
        self.names.add(name)
        single = node.kind is JoinKind.SINGLE
        # Whether it is asked for the rows of a key, be it for nothing but how many there are
        rows_matter = not node.kind.is_membership and (counts or by_row or single)
        unique = rows_matter and keys.size >= rows and not self.source.repeated(number)
        once = ordered is not None or unique
        if single and not once:
            raise NotFusable("several rows of a scalar subquery may have one key")
        few, found = expected(node, rows)
        side = IndexedRows(
            keys.size,
            keys.raw,
            rows,
            few,
            by_row=by_row or (rows_matter and not once),
            once=once,
            assumed=unique and ordered is None,
            probes=self.source.rows(step.below.source),
            found=found,
            whole=None if ordered is None else ordered.whole,
            is_exact=not self.source.varies(step.build.source),
        )
        return index_of(number, name, side, costs_of(node.device))


def _ordered(keys: list[Expr], made: Domains, kernel: ProgramBuilder) -> AscendingKey | None:
    """Look whether numbers of keys ascend with the rows of relation 0."""
    leaf = kernel.relations[0]
    if len(keys) > 1 or kernel.repeats:
        return None
    match keys:
        case [ColumnRef(column)] if kernel.readings.get(column) is leaf:
            source = kernel.input(column)
            if not source.ascending or made.raw or made.keys[0].low != source.base:
                return None
            stated = kernel.blocks[0].statements or kernel.doubts
            return AscendingKey(column, not stated and kernel.keep is None)
    return None


def _ranking(index: Index, key: Column, kernel: ProgramBuilder) -> Ranking:
    """Have all rows ranked: the key is read apart from what the kernel does with each row, and whatever becomes of that."""
    leaf = kernel.relations[0]
    reading = kernel.read(leaf.leaf, ROW)
    kernel.mark_found(reading)
    alias = reading.aliases[leaf.own(key)]
    source = kernel.input(alias)
    kernel.elements[alias] = Element(source, len(kernel.relations) - 1)
    (ranks,) = index.layers[-1].buffers
    step = kernel.parameter(source.step, Machine.I32, f"step of {concealed_name(key.name)}")
    return Ranking(kernel.names[alias], kernel.buffer(ranks).text, step.text)


def _program(
    index: Index,
    values: list[Value],
    keys: Domains,
    kernel: ProgramBuilder,
    ordered: AscendingKey | None,
) -> Program:
    """A build program, whose three accumulators are those of `Program.index`."""
    kernel.guard()
    if index.whole:  # nothing is done with a row, not even with its key
        kernel.used.clear()
        kernel.parameters.clear()
    ranking = None
    if index.form is Ranks:
        assert ordered is not None
        ranking = _ranking(index, ordered.column, kernel)
    name = f"build_{index.name}"
    null: Term = Number(0, Machine.I64)
    if index.whole:
        zero = Apply("-", (ONE, ONE), Machine.I64)  # since no two accumulators may be the same
        terms = ((ONE, 1), (null, 0), (zero, 0))
        counts = tuple(Accumulator("add", Machine.I64, t, None, most) for t, most in terms)
        return kernel_program(name, kernel, accumulators=counts, index=index, ranking=ranking)
    machine = number_machine(index)
    key = key_number(values, keys, machine, Name(f"{index.name}_number", machine), kernel)
    kernel.settle()
    repeated = Name(f"{index.name}_repeated", Machine.I64)
    row = Convert(ROW, Machine.I32)
    kernel.state(Let(repeated, insert(index, key, row, kernel), f"into the index {index.name}"))
    accumulators = (
        Accumulator("add", Machine.I64, ONE, key.valid, 1),
        Accumulator("add", Machine.I64, null, None, 0)
        if key.valid is None
        else Accumulator("add", Machine.I64, ONE, negated(key.valid), 1),
        Accumulator("add", Machine.I64, repeated, None, 1),
    )
    return kernel_program(name, kernel, accumulators=accumulators, index=index, ranking=ranking)


def kernel_program(name: str, kernel: ProgramBuilder, **details: Any) -> Program:
    """Return a program of what a kernel has grown to, and of its sink."""
    return Program(
        name,
        tuple(kernel.inputs[c] for c in kernel.used),
        kernel.names,
        tuple(kernel.parameters),
        tuple(kernel.tables),
        tuple(kernel.blocks[0].statements),
        kernel.keep,
        **{"grouping": None, "accumulators": (), "folded": (), **details},
        relations=tuple(kernel.relation(i) for i in range(len(kernel.relations))),
        elements=tuple(kernel.elements.values()),
        buffers=tuple(kernel.buffers.values()),
        repeats=kernel.repeats,
        functions=tuple(kernel.functions),
        kept_keys=tuple(kernel.kept_keys),
    )


def expected(node: HashJoin, rows: int) -> tuple[float, float]:
    """How many of its leaf's rows are in a build side, and which share of probes finds one, by the planner's estimates."""
    built, probes = node.build_side.estimate, node.probe_side.estimate
    few = rows if built is None else min(built, rows)
    found = few / max(rows, 1)
    if node.kind in (JoinKind.INNER, JoinKind.SEMI) and node.estimate is not None and probes:
        found = min(found, node.estimate / probes)
    return few, found


def _parted(node: HashJoin, kept: tuple[int, ...]) -> HashJoin:
    """Return the join on some of its keys, the others being compared as part of the condition."""
    tests: list[Expr] = [] if node.residual is None else [node.residual]
    for place, pair in enumerate(zip(node.left_keys, node.right_keys, strict=True)):
        if place not in kept:
            name = "is_not_distinct" if node.null_equal[place] else "eq"
            tests.append(Call(name, tuple(map(ColumnRef, pair)), BOOLEAN))
    return replace(
        node,
        left_keys=tuple(node.left_keys[i] for i in kept),
        right_keys=tuple(node.right_keys[i] for i in kept),
        null_equal=tuple(node.null_equal[i] for i in kept),
        residual=conjunction(tests),
    )


def leaf_name(leaf: Physical) -> str:
    """A name for a leaf's rows in kernels."""
    match leaf:
        case ParquetScan(table=table) | MemoryScan(table=table):
            return identifier(table.name)
        case Stored(number=number):
            return f"stored{number}"
    raise NotFusable(f"a {type(leaf).__name__} inside of a pipeline")
