"""Joins of a table with itself by a column in whose order its rows lie: those of a key are neighbours of the row that looks for them.

Nothing is built.  From its own row a kernel goes back to the first with the same code, and on from there while codes are the same:
few rows, as `storage` measures, in a cache line or two, which a kernel that goes through the table has just read.  What the
build side filters is tested at each of them.

TPC-H SF10, hot on an H200, takes 6 % longer in all without it, Q21 twice as long (`benchmarks.micro.ablate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...plan.expr import Column
from ...plan.physical import FilterRows
from ...plan.pipeline_steps import HashProbe, payload, self_key, unreduced
from ...plan.text.concealed_text import concealed_name
from ..indexes.layers import Clustered, Index
from ..loop import Function, Let, Machine, Name, Term
from ..program_builder import ROW, RelationReading, Scope
from ..typed_values import Element
from .builds import Side, leaf_name
from .join_steps import Joining
from .probe_keys import Domains, KeyNumber

if TYPE_CHECKING:
    from .chains import ChainStatements


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
        arguments = (self.codes, self.row, Name(most, Machine.I32))
        return key.number, Function("next_alike", arguments, Machine.I32)


def neighbours(
    chain: ChainStatements, step: HashProbe, below: Scope, wanted: frozenset[Column]
) -> Neighbours | None:
    """Return a join that needs no index, or None: `wanted` are its columns that are read."""
    step = unreduced(step)
    node = step.node
    read, residual = payload(node, wanted), node.residual
    if node.kind.is_membership:
        suits = residual is not None
    else:
        several = chain.counts or bool(read) or residual is not None
        suits = not node.kind.at_most_one and chain.once is None and several
    if chain.given is not None or not suits:
        return None
    column, kernel = self_key(step), chain.kernel
    if column is None:
        return None
    own, leaf = kernel.relations[0], step.build.source
    source = kernel.described(own.aliases[column])
    # Where no key repeats, an index finds the row as fast, and kernels that find no row twice are simpler
    if source is None or not source.clustered or source.ascending:
        return None
    if kernel.source.rows(leaf) != own.rows:  # parts of the table
        return None
    index = Index(-1, leaf_name(leaf), Clustered, 0, own.rows, linked=True)
    side = Side(index, Domains((), 0), read | frozenset(node.build_keys))
    return Neighbours(chain, step, side, below, bool(read), column)
