"""Joins of a table with itself by a column in whose order its rows lie: those of a key are neighbours of the row that looks for them.

Nothing is built.  From its own row a kernel goes back to the first with the same code, and on from there while codes are the same:
few rows, as `storage` measures, in a cache line or two, which a kernel that goes through the table has just read.  What the
build side filters is tested at each of them.

Of several keys the rows may be in the order of any one: line items of an order of the same quantity take 47 ms of CPU
time at SF1, and with an index of both 768.  Where keys are dense and only the first match counts, an index takes 8 ms where this takes 12.  TPC-H SF10, hot on an H200, takes 6 % longer in all without it, Q21 twice as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...plan.expr import Call, Column, ColumnRef, conjunction
from ...plan.physical import FilterRows
from ...plan.pipeline_steps import HashProbe, payload, self_key, unreduced
from ...plan.text.concealed_text import concealed_name
from ...plan.types import BOOLEAN
from ...records import dataclass
from ..indexes.layers import Clustered, Index
from ..loop import Function, Let, Machine, Name, Term
from ..program_builder import ROW, RelationReading, Scope
from ..typed_values import Element
from .builds import Side, leaf_name
from .join_steps import Joining
from .probe_keys import Domains, KeyNumber

if TYPE_CHECKING:
    from .chains import ChainStatements

NUMBERS_A_ROW = 32  # of several keys, up to which an index of all of them is addressed directly


@dataclass
class Neighbours(Joining):
    """A join whose rows are found around the current one by `column` of relation 0; a key's number is the first of them."""

    column: Column

    @property
    def conditional(self) -> bool:
        filters = any(isinstance(step.node, FilterRows) for step in self.probe.build.steps)
        return filters or super().conditional

    def number(self) -> KeyNumber:
        """State which row is the first; codes are read apart from what the kernel does with its own row."""
        kernel = self.chain.kernel
        own = kernel.read(kernel.relations[0].leaf, ROW)
        kernel.mark_found(own)
        alias = own.aliases[self.column]
        source = kernel.input(alias)
        kernel.elements[alias] = Element(source, len(kernel.relations) - 1)
        self.codes = Name(kernel.names[alias], source.register)
        first = Function("first_alike", (self.codes, ROW), Machine.I32)
        kernel.state(
            Let(
                self.number_name, first, f"the first row of this {concealed_name(self.column.name)}"
            )
        )
        return KeyNumber(self.number_name, None, raw=False)

    def reading(self, optional: bool, unique: bool = True) -> tuple[RelationReading, Scope]:
        self.untested = []
        return super().reading(optional, unique)

    def _rows(self, key: KeyNumber) -> tuple[Term, Term]:
        kernel, rows = self.chain.kernel, self.side.index.rows
        most = kernel.parameter(rows, Machine.I32, f"rows of {self.side.index.name}")
        arguments = (self.codes, self.row, most)
        return key.number, Function("next_alike", arguments, Machine.I32)


def neighbours(
    chain: ChainStatements, step: HashProbe, below: Scope, wanted: frozenset[Column]
) -> Neighbours | None:
    """Return a join that needs no index, or None: `wanted` are its columns that are read."""
    ways = list(_by_one_key(unreduced(step)))
    if len(ways) > 1 and step.node.kind.is_membership and _are_dense(chain, ways):
        return None
    for alone in ways:
        column = None if chain.given is not None else self_key(alone)
        if column is not None and _suits(chain, alone, column, wanted):
            return _neighbours(chain, alone, column, below, wanted)
    return None


def _by_one_key(step: HashProbe) -> Iterator[HashProbe]:
    """Yield a join by each of its keys, the other ones compared at the rows found: on the CPU, since GPUs were not measured."""
    node = step.node
    if len(node.left_keys) == 1:
        yield step
        return
    pairs = list(zip(node.left_keys, node.right_keys, node.null_equal, strict=True))
    alone = [
        replace(
            step,
            node=replace(
                node, left_keys=(left,), right_keys=(right,), null_equal=(same,), residual=None
            ),
        )
        for left, right, same in pairs
    ]
    if node.device != "cpu" or any(self_key(each) is None for each in alone):
        return
    tests = [
        Call("is_not_distinct" if same else "eq", (ColumnRef(left), ColumnRef(right)), BOOLEAN)
        for left, right, same in pairs
    ]
    for at, each in enumerate(alone):
        given = [] if node.residual is None else [node.residual]
        residual = conjunction([*tests[:at], *tests[at + 1 :], *given])
        yield replace(each, node=replace(each.node, residual=residual))


def _are_dense(chain: ChainStatements, ways: Sequence[HashProbe]) -> bool:
    """Whether rows are found by all keys in an index that their numbers address: where only the first match counts, it is quicker."""
    columns = [column for each in ways if (column := self_key(each)) is not None]
    kernel, numbers = chain.kernel, 1
    for column in columns:
        found = kernel.described(kernel.relations[0].aliases[column])
        if found is None or found.machine is not None:
            return False
        numbers *= found.interval.size
    return numbers <= NUMBERS_A_ROW * kernel.relations[0].rows


def _suits(
    chain: ChainStatements, step: HashProbe, column: Column, wanted: frozenset[Column]
) -> bool:
    node, kernel = step.node, chain.kernel
    if node.kind.is_membership:
        suits = node.residual is not None
    else:
        several = chain.counts or bool(payload(node, wanted)) or node.residual is not None
        suits = not node.kind.at_most_one and chain.once is None and several
    if not suits:
        return False
    own = kernel.relations[0]
    source = kernel.described(own.aliases[column])
    # Where no key repeats, an index finds the row as fast, and kernels that find no row twice are simpler
    if source is None or not source.clustered or source.ascending:
        return False
    if kernel.source.varies(own.leaf):
        return step.build.source is own.leaf
    return kernel.source.rows(step.build.source) == own.rows  # else parts of the table


def _neighbours(
    chain: ChainStatements, step: HashProbe, column: Column, below: Scope, wanted: frozenset[Column]
) -> Neighbours:
    rows, read = chain.kernel.relations[0].rows, payload(step.node, wanted)
    index = Index(-1, leaf_name(step.build.source), Clustered, 0, rows, linked=True)
    side = Side(index, Domains((), 0), read | frozenset(step.node.build_keys))
    return Neighbours(chain, step, side, below, bool(read), column)
