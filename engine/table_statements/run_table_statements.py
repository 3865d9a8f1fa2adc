"""Which of the functions here carries out a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..answers import Answer
from ..plan.statements import CommentOn, CreateIndex, DropIndex, Merge, TableStatement
from .change_indexes import create_index, drop_index
from .change_sequences import change_sequences
from .comment_on import comment_on
from .merge_tables import merge

if TYPE_CHECKING:
    from ..connection import Connection


def run_table_statement(connection: Connection, statement: TableStatement) -> Answer:
    """Carry out one of these statements."""
    match statement:
        case Merge():
            return merge(connection, statement)
        case CommentOn():
            return comment_on(connection.catalog, statement)
        case CreateIndex():
            return create_index(connection, statement)
        case DropIndex():
            return drop_index(connection, statement)
    return change_sequences(connection.catalog, statement)
