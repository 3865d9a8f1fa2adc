"""A chain of filters, projections and joins -> the statements of one kernel, from its source on.

A column of the plan is an expression over aliases, which are columns of the relations that the kernel reads.  Nothing is
loaded or computed before a filter, a probe or the sink reads it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from ...plan.expr import Case, Column, ColumnRef, Expr, Literal, new_column
from ...plan.join_kinds import JoinKind
from ...plan.physical import ComputeColumns, FilterRows, Physical
from ...plan.pipeline_steps import (
    Chain,
    Columns,
    HashProbe,
    RowLookup,
    columns_read,
    equal_keys,
    payload,
)
from ...plan.text.concealed_text import concealed, concealed_name
from ...plan.types import BOOLEAN
from ...plan.udf.python_function import in_turn
from ...records import dataclass
from ..expressions.translate import translate
from ..loop import Apply, Guard, Let, Machine, Name, Number, Select, Term, true_and
from ..names import free_name
from ..program_builder import ROW, ProgramBuilder, RelationReading, Scope, over
from ..typed_values import NotFusable, Value
from .builds import Builds, leaf_name
from .clustered_self_join import neighbours
from .join_steps import Joining


@dataclass
class ChainStatements:
    """One chain becomes statements of one kernel.

    `counts`: it matters how often a row of the leaf comes through; `once`: it may not come through several times, since the chain
    is this build side.  `given`: the leaf's row was found by a probe, so that the row passes all filters; its joins then only say
    which rows of their build sides belong to it, when these are read.  `untested`: that row need not pass all filters; they are
    added here, over aliases.
    """

    kernel: ProgramBuilder
    builds: Builds
    counts: bool = True
    once: Physical | None = None
    given: RelationReading | None = None
    untested: list[Expr] | None = None
    guarded: bool = False
    probed: bool = False
    filtered: bool = False

    def state(self, chain: Chain, wanted: Columns) -> Scope:
        """State what a chain does; return its columns, at least those that are wanted, over aliases."""
        scope = self._source(chain.source)
        for step, read in chain.read_by(wanted):
            match step, step.node:
                case _, FilterRows(predicate=predicate):
                    self.filter(predicate, scope, step.share)
                case _, ComputeColumns(items=items):
                    scope = self._computed([(c, e) for c, e in items if c in read], scope)
                case HashProbe(), _:
                    scope = self._join(step, scope, read)
                case RowLookup(), _:
                    scope = self._cross(step, scope, read)
        return scope

    def _source(self, node: Physical) -> Scope:
        if self.given is not None:
            return self.given.scope
        leaf_name(node)
        reading = self.kernel.read(node, ROW)
        self.kernel.mark_found(reading)
        return reading.scope

    def filter(self, predicate: Expr | None, scope: Scope, share: float | None = None) -> None:
        """Only rows for which a predicate is true are in; `share` of those so far, by the planner's estimate."""
        if predicate is None:
            return
        if self.given is not None:
            if self.untested is not None:
                self.untested.append(over(predicate, scope))
            return
        self.filtered = True
        for part in in_turn(predicate):
            term = translate(over(part, scope), self.kernel).term
            self.require(term, f"filter {concealed(part)}", share)
            share = None

    def require(self, term: Term, step: str, share: float | None) -> None:
        """Only rows for which the term is true are in: a branch once any probe has made one."""
        kernel = self.kernel
        kernel.settle()
        if self.guarded:
            kernel.state(Guard(term, step, share))
            return
        if kernel.keep is not None:
            term = Apply("&", (kernel.keep, term), Machine.BOOL)
        known = [s for s in (kernel.kept, share) if s is not None]
        kernel.kept = prod(known) if known else None
        kernel.keep = Name("keep", Machine.BOOL)
        kernel.state(Let(kernel.keep, term, step))

    def guard(self) -> None:
        """Before rows of other relations are looked for."""
        self.kernel.guard()
        self.guarded = self.probed = True

    def _computed(self, items: list[tuple[Column, Expr]], below: Scope) -> Scope:
        scope = {}
        for column, expr in items:
            scope[column] = made = over(expr, below)
            if not isinstance(made, ColumnRef | Literal):
                step = f"{concealed_name(column.name)} = {concealed(expr)}"
                self.kernel.computed.setdefault(made, (column, step))
        return scope

    # Joins

    def _join(self, step: HashProbe, scope: Scope, wanted: Columns) -> Scope:
        node = step.node
        if node.kind.is_filter and self.given is not None:
            return scope
        probing: Joining | None = neighbours(self, step, scope, wanted)
        if probing is None:
            step, side = self.builds.join(step, wanted, self.counts)
            probing = Joining(self, step, side, scope, bool(payload(step.node, wanted)))
        node = probing.node
        equal = {built: scope[probed] for built, probed in equal_keys(node).items()}
        if node.kind.is_membership:
            return scope | probing.membership()
        return scope | (probing.inner(equal) if node.kind is JoinKind.INNER else probing.outer())

    def _cross(self, step: RowLookup, scope: Scope, wanted: Columns) -> Scope:
        """A join with the only row of a relation."""
        node, leaf = step.node, step.build.source
        if self.builds.source.rows(leaf) != 1:
            raise NotFusable("a join without equal keys")
        kernel = self.kernel
        row = self.variable(f"{leaf_name(leaf)}_row", Machine.I32)
        optional = node.kind is not JoinKind.INNER and node.condition is not None
        # In the build side of an outer join that found no row there is no such row either
        outer = self.given if self.given is not None and self.given.optional else None

        def find() -> None:
            only: Term = Number(0, Machine.I32)
            if outer is not None:
                kernel.found(outer)
                only = Select(kernel.present(outer), only, Number(-1, Machine.I32), Machine.I32)
            kernel.state(Let(row, only, "its only row"))
            if optional:
                self.choose(reading, node.condition, scope | right)

        reading = kernel.read(
            leaf, row, optional=optional or outer is not None, find=find, unique=not optional
        )
        right = self.payload(reading, step.build, wanted | columns_read(node))
        if optional:
            right = self.present(right, reading)
        else:
            self.filter(node.condition, scope | right, step.share)
        return scope | right

    def payload(
        self,
        reading: RelationReading,
        chain: Chain,
        wanted: Columns,
        counts: bool = True,
        untested: list[Expr] | None = None,
    ) -> Scope:
        """The columns of a chain whose leaf's row a probe has found; `counts` as when its index was made."""
        found = ChainStatements(self.kernel, self.builds, counts, chain.node, reading, untested)
        return found.state(chain, wanted)

    def present(self, scope: Scope, reading: RelationReading) -> Scope:
        """Columns of an outer join's build side: NULL where it found no row, whatever they are computed from."""
        kernel = self.kernel

        def value(expr: Expr) -> Value:
            kernel.found(reading)
            held, there = translate(expr, kernel), kernel.present(reading)
            valid = true_and([there, *([] if held.valid is None else [held.valid])])
            if held.term.type is Machine.BOOL:
                return Value(Apply("&", (there, held.term), Machine.BOOL), valid)
            return replace(held, valid=valid)

        def there() -> Value:
            kernel.found(reading)
            return Value(kernel.present(reading))

        found = new_column("found", BOOLEAN)
        kernel.defer(found, there)
        made: Scope = {}
        for column, expr in scope.items():
            made[column] = expr
            if not isinstance(expr, ColumnRef) or expr.column not in kernel.readings:
                alias, none = new_column(column.name, column.type), Literal(None, column.type)
                kernel.deferred[alias] = partial(value, expr)
                kernel.apart[alias] = Case((ColumnRef(found),), (expr,), none, column.type)
                made[column] = ColumnRef(alias)
        return made

    def choose(self, reading: RelationReading, condition: Expr | None, scope: Scope) -> None:
        """Give up the row that was found for an outer join unless the condition holds."""
        kernel = self.kernel
        assert condition is not None
        with kernel.inside(kernel.blocks[-1].statements):
            kernel.mark_found(reading)
            held = translate(over(condition, scope), kernel).term
            kernel.settle()
            found = Apply("&", (kernel.present(reading), held), Machine.BOOL)
            row = Select(found, reading.row, Number(-1, Machine.I32), Machine.I32)
            kernel.state(Let(reading.row, row, f"where {concealed(condition)}"))

    def variable(self, name: str, machine: Machine) -> Name:
        """A name that no other join of the kernel has."""
        made = free_name(name, self.kernel.variables)
        self.kernel.variables.add(made)
        return Name(made, machine)
