"""What a SQL text asks for: a query, or one of the statements around it.

`sql.plan_sql` makes these and `connection` carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf

from ..records import dataclass
from .changes.catalog_objects import NO_RULES, IfThere, Macro, StoredText, TableRules, UserType
from .changes.database_changes import DatabaseStatement, OfSession, OnlyReads, Writes
from .changes.sequences import SequenceStatement
from .changes.stand_in import StandIn
from .files.remote_secret import RemoteSecret
from .logical import Logical
from .types import DataType

Commented = OneOf["relation", "macro", "type"]


@dataclass(frozen=True)
class CommentOn(Writes):
    """COMMENT ON kind name IS text, or of one of its columns; None ends the comment that there is."""

    kind: Commented
    parts: tuple[str, ...]
    column: str | None
    text: str | None


@dataclass(frozen=True)
class Query(OnlyReads):
    """A plan whose columns are the result; two of them may have the same name."""

    plan: Logical
    is_kept: bool = (
        True  # False where it has the time of its binding, which the next run of its text has not
    )


@dataclass(frozen=True)
class Explain(OnlyReads):
    """EXPLAIN [ANALYZE] of a query; of one that changes rows, over the `table` for which `existing` stands.

    ANALYZE of a statement that `writes` carries it out.
    """

    query: Query
    analyze: bool
    table: str = ""
    existing: StandIn | None = None
    writes: Statement | None = None


@dataclass(frozen=True)
class CreateTable(Writes):
    """CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (columns) or AS query (`query` set)."""

    name: str
    columns: tuple[tuple[str, DataType], ...]
    query: Query | None = None
    if_there: IfThere = "fail"
    rules: TableRules = NO_RULES


@dataclass(frozen=True)
class CreateView(Writes):
    """CREATE [OR REPLACE] VIEW; `text` is the query's SQL, bound anew wherever the view is named.

    `columns` are the names given in parentheses after the view's name.
    """

    name: str
    text: str
    columns: tuple[str, ...] = ()
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class WrittenRows:
    """What is asked of the rows that a statement writes or deletes, for which `rows` stands.

    `checks` are the table's, as they are shown, each with a plan of a row that breaks it; `returning` is the answer's plan; `generated` gives
    the columns that are computed of others.
    """

    rows: StandIn
    checks: tuple[tuple[str, Logical], ...] = ()
    returning: Logical | None = None
    generated: Logical | None = None


@dataclass(frozen=True)
class OnConflict:
    """ON CONFLICT: what becomes of rows that share a key with others.

    `firsts[i]` has the numbers of the first of the `given` rows for each value of the key `keys[i]`; `matches[i]` those of given rows of which
    the table, for which `existing` stands, has the key, and to update that also the numbers of its rows, whether they are to be
    updated, and values for `columns`.
    """

    keys: tuple[tuple[str, ...], ...]
    given: StandIn
    existing: StandIn
    firsts: tuple[Logical, ...]
    matches: tuple[Logical, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Insert(Writes):
    """INSERT INTO table [(columns)] query; the query's columns have the types of `columns`, in that order."""

    table: str
    columns: tuple[str, ...]
    query: Query
    written: WrittenRows
    conflict: OnConflict | None = None


@dataclass(frozen=True)
class Update(Writes):
    """UPDATE: `query` gives the numbers of rows of the table, for which `existing` stands, and their new values for `columns`."""

    table: str
    existing: StandIn
    columns: tuple[str, ...]
    query: Logical
    written: WrittenRows


@dataclass(frozen=True)
class Delete(Writes):
    """DELETE or TRUNCATE: `query` gives the numbers of the rows that go."""

    table: str
    existing: StandIn
    query: Logical
    deleted: WrittenRows


@dataclass(frozen=True)
class Merge(Writes):
    """MERGE INTO table: its actions in the order of their WHENs; `returned` has a further column, that of the action."""

    table: str
    pairs: MergedPairs
    actions: tuple[MergeAction, ...]
    written: WrittenRows
    returned: WrittenRows


@dataclass(frozen=True)
class AlteredColumn:
    """A column of an altered table: another of the table before, by its name, or computed (`source` None)."""

    name: str
    type: DataType
    source: str | None


@dataclass(frozen=True)
class AlterTable(Writes):
    """ALTER TABLE: the table's next version; `computed` gives those columns that are, over the stand-in `existing`."""

    table: str
    name: str
    columns: tuple[AlteredColumn, ...]
    rules: TableRules
    existing: StandIn
    computed: Logical | None = None


