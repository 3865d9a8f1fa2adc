"""What grows while the statements of a kernel are made: what it reads, its parameters, and what is known in each block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, cast

from ..plan.expr import Call, Column, ColumnRef, Expr, Literal, columns_of, new_column, substitute
from ..plan.physical import Physical
from ..plan.shapes.guards import bare_value
from ..plan.text.concealed_text import concealed_name
from ..plan.types import BIGINT
from ..records import dataclass
from ..storage.columns.encodings import Array
from . import loop as ir
from .indexes.layers import Buffer, KeptKey
from .names import free_name, identifier
from .row_sources import TRUTH, TRUTHS, LeafColumns, RowSource
from .typed_values import Element, Input, NotFusable, Parameter, TableParameter, Value
from .udf.function_text import DeviceFunction

ROW_LIMIT = 1 << 31  # row numbers of relations are int32
ROW = ir.Name("row", ir.Machine.I64)  # of relation 0, in the target's own type

# Columns of a node as expressions over aliases
Scope = dict[Column, Expr]
Constant = int | float | Literal


@dataclass(eq=False)
class RelationReading:
    """A relation while its kernel is made; it gets its number when its row is needed.

    `find` states which row that is, where the chain has not done so.  `keys` and `stored_keys` are what an equality join
    with the relation compares, over aliases; `unique`: they decide alone which row it is; `inner`: there always is one.
    """

    leaf: Physical
    rows: int
    row: ir.Name
    aliases: dict[Column, Column]
    optional: bool = False
    find: Callable[[], None] | None = None
    keys: tuple[Expr, ...] = ()
    stored_keys: tuple[Expr, ...] = ()
    unique: bool = False
    inner: bool = False

    @property
    def scope(self) -> Scope:
        return {column: ColumnRef(alias) for column, alias in self.aliases.items()}

    def own(self, alias: Column) -> Column:
        """Return the leaf's column of an alias."""
        return next(column for column, known in self.aliases.items() if known == alias)


@dataclass
class Block:
    """Statements that run together: what one of them names, those after it in this block and in blocks inside of it may read."""

    statements: list[ir.Statement]
    memo: dict[Expr, Value] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    found: set[RelationReading] = field(default_factory=set)


