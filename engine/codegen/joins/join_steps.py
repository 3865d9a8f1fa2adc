"""One join of a chain: how a kernel finds the rows of its build side, and what it can read of them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...plan.expr import Cast, ColumnRef, Expr, columns_of, conjunction, new_column
from ...plan.join_kinds import JoinKind
from ...plan.node import walk
from ...plan.pipeline_steps import HashProbe
from ...plan.text.concealed_text import concealed
from ...records import dataclass
from .. import loop as ir
from ..expressions.translate import translate
from ..indexes.layers import KeptKey
from ..program_builder import RelationReading, Scope, over
from ..typed_values import Multiplied, NotFusable, Value
from .builds import Side
from .probe_keys import Domain, KeyNumber, key_number
from .probes import built_nulls, built_rows, first_row, member, next_row, number_machine

if TYPE_CHECKING:
    from .chains import ChainStatements


@dataclass
class Joining:
    """One join of a chain: its build side, the columns of the probe side, and whether rows of the build side are read."""

    chain: ChainStatements
    probe: HashProbe
    side: Side
    below: Scope
    payload: bool

    def __post_init__(self) -> None:
        index, self.node = self.side.index, self.probe.node
        self.step = f"{self.node.kind} join {index.name}"
        self.keys = tuple(self.below[k] for k in self.node.probe_keys)
        self.number_name = self.chain.variable(f"{index.name}_number", number_machine(index))
        self.row = self.chain.variable(f"{index.name}_row", ir.Machine.I32)
        self.untested: list[Expr] | None = None  # filters that rows found need not have passed

    @property
    def conditional(self) -> bool:
        """Whether a row that has the key may not be one of the join all the same."""
        return self.node.residual is not None

    def condition(self, made: Scope) -> tuple[Expr, str]:
        """What rows with the key must fulfil, over aliases, and for people."""
        residual, untested = self.node.residual, self.untested or []
        tests = [*([] if residual is None else [over(residual, self.below | made)]), *untested]
        texts = [*([] if residual is None else [residual]), *untested]
        return conjunction(tests), " and ".join(map(concealed, texts))

    @property
    def silent(self) -> bool:
        return self.chain.given is not None

    def number(self) -> KeyNumber:
        """State the number of the current row's key."""
        kernel = self.chain.kernel
        values = [translate(key, kernel) for key in self.keys]
        kernel.settle()
        machine = number_machine(self.side.index)
        return key_number(values, self.side.keys, machine, self.number_name, kernel)

    def reading(self, optional: bool, unique: bool = True) -> tuple[RelationReading, Scope]:
        """The build side's leaf at the row found, and the columns of the build side over it."""
        chain, build = self.chain, self.probe.build
        if self.silent:
            assert chain.given is not None
            optional |= chain.given.optional
        reading = chain.kernel.read(
            build.source, self.row, optional=optional, keys=self.keys, unique=unique
        )
        counts = chain.counts and not self.node.kind.is_membership
        scope = chain.payload(reading, build, self.side.wanted, counts, self.untested)
        reading.stored_keys = tuple(scope[k] for k in self.node.build_keys)
        reading.inner = self.node.kind is JoinKind.INNER
        return reading, scope

    def keep_matches(self) -> None:
        """Note that rows without a match are not in, where the key is a stored column of the rows that the kernel goes through."""
        kernel, keys = self.chain.kernel, self.side.keys
        match [_stored(key) for key in self.keys], keys.keys:
            case [ColumnRef(column)], [Domain(null=False, values=None, low=least)] if not keys.raw:
                reading = kernel.readings.get(column)
                if kernel.relations and reading is kernel.relations[0]:
                    kernel.kept_keys.append(KeptKey(reading.own(column), self.side.index, least))

    # Kinds of joins

    def inner(self, equal: Scope) -> Scope:
        chain, kernel, index = self.chain, self.chain.kernel, self.side.index
        if not self.silent:
            chain.guard()
            self.keep_matches()
        made: Scope = {}
        if index.linked:
            if chain.once is not None:
                raise Multiplied(chain.once)
            reading, made = self.reading(optional=False, unique=False)
            key = self.number()
            first, following = self._rows(key)
            kernel.state(ir.Each(self.row, first, following, step=self.step))
            kernel.mark_found(reading)
            kernel.repeats = True
        elif self.payload:
            reading, made = self.reading(optional=False)
            reading.find = self._find
            if not self.silent:
                kernel.found(reading)
                kernel.state(ir.Guard(_present(self.row), share=self.probe.share))
        elif not self.silent:
            kernel.state(
                ir.Guard(member(index, self.number(), kernel), self.step, self.probe.share)
            )
        made = made | equal
        # Which the estimate of the join knows
        chain.filter(self.node.residual, self.below | made, 1.0)
        for test in self.untested or []:
            chain.filter(test, {}, 1.0)
        return made

    def outer(self) -> Scope:
        """A left join, or a single one, which finds at most one row for each."""
        chain, index = self.chain, self.side.index
        residual = self.node.residual
        if index.linked:
            return self._outer_repeated()
        if not self.payload and residual is None:
            return {}
        reading, made = self.reading(optional=True, unique=residual is None)

        def find() -> None:
            if not self.silent:
                chain.guard()
            self._find()
            if residual is not None:
                chain.choose(reading, residual, self.below | made)

        reading.find = find
        return chain.present(made, reading)

    def _outer_repeated(self) -> Scope:
        """A left join that may find several rows for one, or none: with a condition, it asks first whether there is any."""
        chain, kernel = self.chain, self.chain.kernel
        if chain.once is not None:
            raise Multiplied(chain.once)
        chain.guard()
        none = ir.Number(-1, ir.Machine.I32)
        found, key = self._found() if self.conditional else (None, self.number())
        first, following = self._rows(key)
        if found is not None:
            first = ir.Select(found, first, none, ir.Machine.I32)
        reading, made = self.reading(optional=True, unique=False)
        kernel.state(ir.Each(self.row, first, following, once=True, step=self.step))
        kernel.mark_found(reading)
        kernel.repeats = True
        if found is not None:
            condition, shown = self.condition(made)
            held = translate(condition, kernel).term
            kernel.settle()
            absent = ir.negated(kernel.present(reading))
            kernel.state(ir.Guard(ir.Apply("|", (absent, held), ir.Machine.BOOL), f"where {shown}"))
        return chain.present(made, reading)

    def membership(self) -> Scope:
        """A semi, anti or mark join."""
        chain, kernel, node = self.chain, self.chain.kernel, self.node
        if node.kind is JoinKind.MARK:
            assert node.mark is not None
            alias = new_column(node.mark.name, node.mark.type)
            kernel.defer(alias, self._mark, self._decisive())
            return {node.mark: ColumnRef(alias)}
        if self.silent:
            return {}
        chain.guard()
        found, key = self._found()
        if node.kind is JoinKind.SEMI:
            kept = found
            self.keep_matches()
        elif node.null_aware:
            empty, nulls = self._emptiness()
            known = [ir.negated(found), nulls, *([] if key.valid is None else [key.valid])]
            all_known = ir.true_and(known)
            assert all_known is not None
            kept = ir.Apply("|", (empty, all_known), ir.Machine.BOOL)
        else:
            kept = ir.negated(found)
        chain.require(kept, self.step, self.probe.share)
        return {}

    def _decisive(self) -> tuple[Expr, ...]:
        """What of the probe side decides whether a row has a match."""
        residual = self.node.residual
        read = frozenset() if residual is None else columns_of(residual) & self.below.keys()
        return *self.keys, *(self.below[c] for c in sorted(read, key=lambda c: c.id))

    def _mark(self) -> Value:
        """Whether the row has a match; with `null_aware`, NULL where a NULL leaves that open."""
        if not self.silent:
            self.chain.guard()
        found, key = self._found()
        if not self.node.null_aware:
            return Value(found)
        empty, nulls = self._emptiness()
        known = ir.true_and([nulls, *([] if key.valid is None else [key.valid])])
        assert known is not None
        sure = ir.Apply("|", (empty, known), ir.Machine.BOOL)
        return Value(found, ir.Apply("|", (found, sure), ir.Machine.BOOL))

    def _emptiness(self) -> tuple[ir.Term, ir.Term]:
        """Whether the build side has no rows, and whether none of them has a NULL key."""
        kernel, index, zero = self.chain.kernel, self.side.index, ir.Number(0, ir.Machine.I64)
        no_nulls = ir.Apply("==", (built_nulls(index, kernel), zero), ir.Machine.BOOL)
        no_rows = ir.Apply("==", (built_rows(index, kernel), zero), ir.Machine.BOOL)
        return ir.Apply("&", (no_rows, no_nulls), ir.Machine.BOOL), no_nulls

    def _found(self) -> tuple[ir.Term, KeyNumber]:
        """Whether any row of the build side matches."""
        chain, kernel = self.chain, self.chain.kernel
        index, residual = self.side.index, self.node.residual
        found = chain.variable(f"{index.name}_found", ir.Machine.BOOL)
        if not self.conditional:
            key = self.number()
            kernel.state(ir.Let(found, member(index, key, kernel), self.step))
            return found, key
        reading, made = self.reading(optional=False, unique=False)
        for part in () if residual is None else walk(residual):
            if isinstance(part, ColumnRef) and part.column in self.below:
                with suppress(NotFusable):  # which only the whole condition may need not to be
                    translate(self.below[part.column], kernel)  # outside of the loop
        key = self.number()
        first, following = self._rows(key)
        with kernel.inside() as statements:
            kernel.mark_found(reading)
            condition, shown = self.condition(made)
            accepted = translate(condition, kernel).term
        body = tuple(s for s in statements if isinstance(s, ir.Let | ir.Doubt))
        if len(body) < len(statements):
            raise NotFusable("the condition of a join looks for rows itself")
        step = f"{self.step} where {shown}"
        kernel.state(ir.Search(found, self.row, first, following, body, accepted, step))
        return found, key

    def _find(self) -> None:
        """State which row of the build side has the current row's key."""
        kernel, index = self.chain.kernel, self.side.index
        key, given = self.number(), self.chain.given
        row = first_row(index, key, kernel)
        if given is not None and given.optional:
            # Without a row its keys are NULL, or computed from NULLs, which may be found all the same
            kernel.found(given)
            row = ir.Select(
                kernel.present(given), row, ir.Number(-1, ir.Machine.I32), ir.Machine.I32
            )
        kernel.state(ir.Let(self.row, row, self.step))

    def _rows(self, key: KeyNumber) -> tuple[ir.Term, ir.Term]:
        kernel, index = self.chain.kernel, self.side.index
        return first_row(index, key, kernel), next_row(index, key, self.row)


def _stored(key: Expr) -> Expr:
    """A key without casts from integers to wider ones, which change no value."""
    match key:
        case Cast(operand=operand, type=made) if made.is_integer and operand.type.is_integer:
            low, high = operand.type.integer_range
            least, most = made.integer_range
            return _stored(operand) if least <= low and high <= most else key
    return key


def _present(row: ir.Name) -> ir.Term:
    return ir.Apply(">=", (row, ir.Number(0, ir.Machine.I32)), ir.Machine.BOOL)