@dataclass(frozen=True)
class CreateIndex(Writes):
    """CREATE [UNIQUE] INDEX: a change of the rules of its table, to which it adds `name`."""

    change: AlterTable
    name: str
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class DropIndex(Writes):
    """DROP INDEX, by the parts of its name."""

    parts: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True)
class WithChanges(Writes):
    """WITH whose entries change tables in turn, and then a statement; what each entry returns is where its stand-in is read."""

    changes: tuple[tuple[StandIn, Insert | Update | Delete], ...]
    then: Query | Insert | Update | Delete | Merge


TableStatement = Merge | WithChanges | SequenceStatement | CommentOn | CreateIndex | DropIndex


@dataclass(frozen=True)
class RenameView(Writes):
    """ALTER VIEW view RENAME TO name."""

    view: str
    name: str


@dataclass(frozen=True)
class Prepare(OfSession):
    """PREPARE name AS statement."""

    statement: StoredText


@dataclass(frozen=True)
class Deallocate(OfSession):
    """DEALLOCATE name."""

    name: str


@dataclass(frozen=True)
class SetVariable(OfSession):
    """SET VARIABLE name = value, the first of the query's one row; RESET VARIABLE without one."""

    name: str
    query: Query | None


@dataclass(frozen=True)
class CreateMacro(OfSession):
    """CREATE [OR REPLACE] MACRO."""

    macro: Macro
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class CreateSecret:
    """CREATE [OR REPLACE] SECRET [IF NOT EXISTS]."""

    secret: RemoteSecret
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class DropSecret:
    """DROP SECRET."""

    name: str
    if_exists: bool


@dataclass(frozen=True)
class CreateType(OfSession):
    """CREATE [OR REPLACE] TYPE: another name of a type, or an ENUM of the texts that a query gives."""

    name: str
    made: UserType | Query
    if_there: IfThere = "fail"


@dataclass(frozen=True)
class DropDefinition(OfSession):
    """DROP MACRO or TYPE."""

    kind: OneOf["macro", "type"]
    name: str
    if_exists: bool


SessionStatement = (
    Prepare
    | Deallocate
    | SetVariable
    | CreateMacro
    | CreateSecret
    | DropSecret
    | CreateType
    | DropDefinition
)


@dataclass(frozen=True)
class Drop(Writes):
    """DROP TABLE or VIEW."""

    kind: OneOf["table", "view"]
    name: str
    if_exists: bool


@dataclass(frozen=True)
class Describe(OnlyReads):
    """DESCRIBE table or query: one row a column."""

    query: Query
    rules: TableRules = NO_RULES


@dataclass(frozen=True)
class ShowTables(OnlyReads):
    """SHOW TABLES."""


@dataclass(frozen=True)
class CopyTo(Writes):
    """COPY table or query TO 'path'; `options` are those of the format, as `write_options` has read them."""

    query: Query
    path: str
    format: str
    options: Mapping[str, object]


@dataclass(frozen=True)
class SetOption:
    """SET name = value, or RESET name (`reset`)."""

    name: str
    value: object
    reset: bool = False


@dataclass(frozen=True)
class Transaction:
    """BEGIN [TRANSACTION] [READ ONLY], COMMIT or ROLLBACK."""

    action: OneOf["begin", "commit", "roll back"]
    only_reads: bool = False


@dataclass(frozen=True)
class NoOperation(OnlyReads):
    """A statement that is accepted and does nothing (CREATE INDEX, ANALYZE, CHECKPOINT ...)."""


Statement = (
    Query
    | DatabaseStatement
    | Explain
    | CreateTable
    | CreateView
    | Insert
    | Update
    | Delete
    | AlterTable
    | RenameView
    | SessionStatement
    | TableStatement
    | Drop
    | Describe
    | ShowTables
    | CopyTo
    | SetOption
    | Transaction
    | NoOperation
)


ACTION = "merge_action"  # the column of RETURNING that says what was done with a row


@dataclass(frozen=True)
class MergeAction:
    """What one WHEN does with its pairs, of which `rows` is a query.

    DELETE has the numbers of rows; UPDATE these and new values for `columns`; INSERT whole rows; ERROR a message.  `clause` is how errors
    call it.
    """

    kind: OneOf["DELETE", "UPDATE", "INSERT", "ERROR"]
    rows: Logical
    columns: tuple[str, ...] = ()
    clause: str = ""


@dataclass(frozen=True)
class MergedPairs:
    """Rows of the table, by their numbers, each beside the row of the source that it matches; either may be missing.

    `query` gives them over the table, for which `existing` stands; actions read them where `rows` stands.
    """

    existing: StandIn
    rows: StandIn
    query: Logical