@dataclass
class ProgramBuilder:
    """What grows while a program is made; `blocks[0]` holds its statements.

    `keep` says whether the row is still in, where that is not yet guarded.  `computed` are expressions that get a variable
    at first use, named as a column; `deferred` columns are values that no expression gives: BOOLEANs, which may come out as
    rows of `TRUTHS`, and what after the kernel is an expression over these and over columns of relations.
    """

    source: LeafColumns
    relations: list[RelationReading] = field(default_factory=list)  # by number
    readings: dict[Column, RelationReading] = field(default_factory=dict)  # by alias
    inputs: dict[Column, Input] = field(default_factory=dict)  # described so far, by alias
    names: dict[Column, str] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    tables: list[TableParameter] = field(default_factory=list)
    used: dict[Column, None] = field(default_factory=dict)  # of relation 0, in order
    elements: dict[Column, Element] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    doubts: list[ir.Term] = field(default_factory=list)  # that no statement says yet
    computed: dict[Expr, tuple[Column, str]] = field(default_factory=dict)
    deferred: dict[Column, Callable[[], Value]] = field(default_factory=dict)
    truths: dict[Column, RelationReading] = field(default_factory=dict)  # of deferred BOOLEANs
    apart: dict[Column, Expr] = field(default_factory=dict)  # deferred columns after the kernel
    variables: set[str] = field(default_factory=set)  # of joins
    keep: ir.Name | None = None
    kept: float | None = None  # the share of rows for which `keep` holds, as far as estimated
    repeats: bool = False
    functions: list[DeviceFunction] = field(default_factory=list)  # in Python
    kept_keys: list[KeptKey] = field(default_factory=list)
    derives: bool = True  # has expressions evaluated before the kernel runs
    blocks: list[Block] = field(default_factory=lambda: [Block([])])

    # What comes in

    def read(self, leaf: Physical, row: ir.Name, **details: Any) -> RelationReading:
        """Add a reading of a leaf."""
        rows = self.source.rows(leaf)
        if rows >= ROW_LIMIT and row is not ROW:
            raise NotFusable("a build side has 2**31 rows or more")
        taken = self.readings
        aliases = {c: new_column(c.name, c.type) if c in taken else c for c in leaf.columns}
        reading = RelationReading(leaf, rows, row, aliases, **details)
        self.readings.update(dict.fromkeys(aliases.values(), reading))
        return reading

    def input(self, column: Column) -> Input:
        """Describe a column by its alias; raises `NotFusable` where it has no encoding."""
        if column not in self.inputs:
            reading = self.readings[column]
            described = self.source.column(reading.leaf, reading.own(column))
            self._describe(replace(described, column=column))
        return self.inputs[column]

    def described(self, column: Column) -> Input | None:
        """Describe a column where it is one of a relation and has an encoding."""
        if column not in self.readings:
            return None
        try:
            return self.input(column)
        except NotFusable:
            return None

    def derive(self, expr: Expr, reading: RelationReading) -> Column:
        """Have an expression over one column of a relation evaluated before the kernel runs; return its alias."""
        if not self.derives:
            raise NotFusable("an expression is evaluated before the kernel runs")
        stored = {alias: ColumnRef(c) for c, alias in reading.aliases.items()}
        made = self.source.derived(reading.leaf, substitute(expr, stored.get))
        alias = reading.aliases.get(made.column)
        if alias is None:
            (column,) = columns_of(expr)
            what = expr.function if isinstance(expr, Call) else type(expr).__name__
            alias = new_column(f"{column.name}_{what}", made.column.type)
            reading.aliases[made.column] = alias
        if alias not in self.inputs:
            self.readings[alias] = reading
            self._describe(replace(made, column=alias))
        return alias

    def _describe(self, made: Input) -> None:
        self.inputs[made.column] = made
        self.names[made.column] = self.free(made.column.name)

    def free(self, name: str) -> str:
        """Return a variable's name that shows this one."""
        taken = {*self.names.values(), *(f.name for f in self.functions)}
        return free_name(identifier(name), taken)

    def code(self, source: Input) -> ir.Name:
        """The code of a column in the current row of its relation, read at first use."""
        name, register = self.names[source.column], source.register
        code, reading = ir.Name(f"{name}_code", register), self.readings[source.column]
        if self._is_loaded_here(source, code):
            held: ir.Term = ir.Number(0, register)
            if reading.rows:
                held = source.code_at(name, self._place(reading))
            self.state(ir.Let(code, held))
        return code

    def validity(self, source: Input) -> ir.Term | None:
        """Whether the column is valid in that row; None where it always is."""
        reading = self.readings[source.column]
        if not source.nullable and not reading.optional:
            return None
        name = self.names[source.column]
        valid = ir.Name(f"{name}_valid", ir.Machine.BOOL)
        if self._is_loaded_here(source, valid):
            parts: list[ir.Term] = [self.present(reading)] if reading.optional else []
            if source.nullable and reading.rows:
                parts.append(source.valid_at(name, self._place(reading)))
            self.state(ir.Let(valid, ir.true_and(parts) or ir.Number(False, ir.Machine.BOOL)))
        return valid

    def _is_loaded_here(self, source: Input, name: ir.Name) -> bool:
        """Note the use of a column; whether a statement has to load what `name` stands for."""
        reading = self.readings[source.column]
        if self.relations and reading is self.relations[0]:
            self.used.setdefault(source.column)
            return False
        number = self.found(reading)
        if reading.rows:
            self.elements.setdefault(source.column, Element(source, number))
        if any(name.text in block.loaded for block in self.blocks):
            return False
        self.blocks[-1].loaded.add(name.text)
        return True

    def _place(self, reading: RelationReading) -> ir.Term:
        """Where to read columns of a relation: at its row, at 0 where an outer join has found none."""
        if not reading.optional:
            return reading.row
        return ir.Select(
            self.present(reading), reading.row, ir.Number(0, ir.Machine.I32), ir.Machine.I32
        )

    def found(self, reading: RelationReading) -> int:
        """Have the row of a relation stated, where it is not yet; return the relation's number."""
        if not any(reading in block.found for block in self.blocks):
            assert reading.find is not None
            reading.find()
            self.mark_found(reading)
        return self.relations.index(reading)

    def mark_found(self, reading: RelationReading) -> None:
        """From here on a variable says which row of the relation is read."""
        self.blocks[-1].found.add(reading)
        if reading not in self.relations:
            self.relations.append(reading)

    def present(self, reading: RelationReading) -> ir.Term:
        """Whether an outer join found a row of a relation."""
        return ir.Apply(">=", (reading.row, ir.Number(0, ir.Machine.I32)), ir.Machine.BOOL)

    # What no expression gives

    def defer(self, alias: Column, value: Callable[[], Value], keys: tuple[Expr, ...] = ()) -> None:
        """Have a BOOLEAN translated at first use; `keys` alone decide it."""
        row = ir.Name(free_name(f"{identifier(alias.name)}_row", self.variables), ir.Machine.I32)
        self.variables.add(row.text)

        def find() -> None:
            known = ColumnRef(alias)
            truth = self.recall(known) or self.remember(known, value())
            number: ir.Term = ir.Convert(truth.term, ir.Machine.I32)
            if truth.valid is not None:
                number = ir.Select(
                    truth.valid, number, ir.Number(-1, ir.Machine.I32), ir.Machine.I32
                )
            self.settle()
            self.state(ir.Let(row, number, f"{concealed_name(alias.name)} as it comes out"))

        self.deferred[alias] = value
        self.truths[alias] = RelationReading(
            TRUTHS, len(TRUTHS.rows), row, {TRUTH: alias}, True, find, keys, unique=bool(keys)
        )

    def origin(self, alias: Column) -> RelationReading | None:
        """The relation of which a column is read after the kernel."""
        return self.readings.get(alias) or self.truths.get(alias)

    def afterwards(self, expr: Expr) -> Expr:
        """An expression over columns of relations alone, `TRUTHS` too."""

        def made(column: Column) -> Expr | None:
            found = self.apart.get(column)
            return None if found is None else self.afterwards(found)

        return substitute(expr, made)

    # Parameters

    def parameter(self, value: Constant, machine: ir.Machine, meaning: str) -> ir.Name:
        """Add a scalar argument and return what reads it; `value` is a number or a literal of the query as one (`plan.shapes`)."""
        if isinstance(value, Literal):
            value = cast("int | float", bare_value(value))
        name = f"c{len(self.parameters)}"
        self.parameters.append(Parameter(name, machine, value, meaning))
        return ir.Name(name, machine)

    def table(self, array: Array | Literal, machine: ir.Machine) -> str:
        """Add an array argument, or a literal that is one, and return its name."""
        name = f"table{len(self.tables)}"
        if isinstance(array, Literal):
            array = cast("Array", bare_value(array))
        self.tables.append(TableParameter(name, machine, array))
        return name

    def python(self, name: str, make: Callable[[str], DeviceFunction]) -> str:
        """Add a Python function, if it is not there, and return its name."""
        known = next((f for f in self.functions if make(f.name) == f), None)
        if known is None:
            known = make(self.free(f"python_{name}"))
            self.functions.append(known)
        return known.name

    def buffer(self, buffer: Buffer) -> ir.Name:
        """Add index memory and return its name, which has no type of a register."""
        self.buffers.setdefault(buffer.name, buffer)
        return ir.Name(buffer.name, ir.Machine.I32)

    # Statements

    def state(self, statement: ir.Statement) -> None:
        self.blocks[-1].statements.append(statement)

    def recall(self, expr: Expr) -> Value | None:
        """Return the value of an expression that was translated before, in this block or around it."""
        for block in reversed(self.blocks):
            if expr in block.memo:
                return block.memo[expr]
        return None

    def remember(self, expr: Expr, value: Value) -> Value:
        """Note the value of an expression, in a variable of its own if it is that of a computed column."""
        if expr in self.computed and not isinstance(value.term, ir.Name | ir.Number):
            column, step = self.computed[expr]
            name = ir.Name(self.names.get(column) or self.free(column.name), value.term.type)
            self.names[column] = name.text
            self.state(ir.Let(name, value.term, step))
            value = replace(value, term=name)
        self.blocks[-1].memo[expr] = value
        return value

    def name(self, term: ir.Term, what: str) -> ir.Term:
        """Return a variable with the value of a term that is read often."""
        if isinstance(term, ir.Name | ir.Number):
            return term
        name = ir.Name(self.free(what), term.type)
        self.names[new_column(what, BIGINT)] = name.text
        self.state(ir.Let(name, term))
        return name

    def settle(self) -> None:
        """State the doubts that came up, which count for rows that are still in."""
        for doubt in self.doubts:
            term = (
                doubt if self.keep is None else ir.Apply("&", (self.keep, doubt), ir.Machine.BOOL)
            )
            self.state(ir.Doubt(term))
        self.doubts.clear()

    def guard(self) -> None:
        """From here on only rows that are still in count."""
        self.settle()
        if self.keep is not None:
            self.state(ir.Guard(self.keep, share=self.kept))
            self.keep = self.kept = None

    @contextmanager
    def inside(self, statements: list[ir.Statement] | None = None) -> Iterator[list[ir.Statement]]:
        """A block whose names mean nothing after it; its statements come apart, or are those given."""
        block = Block([] if statements is None else statements)
        self.blocks.append(block)
        try:
            yield block.statements
            self.settle()
        finally:
            self.blocks.pop()

    def proves(self, expr: Expr, translate: Callable[[Expr, ProgramBuilder], Value]) -> bool:
        """Whether bounds of columns tell that an expression is an error in no row, as far as registers hold it."""
        before = self.saved()
        self.derives = False
        try:
            doubts = self._count_doubts()
            translate(expr, self)
            return doubts == self._count_doubts()
        except NotFusable:
            return False
        finally:
            self.restore(before)

    def _count_doubts(self) -> int:
        self.settle()
        return sum(isinstance(s, ir.Doubt) for block in self.blocks for s in block.statements)

    def saved(self) -> dict[str, object]:
        """Return what `restore` needs to forget all that comes after."""
        growing = {
            name: value if name == "source" else copy.copy(value)
            for name, value in vars(self).items()
        }
        growing["blocks"] = [Block(*map(copy.copy, vars(block).values())) for block in self.blocks]
        return growing

    def restore(self, saved: dict[str, object]) -> None:
        vars(self).update(saved)

    def relation(self, number: int) -> RowSource:
        held = self.relations[number]
        return RowSource(
            number, held.leaf, held.rows, held.row.text, dict(held.aliases), held.optional
        )


def over(expr: Expr, scope: Scope) -> Expr:
    """Return an expression over aliases."""
    return substitute(expr, scope.get)
