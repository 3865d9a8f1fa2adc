"""How the SQLAlchemy dialect writes SQL, where DuckDB writes it in another way than SQLAlchemy does, and which values it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy.engine import default
from sqlalchemy.sql import compiler

from ..sql import RESERVED


class FuselineCompiler(compiler.SQLCompiler):
    """Statements, where DuckDB writes them in another way than SQLAlchemy does."""

    def visit_regexp_match_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        sides = [self.process(side, **options) for side in (binary.left, binary.right)]
        return f"regexp_matches({', '.join(sides)})"

    def visit_not_regexp_match_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **options)}"

    def visit_regexp_replace_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        parts = [self.process(side, **options) for side in (binary.left, binary.right)]
        flags = binary.modifiers["flags"]
        if flags is not None:
            parts.append(self.render_literal_value(flags, sa.types.STRINGTYPE))
        return f"regexp_replace({', '.join(parts)})"

    def visit_bitwise_xor_op_binary(
        self, binary: sa.BinaryExpression[object], operator: object, **options: object
    ) -> str:
        """Write xor(a, b): ^ is a power."""
        sides = [self.process(side, **options) for side in (binary.left, binary.right)]
        return f"xor({', '.join(sides)})"

    def get_select_precolumns(
        self, select: sa.Select[tuple[object, ...]], **options: object
    ) -> str:
        if not select._distinct_on:
            return super().get_select_precolumns(select, **options)
        columns = ", ".join(self.process(c, **options) for c in select._distinct_on)
        return f"DISTINCT ON ({columns}) "

    def update_from_clause(
        self,
        update_stmt: sa.Update,
        from_table: object,
        extra_froms: Sequence[sa.FromClause],
        from_hints: object,
        **options: object,
    ) -> str:
        return f"FROM {self._sources(extra_froms, from_hints, options)}"

    def delete_extra_from_clause(
        self,
        delete_stmt: sa.Delete,
        from_table: object,
        extra_froms: Sequence[sa.FromClause],
        from_hints: object,
        **options: object,
    ) -> str:
        return f"USING {self._sources(extra_froms, from_hints, options)}"

    def _sources(
        self, tables: Sequence[sa.FromClause], hints: object, options: dict[str, object]
    ) -> str:
        given = {**options, "asfrom": True, "fromhints": hints}
        return ", ".join(table._compiler_dispatch(self, **given) for table in tables)

    def limit_clause(self, select: sa.Select[tuple[object, ...]], **options: object) -> str:
        parts = {"LIMIT": select._limit_clause, "OFFSET": select._offset_clause}
        given = {word: part for word, part in parts.items() if part is not None}
        return "".join(f"\n {word} {self.process(p, **options)}" for word, p in given.items())

    def visit_empty_set_expr(self, element_types: Sequence[object], **_: object) -> str:
        columns = ", ".join("NULL" for _ in element_types or [None])
        return f"SELECT {columns} WHERE 1 = 0"

    def visit_sequence(self, sequence: sa.Sequence, **_: object) -> str:
        return next_value(sequence, self.preparer)


class FuselineNames(compiler.IdentifierPreparer):
    """Names, which stand in quotes where DuckDB's grammar has them as words."""

    reserved_words = RESERVED


def next_value(sequence: sa.Sequence, names: compiler.IdentifierPreparer) -> str:
    """Return the expression that draws from a sequence."""
    name = names.format_sequence(sequence).replace("'", "''")
    return f"nextval('{name}')"


class ExecutionContext(default.DefaultExecutionContext):
    """A statement that runs."""

    def fire_sequence(self, sequence: sa.Sequence, type_: sa.types.TypeEngine[int]) -> int:
        drawn = next_value(sequence, self.identifier_preparer)
        value: int = self._execute_scalar(f"SELECT {drawn}", type_)
        return value


class FuselineDDLCompiler(compiler.DDLCompiler):
    """Tables: a key that counts by itself draws from a sequence of its own; the engine may have asked to leave out foreign keys."""

    def get_column_default_string(self, column: sa.Column[object]) -> str | None:
        if column is _counted(column.table):
            return next_value(_sequence_of(column), self.preparer)
        return super().get_column_default_string(column)

    def visit_create_table(self, create: sa.schema.CreateTable, **options: object) -> str:
        text, key = super().visit_create_table(create, **options), _counted(create.element)
        if key is None:
            return text
        temporary = "TEMPORARY " if "TEMPORARY" in create.element._prefixes else ""
        name = self.preparer.format_sequence(_sequence_of(key))
        counts = "" if key.identity is None else self.get_identity_options(key.identity)
        return f"CREATE {temporary}SEQUENCE IF NOT EXISTS {name} {counts};{text}"

    def visit_drop_table(self, drop: sa.schema.DropTable, **options: object) -> str:
        text, key = super().visit_drop_table(drop, **options), _counted(drop.element)
        if key is None:
            return text
        return (
            f"{text};\nDROP SEQUENCE IF EXISTS {self.preparer.format_sequence(_sequence_of(key))}"
        )

    def visit_foreign_key_constraint(
        self, constraint: sa.ForeignKeyConstraint, **options: object
    ) -> str | None:
        if self.dialect.foreign_keys == "omit":
            return None
        raise sa.exc.CompileError(
            f'The table "{constraint.table.name}" has a foreign key, which Fuseline does not check: '
            'create_engine(..., foreign_keys="omit") makes tables without.'
        )


def _counted(table: sa.Table) -> sa.Column[int] | None:
    """Return the key whose values SQLAlchemy expects of the database, if there is one."""
    key = table.autoincrement_column
    is_given = key is None or key.default is not None or key.server_default is not key.identity
    return None if is_given else key


def _sequence_of(key: sa.Column[int]) -> sa.Sequence:
    return sa.Sequence(f"{key.table.name}_{key.name}_seq", schema=key.table.schema)


class FuselineTypeCompiler(compiler.GenericTypeCompiler):
    """Types: a FLOAT of SQLAlchemy is one of Python, which DuckDB calls DOUBLE; a DateTime may have a time zone."""

    def visit_DATETIME(self, type_: sa.DateTime, **options: object) -> str:  # noqa: N802
        return self.visit_TIMESTAMP(type_, **options)

    def visit_TIMESTAMP(self, type_: sa.DateTime, **_: object) -> str:  # noqa: N802
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_FLOAT(self, type_: sa.Float[float], **_: object) -> str:  # noqa: N802
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"


class ExactNumeric(sa.Numeric[Decimal]):
    """A Numeric whose values are Decimals where SQL has doubles too, as the quotient of two DECIMALs is."""

    def result_processor(
        self, dialect: object, coltype: object
    ) -> Callable[[object], object] | None:
        if not self.asdecimal:
            return super().result_processor(dialect, coltype)

        def exact(value: object) -> object:
            return (
                Decimal(f"{value:.15g}") if isinstance(value, float) else value
            )  # a double's digits

        return exact
